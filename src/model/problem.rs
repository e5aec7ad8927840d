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
    /// cert-manager's form: `<status> <type>: <detail>`, then the subproblems; the detail alone where the words are ours.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.status == 0 && self.kind.is_empty() {
            return f.write_str(&self.detail);
        }
        write!(f, "{} {}: {}", self.status, self.kind, self.detail)?;
        if !self.subproblems.is_empty() {
            f.write_str("; subproblems:")?;
        }
        for sub in &self.subproblems {
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
}
