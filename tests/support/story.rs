//! What happened to every object, told so that two runs can be compared: what differs between any two runs is blurred.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kubectl_acme::model::Blob;
use serde_json::{Map, Value};

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Kind.
    pub kind: String,
    /// The object as it was written, or as it was last seen.
    pub object: Value,
    /// Whether it is gone.
    pub gone: bool,
}

/// Facts by what they are about: the sequence of values that a field went through, every field at the end, every event.
pub type Story = BTreeMap<String, String>;

/// One fact on which two runs differ; `-` stands for none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What it is about.
    pub about: String,
    /// There.
    pub theirs: String,
    /// Here.
    pub ours: String,
}

/// Finds all facts on which two stories differ.
pub fn differences(theirs: &Story, ours: &Story) -> Vec<Finding> {
    let mut all: Vec<&String> = theirs.keys().chain(ours.keys()).collect();
    all.sort();
    all.dedup();
    let told = |story: &Story, about| story.get(about).map_or("-", String::as_str).to_owned();
    all.into_iter()
        .map(|about| Finding {
            about: about.clone(),
            theirs: told(theirs, about),
            ours: told(ours, about),
        })
        .filter(|finding| finding.theirs != finding.ours)
        .collect()
}

/// Tells what happened, from all turns in the order in which they came.
pub fn tell(turns: &[Turn]) -> Story {
    let names = made_up_names(turns);
    let mut told = Told::default();
    for turn in turns {
        let mut object = with_names(&turn.object, &names);
        blur(&mut object, "");
        tidy(&mut object);
        if turn.kind == "Event" {
            told.event(&object);
        } else {
            told.turn(&turn.kind, &object, turn.gone);
        }
    }
    told.story()
}

