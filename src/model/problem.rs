//! The CA's problem document (RFC 8555 §6.7, RFC 9457).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Words of a sentence about a requested name.
const NAME_WORDS: [&str; 5] = ["domain", "host name", "hostname", "identifier", "dns name"];

/// A refusal in the CA's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// Error type, such as `urn:ietf:params:acme:error:rateLimited`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Sentence for people.
    pub detail: String,
    /// HTTP status; 0 when the document names none.
    pub status: u16,
    /// Page for the user, such as new terms of service (RFC 8555 §7.3.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// One problem per identifier (RFC 8555 §6.7.1).
    pub subproblems: Vec<Subproblem>,
    /// Signature algorithms the CA takes (with `badSignatureAlgorithm`, RFC 8555 §6.2).
    pub algorithms: Vec<String>,
    /// Pages for the user from the `Link` headers of the document's answer.
    #[serde(rename = "kubectl-acme/links", skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}

/// A problem with one identifier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subproblem {
    /// Error type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Sentence for people.
    pub detail: String,
    /// Identifier that the problem concerns.
    pub identifier: Option<ProblemIdentifier>,
}

/// Identifier as the CA wrote it; its type may be unknown here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProblemIdentifier {
    /// Identifier type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Identifier.
    pub value: String,
}

impl Problem {
    /// Returns the last part of the error type, such as `rateLimited`, whatever namespace is before that part.
    pub fn short_kind(&self) -> &str {
        self.kind.rsplit(':').next().unwrap_or("")
    }

    /// Returns the pages for the user that the detail does not name already: the problem's own, then those of the headers.
    pub fn pages(&self) -> Vec<&str> {
        let mut pages: Vec<&str> = Vec::new();
        for page in self.instance.iter().chain(&self.links) {
            if is_page(page) && !self.detail.contains(page) && !pages.contains(&page.as_str()) {
                pages.push(page);
            }
        }
        pages.truncate(MAX_PAGES);
        pages
    }

    /// Reports whether a subproblem is about a name, by its identifier or in words.
    pub fn is_of_name(&self) -> bool {
        self.subproblems.iter().any(|sub| {
            let detail = sub.detail.to_ascii_lowercase();
            sub.identifier.is_some() || NAME_WORDS.iter().any(|word| detail.contains(word))
        })
    }

    /// Returns the problem of a CA that lacks a profile (draft-ietf-acme-profiles), found out without asking the CA.
    pub fn no_profile(detail: &str) -> Self {
        let kind = "urn:ietf:params:acme:error:invalidProfile".to_owned();
        Self { kind, detail: detail.to_owned(), ..Self::default() }
    }

    /// Returns the part of a problem that is kept beside the reason that quotes the problem: of long sentences the
    /// beginning, and no sentences about single names.
    #[must_use]
    pub fn kept(&self) -> Self {
        let brief = |sub: &Subproblem| {
            let says_name = sub.identifier.is_some();
            let detail =
                sub.detail.chars().take(if says_name { 0 } else { MAX_DETAIL_CHARS }).collect();
            Subproblem { detail, ..sub.clone() }
        };
        Self {
            detail: self.detail.chars().take(MAX_DETAIL_CHARS).collect(),
            subproblems: self.subproblems.iter().take(MAX_SUBPROBLEMS).map(brief).collect(),
            links: self.pages().into_iter().map(str::to_owned).collect(),
            instance: None,
            ..self.clone()
        }
    }
}

/// Most characters of a detail that are kept beside a reason.
const MAX_DETAIL_CHARS: usize = 1000;
/// Most subproblems that are kept beside a reason.
const MAX_SUBPROBLEMS: usize = 20;
/// Text before the signature algorithms that the CA takes.
const ALGORITHMS_PREFIX: &str = " (the CA takes ";
/// Text before pages for the user.
const PAGES_PREFIX: &str = " (see ";
/// Most pages that are shown.
const MAX_PAGES: usize = 3;

/// Reports whether a text is the address of a page, whole and without characters that end a list.
fn is_page(text: &str) -> bool {
    let is_web = ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme));
    is_web && text.chars().all(|c| c.is_ascii_graphic() && !"(),<>\"".contains(c))
}

