//! The CA's problem document (RFC 8555 §6.7, RFC 9457).

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// Signature algorithms the CA takes (with `badSignatureAlgorithm`).
    pub algorithms: Vec<String>,
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
    /// Whom it concerns.
    pub identifier: Option<ProblemIdentifier>,
}

/// An identifier as the CA wrote it; its type may be one we do not know.
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
    /// The last part of the error type: `rateLimited`; matched whatever the namespace before it.
    pub fn short_kind(&self) -> &str {
        self.kind.rsplit(':').next().unwrap_or("")
    }
}

impl fmt::Display for Problem {
    /// cert-manager's form: `<status> <type>: <detail>`, then the subproblems; the detail alone where the words are ours. One
    /// subproblem that says the same again is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.status == 0 && self.kind.is_empty() {
            return f.write_str(&self.detail);
        }
        write!(f, "{} {}: {}", self.status, self.kind, self.detail)?;
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
