//! cert-manager's own definitions, as the bed has them, beside what is said of the six kinds here: the grammar of manifests
//! and the lean definitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kubectl_acme::commands::crds::definitions::definition;
use kubectl_acme::model::Kind;
use serde_json::Value;

use crate::support::bed::program;

/// The fields of the specs of Certificates and Issuers, with which `src/model/manifest/fields.rs` is compared.
const FIELDS: &str = "tests/fixtures/definitions/fields.txt";
/// Objects into which the grammar does not look: Kubernetes' own, and what this program does not act on.
const CLOSED: [&str; 9] = [
    "affinity",
    "auth",
    "ca",
    "managedIdentity",
    "resources",
    "securityContext",
    "selfSigned",
    "vault",
    "venafi",
];
/// What an API server has to know of a field.
const FACTS: [&str; 7] = [
    "default",
    "enum",
    "format",
    "required",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
];

fn theirs(kind: Kind) -> Value {
    let bed = program("kubectl").parent().map(Path::to_owned).unwrap();
    let named = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let folders = fs::read_dir(bed).unwrap().map(|entry| entry.unwrap().path());
    let folder = folders.into_iter().find(|path| named(path).starts_with("crds-cert-manager-"));
    let file = folder.unwrap().join(format!("{}_{}.yaml", kind.group(), kind.plural()));
    serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn schema(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A line for each field of a schema: its path, what it holds, and the words that it takes.
fn fields(schema: &Value, path: &str, lines: &mut Vec<String>) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, field) in properties {
        let path = format!("{path}.{name}");
        let item = field.get("items").unwrap_or(field);
        let is_closed = CLOSED.contains(&name.as_str());
        let holds = match field["type"].as_str() {
            _ if is_closed => "any",
            Some("string") if field["format"] == "byte" => "bytes",
            Some(holds) => holds,
            None => "any",
        };
        let required = if words(&schema["required"]).contains(&&**name) { " required" } else { "" };
        let mut choice = words(&item["enum"]);
        choice.sort_unstable();
        let choice: Vec<String> = choice.iter().map(|word| format!(" '{word}'")).collect();
        lines.push(format!("{path} {holds}{required}{}\n", choice.concat()));
        // Tolerations and the like are not looked into, either.
        if !is_closed && !path.contains(".podTemplate.spec.") {
            fields(item, &path, lines);
        }
    }
}

#[test]
#[ignore = "needs cert-manager's definitions: run by just pebble"]
fn the_list_of_fields_is_that_of_cert_managers_definitions() {
    let [mut lines, mut of_cluster_issuers] = <[Vec<String>; 2]>::default();
    let spec =
        |kind, lines: &mut _| fields(&schema(&theirs(kind))["properties"]["spec"], "", lines);
    spec(Kind::ClusterIssuer, &mut of_cluster_issuers);
    spec(Kind::Issuer, &mut lines);
    assert_eq!(lines, of_cluster_issuers);
    spec(Kind::Certificate, &mut lines);
    lines.sort_unstable();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIELDS);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, lines.concat()).unwrap();
    }
    assert_eq!(lines.concat(), fs::read_to_string(path).unwrap(), "{FIELDS} is stale: UPDATE=1");
}

/// What is said of each field below a schema, by its path.
fn facts(schema: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    for fact in FACTS {
        if let Some(value) = schema.get(fact) {
            found.insert(format!("{path} {fact}"), value.clone());
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        facts(field, &format!("{path}.{name}"), found);
    }
    if let Some(items) = schema.get("items") {
        facts(items, &format!("{path}[]"), found);
    }
}

#[test]
#[ignore = "needs cert-manager's definitions: run by just pebble"]
fn lean_definitions_say_what_cert_managers_say() {
    for kind in [
        Kind::Certificate,
        Kind::CertificateRequest,
        Kind::Challenge,
        Kind::ClusterIssuer,
        Kind::Issuer,
        Kind::Order,
    ] {
        let (ours, mut theirs) = (definition(kind), theirs(kind));
        let columns = &mut theirs["spec"]["versions"][0]["additionalPrinterColumns"];
        for column in columns.as_array_mut().unwrap() {
            column.as_object_mut().unwrap().remove("description");
        }
        assert_eq!(ours["metadata"]["name"], theirs["metadata"]["name"]);
        for part in ["/group", "/names", "/scope"] {
            assert_eq!(ours["spec"].pointer(part), theirs["spec"].pointer(part), "{kind}");
        }
        let version = |definition: &Value| {
            let mut version = definition["spec"]["versions"][0].clone();
            version.as_object_mut().unwrap().remove("schema");
            version
        };
        assert_eq!(version(&ours), version(&theirs), "{kind}");
        let [mut said, mut known] = <[BTreeMap<String, Value>; 2]>::default();
        facts(schema(&ours), "", &mut said);
        facts(schema(&theirs), "", &mut known);
        for (fact, value) in &said {
            assert_eq!(Some(value), known.get(fact), "{kind}{fact}");
        }
        // What an API server adds or merges by, and without what it refuses an object.
        let counts = |fact: &str| {
            [" required", ".spec required"].contains(&fact)
                || [" default", " x-kubernetes-list-map-keys"].iter().any(|end| fact.ends_with(end))
        };
        let missing = known.keys().filter(|fact| counts(fact) && !said.contains_key(*fact));
        assert_eq!(missing.collect::<Vec<_>>(), [] as [&String; 0], "{kind}");
    }
}
