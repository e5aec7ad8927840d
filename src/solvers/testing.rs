//! Challenges for the tests of solvers.

use serde_json::{Value, json};

use super::SolveError;
use super::remedy::Remedy;
use crate::model::{Answer, Challenge, Identifier};

/// Returns the remedy of an error, in the provider's words or as a type; empty without a remedy.
pub(crate) fn advice(error: &SolveError) -> String {
    match error.remedy.as_deref() {
        None => String::new(),
        Some(Remedy::InWords(words)) => words.to_string(),
        Some(remedy) => format!("{remedy:?}"),
    }
}

/// The answer to a challenge of that token.
pub(crate) fn answer(token: &str) -> Answer {
    Answer {
        identifier: Identifier::parse("www.example.com").unwrap(),
        token: token.to_owned(),
        key_authorization: format!("{token}.thumbprint"),
    }
}

/// A Challenge that leaves everything to the solver.
pub(crate) fn challenge() -> Challenge {
    challenge_with("www.example.com", &json!({"ingress": {}}))
}

/// A Challenge with that HTTP-01 solver.
pub(crate) fn challenge_with(name: &str, http01: &Value) -> Challenge {
    let challenge = json!({
        "apiVersion": "acme.cert-manager.io/v1",
        "kind": "Challenge",
        "metadata": {"name": "web-1-1-1", "namespace": "web", "uid": "uid-of-challenge"},
        "spec": {
            "url": "https://ca.example/chall/1",
            "authorizationURL": "https://ca.example/authz/1",
            "dnsName": name,
            "type": "HTTP-01",
            "token": "token",
            "key": "token.thumbprint",
            "solver": {"http01": http01},
            "issuerRef": {"name": "acme"},
        },
    });
    serde_json::from_value(challenge).unwrap()
}
