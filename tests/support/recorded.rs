//! What cert-manager did when it was recorded: `tests/fixtures/traces`.

use std::fs;
use std::path::Path;

use kubectl_acme::model::Kind;
use serde_json::{Value, json};

use super::story::Turn;

/// Reads the turns of a recording.
pub fn recorded(trace: &str) -> Vec<Turn> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/traces").join(trace);
    let text = fs::read_to_string(path.with_extension("jsonl")).unwrap();
    let turn = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        Turn {
            kind: line["kind"].as_str().unwrap().to_owned(),
            object: line["object"].clone(),
            gone: line["type"] == "DELETED",
        }
    };
    text.lines().map(turn).collect()
}

/// The same without what only a cluster and kubectl write.
pub fn without_cluster(mut turns: Vec<Turn>) -> Vec<Turn> {
    for turn in &mut turns {
        let Value::Object(metadata) = &mut turn.object["metadata"] else { continue };
        metadata.remove("managers");
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    turns
}

/// The `generation`th state of a recorded object that a person applied, as a manifest.
pub fn manifest(turns: &[Turn], kind: &str, name: &str, generation: u64) -> Value {
    let of = |turn: &&Turn| {
        let metadata = &turn.object["metadata"];
        turn.kind == kind && metadata["name"] == name && metadata["generation"] == generation
    };
    let turn = turns.iter().find(of).unwrap_or_else(|| panic!("no {kind} {name} is recorded"));
    let mut metadata = json!({"name": name});
    if let Some(namespace) = turn.object["metadata"].get("namespace") {
        metadata["namespace"] = namespace.clone();
    }
    json!({
        "apiVersion": Kind::parse(kind).unwrap().api_version(),
        "kind": kind,
        "metadata": metadata,
        "spec": turn.object["spec"],
    })
}

/// Whether a CertificateRequest says that it waits for its pending Order: on a busy machine it may come to that after a Challenge has
/// looked in vain.
pub fn waits_for_its_order(request: &Value) -> bool {
    let conditions = request["status"]["conditions"].as_array().into_iter().flatten();
    let mut messages = conditions.filter_map(|condition| condition["message"].as_str());
    messages.any(|message| {
        message.starts_with("Waiting on certificate issuance") && message.ends_with("\"pending\"")
    })
}
