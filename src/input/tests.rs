//! Input as people write it: rows and manifests below `tests/fixtures/inputs/`, each with its expected outcome.

use serde_json::json;

use super::files::opening;
use super::quick::read_name;
use super::*;
use crate::diagnosis::rules::public_name::refusal;
use crate::model::seal::Seal;
use crate::model::{Identifier, mac_key, validation};
use crate::reconcile::ingress_shim::{Defaults, untidy_annotations, wanted};

/// Returns the rows of a file: the input, and the outcome.
pub(crate) fn rows(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| {
        let (input, outcome) = line.rsplit_once("=> ").unwrap_or_else(|| panic!("{line}"));
        (unescaped(input.strip_suffix(' ').unwrap_or(input)), outcome.to_owned())
    })
    .collect()
}

fn unescaped(text: &str) -> String {
    let mut plain = text.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r");
    while let Some((before, rest)) = plain.split_once("\\u{") {
        let (code, after) = rest.split_once('}').unwrap();
        let letter = char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap();
        plain = format!("{before}{letter}{after}");
    }
    plain
}

/// Compares each row with its outcome, and fails with all that differ.
#[track_caller]
pub(crate) fn check(rows: &[(String, String)], came: impl Fn(&str) -> Result<String, String>) {
    let differ = rows.iter().filter_map(|(input, outcome)| {
        let came = came(input);
        let is_right = match (&came, outcome.strip_prefix('!')) {
            (Err(words), Some(expected)) => words.contains(expected.trim()),
            (Ok(came), None) => came == outcome,
            _ => false,
        };
        (!is_right).then(|| format!("{input:?}: expected {outcome}, came {came:?}"))
    });
    let differ: Vec<String> = differ.collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn in_words(failure: &Failure) -> String {
    format!("{} {}", failure.message, failure.hints.join(" "))
}

#[test]
fn names_are_read_as_they_are_meant_or_refused_with_what_to_write() {
    check(&rows(include_str!("../../tests/fixtures/inputs/names.txt")), |input| {
        let name = read_name("--domain", input.trim()).map_err(|failure| in_words(&failure))?;
        Ok(format!("= {name}"))
    });
}

#[test]
fn names_that_no_public_ca_certifies_are_known() {
    check(&rows(include_str!("../../tests/fixtures/inputs/public-names.txt")), |input| {
        let refused = refusal(&Identifier::parse(input).unwrap());
        Ok(refused.map_or_else(|| "ok".to_owned(), |why| why.cause().to_string()))
    });
}

#[test]
fn keys_of_external_accounts_are_read_in_every_form() {
    check(&rows(include_str!("../../tests/fixtures/inputs/eab-keys.txt")), |input| {
        let key = mac_key::base64url(input).ok_or_else(String::new)?;
        assert!(mac_key::decode(input).is_some(), "{input}");
        Ok(format!("= {key}"))
    });
}

#[test]
fn annotations_are_read_as_they_are_meant_or_refused_before_anything_is_written() {
    check(&rows(include_str!("../../tests/fixtures/inputs/annotations.txt")), |input| {
        let (name, value) =
            input.split_once(": ").unwrap_or_else(|| (input.trim_end_matches(':'), ""));
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": "web", "namespace": "default", "annotations": {
                "cert-manager.io/issuer": "i", format!("cert-manager.io/{name}"): value}},
            "spec": {"tls": [{"hosts": ["a.example.com"], "secretName": "web-tls"}]},
        });
        let object = crate::controllers::ingress_shim::read(&Record::new(ingress).unwrap());
        let object = object.map_err(|error| error.to_string())?;
        let made = wanted(&object, None, &Defaults::default()).map_err(|why| why.to_string())?;
        let made = made.map_err(|why| why.to_string())?.certificates.remove(0);
        let faults = validation::certificate(&made).errors;
        if !faults.is_empty() {
            return Err(format!("{faults:?}"));
        }
        let spec = made.spec;
        let common = Some(format!("CN={}", spec.common_name)).filter(|it| it != "CN=");
        let names = [spec.dns_names, spec.ip_addresses, spec.email_addresses].concat();
        let names: Vec<String> = names.into_iter().chain(common).collect();
        let mark = if untidy_annotations(&object).is_empty() { "=" } else { "~" };
        Ok(format!("{mark} {}", names.join(" ")))
    });
}

#[test]
fn manifests_are_taken_warned_of_or_refused_as_a_whole() {
    let text = include_str!("../../tests/fixtures/inputs/manifests.txt");
    let all = text.split("\n=== ").skip(1).map(|part| part.split_once('\n').unwrap());
    let all: Vec<_> = all.map(|(outcome, text)| (text.to_owned(), outcome.to_owned())).collect();
    let namespaces = Namespaces { given: None, default: "default" };
    let differ = all.iter().filter_map(|(text, outcome)| {
        let source = manifest::Source { name: "m.yaml".to_owned(), text: text.clone() };
        let shown = |complaints: &[Complaint]| -> String {
            let lines = complaints.iter().map(|it| format!("{it} | {}", hints(it).join(" ")));
            lines.collect::<Vec<_>>().join("\n")
        };
        let came = match manifest::read(&[source], namespaces) {
            Err(errors) => format!("error {}", shown(&errors)),
            Ok(set) if set.warnings.is_empty() => "ok".to_owned(),
            Ok(set) => format!("warning {}", shown(&set.warnings)),
        };
        let (sort, words) = outcome.split_once(' ').unwrap_or((outcome, ""));
        let is_right = came.split(' ').next() == Some(sort) && came.contains(words);
        (!is_right).then(|| format!("expected {outcome}, came {came}\n{text}"))
    });
    let differ: Vec<String> = differ.collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn what_is_encrypted_comes_with_the_command_that_opens_it() {
    let line = opening(Seal::Sops, "secret.yaml");
    assert!(line.contains("sops -d secret.yaml | ") && line.ends_with(" order -f -"), "{line}");
    assert!(opening(Seal::Sops, "stdin").contains("sops -d FILE"));
}

#[test]
fn a_folder_of_kustomize_is_given_through_kustomize() {
    for (file, folder) in [
        ("deploy/kustomization.yaml", Some("deploy")),
        ("a b/kustomization.yml", Some("'a b'")),
        ("kustomization.yaml", Some(".")),
        ("deploy/web.yaml", None),
        ("stdin", None),
    ] {
        let line = kustomize_hint(file);
        assert_eq!(line.is_some(), folder.is_some(), "{file}");
        if let (Some(line), Some(folder)) = (line, folder) {
            assert!(line.contains(&format!("kubectl kustomize {folder} | ")), "{line}");
        }
    }
}

#[test]
fn there_are_two_hundred_of_them() {
    let files = ["names", "public-names", "eab-keys", "words", "annotations", "manifests"];
    let count = files.map(|name| {
        let place = format!("{}/tests/fixtures/inputs/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(place).unwrap();
        if name == "manifests" { text.matches("\n=== ").count() } else { rows(&text).len() }
    });
    assert!(count.iter().sum::<usize>() >= 200, "{count:?}");
}