impl fmt::Display for Problem {
    /// Formats as cert-manager does: `<status> <type>: <detail>`, then the subproblems. Parts that the document lacks
    /// are left out; this program's own words stand alone. Algorithms and pages that the CA names follow the detail. A
    /// single subproblem that repeats the detail is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.status == 0 && self.kind.is_empty() {
            return f.write_str(&self.detail);
        }
        if self.status != 0 {
            write!(f, "{}", self.status)?;
        }
        if self.status != 0 && !(self.kind.is_empty() && self.detail.is_empty()) {
            f.write_str(" ")?;
        }
        match self.detail.as_str() {
            "" => f.write_str(&self.kind)?,
            detail => write!(f, "{}: {detail}", self.kind)?,
        }
        if !self.algorithms.is_empty() {
            write!(f, "{ALGORITHMS_PREFIX}{})", self.algorithms.join(", "))?;
        }
        let pages = self.pages();
        if !pages.is_empty() {
            write!(f, "{PAGES_PREFIX}{})", pages.join(", "))?;
        }
        let is_said = |sub: &Subproblem| {
            let of = sub.identifier.as_ref().map_or("", |identifier| identifier.value.as_str());
            sub.kind == self.kind && self.detail.ends_with(&sub.detail) && self.detail.contains(of)
        };
        let more = match &self.subproblems[..] {
            [only] if is_said(only) => &[],
            subproblems => subproblems,
        };
        if !more.is_empty() {
            f.write_str("; subproblems:")?;
        }
        for sub in more {
            match &sub.identifier {
                Some(id) => {
                    write!(f, "\n\t{}: [{}: {}] {}", sub.kind, id.kind, id.value, sub.detail)?;
                }
                None if sub.kind.is_empty() => write!(f, "\n\t{}", sub.detail)?,
                None => write!(f, "\n\t{}: {}", sub.kind, sub.detail)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_cert_manager_writes_it() {
        let problem: Problem = serde_json::from_str(
            r#"{"type":"urn:ietf:params:acme:error:rejectedIdentifier","status":400,"detail":"no",
            "subproblems":[{"type":"urn:ietf:params:acme:error:malformed","detail":"bad",
            "identifier":{"type":"new-type","value":"x"}}]}"#,
        )
        .unwrap();
        assert_eq!(
            problem.to_string(),
            "400 urn:ietf:params:acme:error:rejectedIdentifier: no; subproblems:\n\t\
             urn:ietf:params:acme:error:malformed: [new-type: x] bad"
        );
        assert_eq!(problem.short_kind(), "rejectedIdentifier");
    }

    #[test]
    fn what_a_problem_lacks_is_left_out() {
        let kind = "urn:ietf:params:acme:error:connection".to_owned();
        let detail = "The server could not connect to validation target".to_owned();
        for (problem, told) in [
            (
                Problem { kind: kind.clone(), detail: detail.clone(), ..Problem::default() },
                "urn:ietf:params:acme:error:connection: The server could not connect to validation target",
            ),
            (Problem { kind: kind.clone(), ..Problem::default() }, kind.as_str()),
            (
                Problem { kind: kind.clone(), status: 400, ..Problem::default() },
                "400 urn:ietf:params:acme:error:connection",
            ),
            (
                Problem { status: 503, detail: "busy".to_owned(), ..Problem::default() },
                "503 : busy",
            ),
            (Problem { detail: "busy".to_owned(), ..Problem::default() }, "busy"),
            (Problem::default(), ""),
        ] {
            assert_eq!(problem.to_string(), told);
        }
    }

    #[test]
    fn pages_and_algorithms_stand_behind_the_detail_and_are_kept() {
        let link = |page: &str| page.to_owned();
        let problem = Problem {
            kind: "urn:ietf:params:acme:error:userActionRequired".to_owned(),
            detail: "Terms have changed, see https://ca.example/news.".to_owned(),
            status: 403,
            instance: Some(link("https://ca.example/agree?id=1")),
            links: vec![
                link("https://ca.example/agree?id=1"),
                link("https://ca.example/news"),
                link("https://ca.example/terms/2"),
                link("urn:uuid:1"),
                link("https://ca.example/a, b"),
            ],
            algorithms: vec!["RS256".to_owned(), "ES256".to_owned()],
            ..Problem::default()
        };
        let told = "403 urn:ietf:params:acme:error:userActionRequired: Terms have changed, see https://ca.example/news. \
                    (the CA takes RS256, ES256) (see https://ca.example/agree?id=1, https://ca.example/terms/2)";
        assert_eq!(problem.to_string(), told);
        let kept: Problem =
            serde_json::from_str(&serde_json::to_string(&problem.kept()).unwrap()).unwrap();
        assert_eq!(kept.to_string(), told);
    }

    #[test]
    fn a_subproblem_that_says_the_same_is_left_out() {
        let sub = |value: &str| Subproblem {
            kind: "caa".to_owned(),
            detail: "CAA record for a.example prevents issuance".to_owned(),
            identifier: Some(ProblemIdentifier { kind: "dns".to_owned(), value: value.to_owned() }),
        };
        let problem = |subproblems| Problem {
            kind: "caa".to_owned(),
            detail: "Rechecking CAA :: CAA record for a.example prevents issuance".to_owned(),
            status: 403,
            subproblems,
            ..Problem::default()
        };
        let told = "403 caa: Rechecking CAA :: CAA record for a.example prevents issuance";
        assert_eq!(problem(vec![sub("a.example")]).to_string(), told);
        for several in [vec![sub("b.example")], vec![sub("a.example"), sub("b.example")]] {
            assert!(problem(several).to_string().contains("; subproblems:"));
        }
    }
}
