//! What no two runs have in common is replaced, or taken away.

use jiff::Timestamp;
use kubectl_acme::model::Blob;
use serde_json::Value;

use super::Turn;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Names that are random or hashes of what is random, and what to call them: by their owner and what they are for.
pub(super) fn made_up_names(turns: &[Turn]) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = Vec::new();
    // Challenges first, because solver objects are called after them.
    let (challenges, others): (Vec<_>, Vec<_>) =
        turns.iter().partition(|turn| turn.kind == "Challenge");
    for turn in challenges.into_iter().chain(others) {
        let name = text(&turn.object, "/metadata/name");
        if names.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let beginning = text(&turn.object, "/metadata/generateName");
        let stands_for = match turn.kind.as_str() {
            "Challenge" => {
                let hash = name.find("-<hash").or_else(|| name.rfind('-')).unwrap_or(name.len());
                let host = text(&turn.object, "/spec/dnsName");
                let star = if turn.object["spec"]["wildcard"] == true { "*." } else { "" };
                let called = format!("{}-<{star}{host}>", &name[..hash]);
                // A new Order of the same name has a Challenge for the same host.
                match names.iter().filter(|(_, other)| other.starts_with(&called)).count() {
                    0 => called,
                    before => format!("{called} ({before} before)"),
                }
            }
            "Secret" if !beginning.is_empty() => format!("{beginning}<random>"),
            "Event" | "EndpointSlice" => continue,
            _ if !beginning.is_empty() => {
                let owner = text(&turn.object, "/metadata/ownerReferences/0/name");
                let owner = names.iter().find(|(known, _)| *known == owner);
                format!("{beginning}<{}>", owner.map_or("random", |(_, called)| called))
            }
            _ => continue,
        };
        names.push((name, stands_for));
    }
    // Where Secrets are not told of, their Certificates tell of them.
    for turn in turns.iter().filter(|turn| turn.kind == "Certificate") {
        let name = text(&turn.object, "/status/nextPrivateKeySecretName");
        if !name.is_empty() && !names.iter().any(|(known, _)| *known == name) {
            let certificate = text(&turn.object, "/metadata/name");
            names.push((name, format!("{certificate}-<random>")));
        }
    }
    // A name may begin with another one.
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(super) fn with_names(object: &Value, names: &[(String, String)]) -> Value {
    let text = names.iter().fold(object.to_string(), |text, (name, stands_for)| {
        text.replace(name.as_str(), stands_for)
    });
    serde_json::from_str(&text).unwrap()
}

/// Replaces what no two runs have in common: moments, addresses, tokens, keys, and the CA's own words.
pub(super) fn normalize(value: &mut Value, field: &str) {
    match value {
        Value::String(text) => *text = normalized(text, field),
        Value::Array(list) => list.iter_mut().for_each(|value| normalize(value, field)),
        Value::Object(fields) => {
            for (name, value) in fields {
                normalize(value, if field == "data" { field } else { name });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn normalized(text: &str, field: &str) -> String {
    const SECRETS: [&str; 4] =
        ["acme.cert-manager.io/http-token", "key", "lastPrivateKeyHash", "token"];
    const DOCUMENTS: [&str; 3] = ["certificate", "data", "request"];
    const CLUSTER: [&str; 5] = ["caBundle", "clusterIP", "clusterIPs", "resourceVersion", "uid"];
    const URN: &str = "urn:ietf:params:acme:error:";
    const NEXT_TRY: &str = "; next try at ";
    let is = |prefix: &str| text.starts_with(prefix);
    if text.is_empty() {
        return String::new();
    }
    if field == LAST_APPLIED {
        return "<last applied>".to_owned();
    }
    if DOCUMENTS.contains(&field) {
        return document(text);
    }
    if SECRETS.contains(&field) || is("--token=") || is("--key=") {
        return "<secret>".to_owned();
    }
    if CLUSTER.contains(&field) {
        return format!("<{field}>");
    }
    if ["path", "value"].contains(&field) && is("/.well-known/acme-challenge/") {
        return "/.well-known/acme-challenge/<secret>".to_owned();
    }
    if let Some(suffix) = text.strip_prefix("cm-acme-http-solver-")
        && (suffix.starts_with("<rand-") || suffix.len() == 5)
    {
        return "cm-acme-http-solver-<random>".to_owned();
    }
    if is("<t+") || text.parse::<Timestamp>().is_ok() {
        return "<time>".to_owned();
    }
    if is("<url:") || is("https://") {
        return "<url>".to_owned();
    }
    if let Some((before, after)) = text.split_once(URN) {
        let sort = after.split(':').next().unwrap_or_default();
        return format!("{before}{URN}{sort}: <detail>");
    }
    match text.split_once(NEXT_TRY) {
        Some((before, _)) => format!("{before}{NEXT_TRY}<time>"),
        None => text.to_owned(),
    }
}

/// What a document is: the label of its PEM, and how many there are.
fn document(text: &str) -> String {
    if let Some(described) = text.strip_prefix("<pem:") {
        let label = described.split([';', '>']).next().unwrap_or_default();
        let kinds = [" RSA 2048", " ECDSA 256", " x1"];
        let bare = kinds.iter().find_map(|kind| label.strip_suffix(kind)).unwrap_or(label);
        return format!("<{bare}>");
    }
    if text == "<text>" {
        return "<no PEM>".to_owned();
    }
    let blob: Blob = serde_json::from_value(Value::String(text.to_owned())).unwrap();
    let pem = String::from_utf8_lossy(&blob.0).into_owned();
    let labels: Vec<&str> = pem
        .lines()
        .filter_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"))
        .collect();
    match labels[..] {
        [label] => format!("<{label}>"),
        [label, ..] => format!("<{label} x{}>", labels.len()),
        [] => "<no PEM>".to_owned(),
    }
}

/// Takes away what belongs to the store, to a node or to the CA's offer, and puts lists without order in one.
pub(super) fn tidy(kind: &str, object: &mut Value) {
    let Value::Object(fields) = &mut *object else { return };
    fields.remove("apiVersion");
    fields.remove("kind");
    if kind == "Pod" {
        // What a node says of it, or writes into it.
        fields.remove("status");
    }
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        for field in ["creationTimestamp", "managedFields", "managers", "resourceVersion", "uid"] {
            metadata.remove(field);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.retain(|name, _| !name.starts_with("kubectl-acme/"));
        }
        if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
            owners.iter_mut().filter_map(Value::as_object_mut).for_each(|owner| {
                owner.remove("uid");
            });
        }
    }
    if let Some(Value::Array(ports)) = object.pointer_mut("/spec/ports") {
        ports.iter_mut().filter_map(Value::as_object_mut).for_each(|port| {
            port.remove("nodePort");
        });
    }
    if let Some(Value::Array(all)) = object.pointer_mut("/status/authorizations") {
        for authorization in all.iter_mut() {
            if let Some(Value::Array(offered)) = authorization.get_mut("challenges") {
                offered.retain(|challenge| challenge["type"] == "http-01");
            }
        }
        all.sort_by_key(|one| (one["identifier"].to_string(), one["wildcard"] == true));
    }
}
