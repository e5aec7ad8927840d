//! TLS entries of an Ingress and listeners of a Gateway: the hosts of each Secret.

use std::collections::BTreeMap;
use std::fmt;

use super::annotations::IGNORED_LISTENERS;
use crate::model::ingress::{
    CertificateReference, Gateway, GatewayListener, GatewaySpec, Ingress, IngressLike, IngressTls,
    ListenerSet, ListenerSetSpec,
};

/// One Secret with its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecretHosts {
    /// Namespace of the Secret.
    pub(super) namespace: String,
    /// Name of the Secret.
    pub(super) secret: String,
    /// Names and addresses, as written.
    pub(super) hosts: Vec<String>,
}

/// Entry that cannot be used, with all its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    is_of_ingress: bool,
    faults: Vec<String>,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_of_ingress { "TLS" } else { "listener" };
        match &self.faults[..] {
            [one] => write!(f, "Skipped a {what} block: {one}"),
            all => write!(f, "Skipped a {what} block: [{}]", all.join(", ")),
        }
    }
}

/// Returns the fault of two TLS entries of an Ingress that name one Secret: each would be a Certificate of that name.
pub(super) fn shared_secret(object: &IngressLike) -> Option<String> {
    let IngressLike::Ingress(Ingress { spec, .. }) = object else { return None };
    let mut faults = Vec::new();
    for (first, tls) in spec.tls.iter().enumerate() {
        let same = |other: &IngressTls| other.secret_name == tls.secret_name;
        if spec.tls[..first].iter().any(same) {
            continue;
        }
        if let Some(after) = spec.tls[first + 1..].iter().position(same) {
            let second = first + 1 + after;
            faults.push(format!(
                "spec.tls[{first}].secretName: Invalid value: \"{}\": this secret name must only appear in a single TLS entry \
                 but is also used in spec.tls[{second}].secretName",
                tls.secret_name
            ));
        }
    }
    match &faults[..] {
        [] => None,
        [one] => Some(one.clone()),
        all => Some(format!("[{}]", all.join(", "))),
    }
}

/// Returns the Secrets that an object asks for, in the order of its entries, and the entries that cannot be used.
pub(super) fn of(
    object: &IngressLike,
    annotations: &BTreeMap<String, String>,
) -> (Vec<SecretHosts>, Vec<Skipped>) {
    match object {
        IngressLike::Ingress(ingress) => of_ingress(ingress),
        IngressLike::Gateway(Gateway { spec: GatewaySpec { listeners, .. }, .. })
        | IngressLike::ListenerSet(ListenerSet {
            spec: ListenerSetSpec { listeners, .. }, ..
        }) => of_listeners(listeners, &object.metadata().namespace, annotations),
    }
}

fn of_ingress(ingress: &Ingress) -> (Vec<SecretHosts>, Vec<Skipped>) {
    let (mut entries, mut skipped) = (Vec::new(), Vec::new());
    for (index, tls) in ingress.spec.tls.iter().enumerate() {
        let mut faults = Vec::new();
        if tls.hosts.is_empty() {
            faults.push(format!("spec.tls[{index}].hosts: Required value"));
        }
        if tls.secret_name.is_empty() {
            faults.push(format!("spec.tls[{index}].secretName: Required value"));
        }
        if !faults.is_empty() {
            skipped.push(Skipped { is_of_ingress: true, faults });
            continue;
        }
        entries.push(SecretHosts {
            namespace: ingress.metadata.namespace.clone(),
            secret: tls.secret_name.clone(),
            hosts: tls.hosts.clone(),
        });
    }
    (entries, skipped)
}

fn of_listeners(
    listeners: &[GatewayListener],
    namespace: &str,
    annotations: &BTreeMap<String, String>,
) -> (Vec<SecretHosts>, Vec<Skipped>) {
    let ignored = annotations.get(IGNORED_LISTENERS).map_or("", String::as_str);
    let is_ignored = |name: &str| ignored.split(',').any(|one| one.trim() == name);
    let has_ignored = annotations.contains_key(IGNORED_LISTENERS);
    let (mut entries, mut skipped) = (Vec::<SecretHosts>::new(), Vec::new());
    for (index, listener) in listeners.iter().enumerate() {
        let mode = listener.tls.as_ref().and_then(|tls| tls.mode.as_deref());
        if !["HTTPS", "TLS"].contains(&listener.protocol.as_str())
            || mode == Some("Passthrough")
            || (has_ignored && is_ignored(&listener.name))
        {
            continue;
        }
        let faults = listener_faults(listener, namespace, &format!("spec.listeners[{index}]"));
        if !faults.is_empty() {
            skipped.push(Skipped { is_of_ingress: false, faults });
            continue;
        }
        let host = listener.hostname.clone().unwrap_or_default();
        for secret in listener.tls.iter().flat_map(|tls| &tls.certificate_refs) {
            let known = entries.iter_mut().find(|entry| entry.secret == secret.name);
            match known {
                Some(entry) => entry.hosts.push(host.clone()),
                None => entries.push(SecretHosts {
                    namespace: namespace.to_owned(),
                    secret: secret.name.clone(),
                    hosts: vec![host.clone()],
                }),
            }
        }
    }
    (entries, skipped)
}

fn listener_faults(listener: &GatewayListener, namespace: &str, path: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if listener.hostname.as_deref().unwrap_or_default().is_empty() {
        faults.push(format!("{path}.hostname: Required value: the hostname cannot be empty"));
    }
    let Some(tls) = &listener.tls else {
        faults.push(format!("{path}.tls: Required value: the TLS block cannot be empty"));
        return faults;
    };
    if tls.certificate_refs.is_empty() {
        let what = "Required value: listener has no certificateRefs";
        faults.push(format!("{path}.tls.certificateRef: {what}"));
    }
    for (index, one) in tls.certificate_refs.iter().enumerate() {
        let path = format!("{path}.tls.certificateRef[{index}]");
        faults.extend(reference_faults(one, namespace, &path));
    }
    // An API server writes the mode if it is absent.
    if let Some(mode) = tls.mode.as_deref().filter(|mode| *mode != "Terminate") {
        let what = format!("Unsupported value: \"{mode}\": supported values: \"Terminate\"");
        faults.push(format!("{path}.tls.mode: {what}"));
    }
    faults
}

fn reference_faults(one: &CertificateReference, namespace: &str, path: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let given = |text: &Option<String>| text.clone().unwrap_or_default();
    let (group, kind) = (given(&one.group), given(&one.kind));
    if !["", "core"].contains(&group.as_str()) {
        let what = format!("Unsupported value: \"{group}\": supported values: \"core\", \"\"");
        faults.push(format!("{path}.group: {what}"));
    }
    if !["", "Secret"].contains(&kind.as_str()) {
        let what = format!("Unsupported value: \"{kind}\": supported values: \"Secret\", \"\"");
        faults.push(format!("{path}.kind: {what}"));
    }
    if let Some(other) = one.namespace.as_deref().filter(|other| *other != namespace) {
        let why = "cross-namespace secret references are not allowed in listeners";
        faults.push(format!("{path}.namespace: Invalid value: \"{other}\": {why}"));
    }
    faults
}
