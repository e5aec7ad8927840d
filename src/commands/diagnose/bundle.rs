//! Bundles: observations in a file that may be sent to others, and judged again without a network.
//!
//! Tokens, key authorizations and record values, which prove control of a name, are replaced by placeholders: equal values
//! get equal placeholders, so the file still shows whether they agree. Observations never have private keys or credentials.
//! Only the domain of a contact stays.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::report::without_keys;
use crate::context::failure::Failure;
use crate::diagnosis::case::Case;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk;
use crate::model::Challenge;
use crate::store::folder::explain;

/// Maximum size of a bundle, in bytes.
const MAX_BUNDLE_BYTES: u64 = 64 << 20;
const VERSION: &str = "kubectl-acme/v1alpha1";
const KIND: &str = "DiagnosisBundle";

/// Content of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle<C> {
    api_version: String,
    kind: String,
    case: C,
}

/// Writes the observations as the text of a bundle, without the values that only the CA may see.
///
/// # Errors
/// Fails when the case cannot be written as JSON, which would be a fault of this program.
pub fn text(case: &Case) -> Result<String, Failure> {
    let bundle = Bundle { api_version: VERSION.to_owned(), kind: KIND.to_owned(), case };
    let text = serde_json::to_string_pretty(&bundle).map_err(|why| {
        Failure::new(FailureKind::Unexpected, format!("cannot write the bundle: {why}"))
    })?;
    let all = case.certificates.iter().flat_map(|of| &of.challenges);
    let all: Vec<&Challenge> = all
        .chain(&case.orphans)
        .chain(case.names.iter().filter_map(|n| n.pending.as_ref()))
        .collect();
    let mut hidden: Vec<(&str, String)> = Vec::new();
    for (number, challenge) in all.iter().enumerate() {
        // The key authorization of HTTP-01 begins with the token, which is replaced first.
        for (what, word) in [("token", &challenge.spec.token), ("value", &challenge.spec.key)] {
            if !word.is_empty() && !hidden.iter().any(|(known, _)| known == word) {
                hidden.push((word, format!("{what}-{}", number + 1)));
            }
        }
    }
    let mut text = hidden.iter().fold(text, |text, (word, name)| text.replace(word, name));
    for of in &case.issuers {
        let acme = of.issuer.as_ref().and_then(|issuer| issuer.spec.acme.as_ref());
        if let Some((local, _)) = acme.and_then(|acme| acme.email.split_once('@')) {
            text = text.replace(&format!("{local}@"), "somebody@");
        }
    }
    Ok(without_keys(&text) + "\n")
}

/// Reads a bundle.
///
/// # Errors
/// Fails when the file cannot be read, or is no bundle.
pub fn open(path: &Path) -> Result<Case, Failure> {
    let shown = path.display().to_string();
    let text = disk::read_given(path, MAX_BUNDLE_BYTES)
        .map_err(|why| Failure::usage(format!("cannot read {shown}: {}", explain(&why))))?;
    read(&text, &shown)
}

fn read(text: &str, path: &str) -> Result<Case, Failure> {
    let refused = |why: String| Failure::usage(format!("cannot read {path}: {why}"));
    let bundle: Bundle<Case> =
        serde_json::from_str(text).map_err(|why| refused(why.to_string()))?;
    if (bundle.api_version.as_str(), bundle.kind.as_str()) != (VERSION, KIND) {
        let Bundle { api_version, kind, .. } = bundle;
        return Err(refused(format!(
            "the file is a {kind} of {api_version}, not a {KIND} of {VERSION}"
        )));
    }
    Ok(bundle.case)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diagnosis::case::CertificateCase;

    #[test]
    fn what_proves_control_is_hidden_and_still_agrees_with_itself() {
        let challenge = json!({
            "metadata": {"namespace": "web", "name": "c"},
            "spec": {
                "dnsName": "www.example.com", "token": "secret-token-of-17",
                "key": "secret-token-of-17.thumb", "type": "HTTP-01", "authorizationURL": "a",
                "url": "u", "issuerRef": {"name": "acme"}, "solver": {},
            },
        });
        let challenge: Challenge = serde_json::from_value(challenge).unwrap();
        let certificate = json!({"metadata": {"namespace": "web", "name": "www"}, "spec": {"secretName": "s", "issuerRef": {"name": "acme"}}});
        let of = json!({
            "certificate": certificate, "requests": [], "orders": [], "challenges": [challenge],
            "due": null, "nextTry": null, "rivals": [], "held": [],
        });
        let of: CertificateCase = serde_json::from_value(of).unwrap();
        let case = Case { certificates: vec![of], ..Case::default() };
        let text = text(&case).unwrap();
        assert!(!text.contains("secret-token-of-17"), "{text}");
        assert!(text.contains("token-1.thumb"), "{text}");
        let read = read(&text, "bundle").unwrap();
        assert_eq!(read.certificates[0].challenges[0].spec.token, "token-1");
        assert!(super::read("{}", "bundle").is_err());
        assert!(super::read(&text.replace(KIND, "Other"), "bundle").is_err());
    }
}