/// Names that are random or hashes of what is random, and what to call them: by their owner and what they are for.
fn made_up_names(turns: &[Turn]) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = Vec::new();
    for turn in turns {
        let text = |pointer: &str| {
            turn.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let name = text("/metadata/name");
        let stands_for = match turn.kind.as_str() {
            "Challenge" => {
                let hash = name.find("-<hash").or_else(|| name.rfind('-')).unwrap_or(name.len());
                let order = &name[..hash];
                format!("{order}-<{}>", text("/spec/dnsName"))
            }
            "Secret" if !text("/metadata/generateName").is_empty() => {
                format!("{}<random>", text("/metadata/generateName"))
            }
            _ => continue,
        };
        if !names.iter().any(|(known, _)| *known == name) {
            names.push((name, stands_for));
        }
    }
    // A name may begin with another one.
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

fn with_names(object: &Value, names: &[(String, String)]) -> Value {
    let text = names.iter().fold(object.to_string(), |text, (name, stands_for)| {
        text.replace(name.as_str(), stands_for)
    });
    serde_json::from_str(&text).unwrap()
}

/// Replaces what no two runs have in common: moments, addresses, tokens, keys, and the CA's own words.
fn blur(value: &mut Value, field: &str) {
    match value {
        Value::String(text) => *text = blurred(text, field),
        Value::Array(list) => list.iter_mut().for_each(|value| blur(value, field)),
        Value::Object(fields) => {
            for (name, value) in fields {
                blur(value, if field == "data" { field } else { name });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn blurred(text: &str, field: &str) -> String {
    const SECRETS: [&str; 3] = ["key", "lastPrivateKeyHash", "token"];
    const DOCUMENTS: [&str; 3] = ["certificate", "data", "request"];
    const URN: &str = "urn:ietf:params:acme:error:";
    let is = |prefix: &str| text.starts_with(prefix);
    if text.is_empty() {
        return String::new();
    }
    if DOCUMENTS.contains(&field) {
        return document(text);
    }
    if SECRETS.contains(&field) {
        return "<secret>".to_owned();
    }
    if is("<t+") || text.parse::<Timestamp>().is_ok() {
        return "<time>".to_owned();
    }
    if is("<url:") || is("https://") {
        return "<url>".to_owned();
    }
    match text.split_once(URN) {
        Some((before, after)) => {
            let sort = after.split(':').next().unwrap_or_default();
            format!("{before}{URN}{sort}: <detail>")
        }
        None => text.to_owned(),
    }
}

/// What a document is: the label of its PEM, and how many there are.
fn document(text: &str) -> String {
    if let Some(described) = text.strip_prefix("<pem:") {
        let label = described.split([';', '>']).next().unwrap_or_default();
        return format!("<{}>", label.trim_end_matches(" RSA 2048"));
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

/// Takes away what belongs to the store or the CA's offer, and puts lists without order in one.
fn tidy(object: &mut Value) {
    let Value::Object(fields) = &mut *object else { return };
    fields.remove("apiVersion");
    fields.remove("kind");
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        for field in ["creationTimestamp", "resourceVersion", "uid"] {
            metadata.remove(field);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            let is_ours = |name: &str| name.starts_with("kubectl-acme/");
            annotations.retain(|name, _| {
                !is_ours(name) && name != "kubectl.kubernetes.io/last-applied-configuration"
            });
        }
        if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
            owners.iter_mut().filter_map(Value::as_object_mut).for_each(|owner| {
                owner.remove("uid");
            });
        }
    }
    if let Some(Value::Array(all)) = object.pointer_mut("/status/authorizations") {
        for authorization in all.iter_mut() {
            if let Some(Value::Array(offered)) = authorization.get_mut("challenges") {
                offered.retain(|challenge| challenge["type"] == "http-01");
            }
        }
        all.sort_by_key(|authorization| authorization["identifier"].to_string());
    }
}

#[derive(Default)]
struct Told {
    /// Kinds and names in the order of their creation.
    created: Vec<String>,
    sequences: BTreeMap<String, Vec<String>>,
    last: BTreeMap<String, Value>,
    events: Story,
}

impl Told {
    fn turn(&mut self, kind: &str, object: &Value, gone: bool) {
        let who = format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or_default());
        if !self.created.contains(&who) {
            self.created.push(who.clone());
        }
        if gone {
            // Whether the last finalizer goes in a write of its own is the store's affair.
            let of_it = format!("{who}, ");
            let followed = self.sequences.iter_mut();
            for (_, sequence) in followed.filter(|(about, _)| about.starts_with(&of_it)) {
                sequence.push("gone".to_owned());
            }
            return;
        }
        if kind == "Challenge" && self.last.get(&who).is_some_and(is_valid) {
            // Clean-up and deletion by the Order run side by side: any order of their writes is recorded.
            return;
        }
        for (facet, value) in facets(kind, object) {
            let sequence = self.sequences.entry(format!("{who}, {facet}")).or_default();
            if sequence.last() != Some(&value) {
                sequence.push(value);
            }
        }
        self.last.insert(who, object.clone());
    }

    fn event(&mut self, event: &Value) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        let who = format!("{} {}", text("/involvedObject/kind"), text("/involvedObject/name"));
        let (reason, message) = (text("/reason"), text("/message"));
        if comes_and_goes(message) {
            return;
        }
        let about = format!("{who}, event {} {reason}: {message}", text("/type"));
        // One from each issuer's controller there, one here.
        let source = if reason == "WaitingForApproval" { "any" } else { text("/source/component") };
        if self.events.insert(about, source.to_owned()).is_none() {
            self.sequences.entry(format!("events of {who}")).or_default().push(reason.to_owned());
        }
    }

    fn story(self) -> Story {
        let mut story = self.events;
        story.insert("creation".to_owned(), self.created.join(", "));
        for (about, sequence) in self.sequences {
            story.insert(about, sequence.join(" > "));
        }
        for (who, object) in self.last {
            flatten(&object, &format!("{who}, at last "), &mut story);
        }
        story
    }
}

fn is_valid(challenge: &Value) -> bool {
    challenge["status"]["state"] == "valid"
}

/// What is followed through an object's life.
fn facets(kind: &str, object: &Value) -> Vec<(String, String)> {
    let status = &object["status"];
    let plain = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let fields: &[&str] = match kind {
        "Certificate" => &["nextPrivateKeySecretName", "revision", "failedIssuanceAttempts"],
        "Order" => &["state", "reason"],
        "Challenge" => &["presented", "processing", "state", "reason"],
        _ => &[],
    };
    let mut facets: Vec<(String, String)> =
        fields.iter().map(|name| ((*name).to_owned(), plain(&status[*name]))).collect();
    let conditions: &[&str] = match kind {
        "Certificate" => &["Issuing", "Ready"],
        "CertificateRequest" => &["Approved", "Ready"],
        "Issuer" | "ClusterIssuer" => &["Ready"],
        _ => &[],
    };
    for name in conditions {
        let all = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let condition = all.iter().find(|condition| condition["type"] == *name);
        if condition.is_some_and(|c| comes_and_goes(c["message"].as_str().unwrap_or_default())) {
            continue;
        }
        let value = match condition {
            Some(c) => format!(
                "{} {} \"{}\"",
                plain(&c["status"]),
                plain(&c["reason"]),
                plain(&c["message"])
            ),
            None => "-".to_owned(),
        };
        facets.push(((*name).to_owned(), value));
    }
    if kind == "Challenge" {
        facets.push(("finalizers".to_owned(), plain(&object["metadata"]["finalizers"])));
    }
    facets
}

/// Texts that a race of cert-manager against its own cache shows or leaves out, and the one for a CA that, as Pebble, does not
/// name the order when it answers finalize (recording 18).
fn comes_and_goes(text: &str) -> bool {
    let ends = [": \"\"", ": \"ready\"", ": \"processing\""];
    ends.iter().any(|end| text.ends_with(end))
        || text.contains("Waiting for order-controller to add certificate data")
}

fn flatten(value: &Value, path: &str, story: &mut Story) {
    let down = |name: String, value: &Value, story: &mut Story| {
        flatten(value, &format!("{path}/{name}"), story);
    };
    match value {
        Value::Object(fields) if fields != &Map::new() => {
            for (name, value) in fields {
                down(name.replace('/', "~1"), value, story);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, value) in list.iter().enumerate() {
                // Conditions go by their type, whoever was first to write.
                let name = value.get("type").and_then(Value::as_str).map(str::to_owned);
                down(name.unwrap_or_else(|| index.to_string()), value, story);
            }
        }
        Value::Null | Value::Object(_) | Value::Array(_) => {}
        Value::String(text) => drop(story.insert(path.to_owned(), text.clone())),
        Value::Bool(_) | Value::Number(_) => drop(story.insert(path.to_owned(), value.to_string())),
    }
}
