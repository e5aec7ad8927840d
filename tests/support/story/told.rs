//! What is told of each object while its changes pass.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Story;

/// Ends the names of the API server's own controllers that repair the addresses and the ports of Services.
const REPAIR: &str = "allocator-repair-controller";
/// A self-check that comes before its solver Pod.
const SLOW_POD: &str = "propagation: wrong status code '503', expected '200'";

/// Events of one object in the order in which they were told, whatever the order in which they arrived: moment, reason, and which
/// controller.
#[derive(Default)]
pub(super) struct Events(BTreeSet<(u64, String, String)>);

impl Events {
    /// All reasons in one order.
    pub(super) fn of_object(&self, who: &str) -> Story {
        let reasons: Vec<&str> = self.0.iter().map(|(_, reason, _)| reason.as_str()).collect();
        Story::from([(format!("events of {who}"), reasons.join(" > "))])
    }

    /// The reasons of each controller in the order in which that has told them.
    pub(super) fn of_each_controller(&self, who: &str) -> Story {
        let mut by = BTreeMap::<&str, Vec<&str>>::new();
        for (_, reason, source) in &self.0 {
            by.entry(source).or_default().push(reason);
        }
        let line = |(source, reasons): (&str, Vec<&str>)| {
            (format!("events of {who}, told by {source}"), reasons.join(" > "))
        };
        by.into_iter().map(line).collect()
    }
}

#[derive(Default)]
pub(super) struct Told {
    /// Kinds and names in the order of their creation, by the first word of the name: what belongs to one Certificate.
    created: BTreeMap<String, Vec<String>>,
    sequences: BTreeMap<String, Vec<String>>,
    last: BTreeMap<String, Value>,
    /// Who ever managed a part of an object.
    managers: BTreeMap<String, BTreeSet<String>>,
    events: Story,
    /// Events by kind and name of their object.
    events_of: BTreeMap<String, Events>,
    /// Components that said the same of one object.
    sources: BTreeMap<String, BTreeSet<String>>,
}

impl Told {
    pub(super) fn turn(
        &mut self,
        kind: &str,
        object: &Value,
        managers: Vec<(String, Option<String>)>,
        gone: bool,
    ) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let who = format!("{kind} {name}");
        // The solver objects of several Challenges are made side by side, and a temporary certificate beside its Order.
        if !who.contains("cm-acme-http-solver-") && !self.is_filled_at_once(kind, name) {
            let family = name.split('-').next().unwrap_or_default();
            let created = self.created.entry(family.to_owned()).or_default();
            if !created.contains(&who) {
                created.push(who.clone());
            }
        }
        if gone {
            // Whether the last finalizer goes in a write of its own is the store's affair.
            let of_it = format!("{who}, ");
            let followed = self.sequences.iter_mut();
            for (_, sequence) in followed.filter(|(about, _)| about.starts_with(&of_it)) {
                // A second solver object of one Challenge has the same name here.
                if sequence.last().is_none_or(|last| last != "gone") {
                    sequence.push("gone".to_owned());
                }
            }
            return;
        }
        for (manager, fields) in managers {
            // The order budget's ledger, an annotation of ours that every Certificate has which was ordered.
            if kind == "Certificate" && manager == "cert-manager-orders Update" {
                continue;
            }
            if let Some(fields) = fields {
                self.managers.entry(format!("{who}, {manager} of")).or_default().insert(fields);
            }
            self.managers.entry(format!("{who}, managed by")).or_default().insert(manager);
        }
        if kind == "Challenge" && self.last.get(&who).is_some_and(is_valid) {
            // Clean-up and deletion by the Order run side by side: any order of their writes is recorded.
            return;
        }
        for (facet, value) in facets(kind, object) {
            // Whether the CA is still at work when it is asked is its own affair; so is how fast a Pod starts.
            if kind == "Order" && value == "processing" || value.ends_with(SLOW_POD) {
                continue;
            }
            let sequence = self.sequences.entry(format!("{who}, {facet}")).or_default();
            if sequence.last() != Some(&value) {
                sequence.push(value);
            }
        }
        self.last.insert(who, object.clone());
    }

    /// Whether an object is the Secret of a Certificate that asks for a temporary certificate until the CA's is there.
    fn is_filled_at_once(&self, kind: &str, name: &str) -> bool {
        let asks = |object: &Value| {
            object["spec"]["secretName"] == name
                && object["metadata"]["annotations"]["cert-manager.io/issue-temporary-certificate"]
                    == "true"
        };
        kind == "Secret" && self.last.values().any(asks)
    }

    pub(super) fn event(&mut self, event: &Value) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        let who = format!("{} {}", text("/involvedObject/kind"), text("/involvedObject/name"));
        let (reason, message) = (text("/reason"), text("/message"));
        // One of cert-manager's races against its own cache.
        if comes_and_goes(message) || reason == "OrderPending" {
            return;
        }
        let about = format!("{who}, event {} {reason}: {message}", text("/type"));
        let source = text("/source/component").to_owned();
        // The API server's own, when it looks after the addresses and ports of Services.
        if [&*source, text("/reportingComponent")].iter().any(|by| by.contains(REPAIR)) {
            return;
        }
        // The same component in the newer form, and which of its processes.
        let reporter = match text("/reportingComponent") {
            component if component == source => "the same",
            other => other,
        };
        let by = match text("/reportingInstance") {
            "" => format!("{reporter}, nobody in particular"),
            process => format!("{reporter}, {process}"),
        };
        self.events.insert(format!("{about}, reported by"), by);
        // Whether approver or issuer is the first to see a request, or to tell of it, is a race between two of
        // cert-manager's controllers.
        let is_of_the_race = ["WaitingForApproval", "cert-manager.io"].contains(&reason);
        if !is_of_the_race && !self.sources.contains_key(&about) {
            let moment = written(text("/metadata/name"));
            let events = self.events_of.entry(who).or_default();
            events.0.insert((moment, reason.to_owned(), source.clone()));
        }
        self.sources.entry(about).or_default().insert(source);
    }

    /// The controllers that have told of each object, one after the other.
    pub(super) fn speakers(self) -> BTreeMap<String, Vec<String>> {
        let sources = |events: Events| events.0.into_iter().map(|(_, _, source)| source).collect();
        self.events_of.into_iter().map(|(who, events)| (who, sources(events))).collect()
    }

    /// All of it; how events of one object are told is the caller's choice.
    pub(super) fn story(self, events: fn(&Events, &str) -> Story) -> Story {
        let mut story = self.events;
        for (about, managers) in self.managers {
            story.insert(about, Vec::from_iter(managers).join(", "));
        }
        for (about, sources) in self.sources {
            story.insert(about, Vec::from_iter(sources).join(", "));
        }
        for (family, created) in self.created {
            story.insert(format!("creation of {family}"), in_order(created).join(", "));
        }
        for (about, sequence) in self.sequences {
            story.insert(about, sequence.join(" > "));
        }
        for (who, all) in self.events_of {
            story.extend(events(&all, &who));
        }
        for (who, object) in self.last {
            flatten(&object, &format!("{who}, at last "), &mut story);
        }
        story
    }
}

/// When an Event was made, from its name: nanoseconds in hexadecimal, or its number in a recording.
fn written(name: &str) -> u64 {
    let suffix = name.rsplit('.').next().unwrap_or_default();
    match suffix.strip_prefix("<ev-") {
        Some(number) => number.trim_end_matches('>').parse().unwrap_or(0),
        None => u64::from_str_radix(suffix, 16).unwrap_or(0),
    }
}

/// Challenges of one Order are made in the order in which the CA happened to list their names.
fn in_order(mut created: Vec<String>) -> Vec<String> {
    for group in
        created.chunk_by_mut(|a, b| a.starts_with("Challenge ") && b.starts_with("Challenge "))
    {
        group.sort();
    }
    created
}

/// Who manages which part of an object, where that is noted: manager, operation, subresource; and the fields that were applied.
pub(super) fn managers(object: &Value) -> Vec<(String, Option<String>)> {
    let metadata = &object["metadata"];
    let noted = metadata["managedFields"].as_array().or_else(|| metadata["managers"].as_array());
    noted
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            let (manager, operation) = (text("manager"), text("operation"));
            let part = entry["subresource"].as_str().map_or(String::new(), |s| format!(" {s}"));
            let fields = entry.get("fieldsV1").filter(|_| operation == "Apply");
            (format!("{manager} {operation}{part}"), fields.map(Value::to_string))
        })
        .collect()
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
        || text.starts_with("Failed create new order resource") && text.ends_with("already exists")
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
