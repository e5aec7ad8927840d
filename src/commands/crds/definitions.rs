//! Short definitions of the six kinds, for a cluster without cert-manager's definitions.
//!
//! Names, short names, categories, columns, status, selectable fields and the defaults are cert-manager's; the schemas are
//! open, so that no field is pruned. These definitions never replace cert-manager's own.

use serde_json::{Value, json};

use crate::model::Kind;

/// Builds the `CustomResourceDefinition` of a kind.
pub fn definition(kind: Kind) -> Value {
    let mut names = json!({
        "kind": kind.as_str(),
        "listKind": format!("{kind}List"),
        "plural": kind.plural(),
        "singular": kind.singular(),
        "categories": categories(kind),
    });
    if !kind.short_names().is_empty() {
        names["shortNames"] = kind.short_names().into();
    }
    let mut version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns(kind),
        "schema": {"openAPIV3Schema": schema(kind)},
    });
    if is_selectable(kind) {
        version["selectableFields"] = ["group", "kind", "name"]
            .map(|field| json!({"jsonPath": format!(".spec.issuerRef.{field}")}))
            .to_vec()
            .into();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", kind.plural(), kind.group()),
            "labels": {"app.kubernetes.io/managed-by": "kubectl-acme"},
        },
        "spec": {
            "group": kind.group(),
            "names": names,
            "scope": if kind.is_namespaced() { "Namespaced" } else { "Cluster" },
            "versions": [version],
        },
    })
}

fn categories(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Challenge | Kind::Order => &["cert-manager", "cert-manager-acme"],
        _ => &["cert-manager"],
    }
}

fn is_selectable(kind: Kind) -> bool {
    matches!(kind, Kind::Certificate | Kind::CertificateRequest | Kind::Challenge | Kind::Order)
}

/// Printer column; a `wide` column has priority 1.
fn column(name: &str, path: &str, wide: bool) -> Value {
    let kind = if name == "Age" { "date" } else { "string" };
    let mut column = json!({"name": name, "type": kind, "jsonPath": path});
    if wide {
        column["priority"] = 1.into();
    }
    column
}

fn columns(kind: Kind) -> Vec<Value> {
    let condition = |kind: &str| format!(".status.conditions[?(@.type == \"{kind}\")].status");
    let ready = || column("Ready", &condition("Ready"), false);
    let status = || column("Status", ".status.conditions[?(@.type == \"Ready\")].message", true);
    let issuer = |wide| column("Issuer", ".spec.issuerRef.name", wide);
    let state = || column("State", ".status.state", false);
    let reason = || column("Reason", ".status.reason", true);
    let mut columns = match kind {
        Kind::Certificate => {
            vec![ready(), column("Secret", ".spec.secretName", false), issuer(true), status()]
        }
        Kind::CertificateRequest => vec![
            column("Approved", &condition("Approved"), false),
            column("Denied", &condition("Denied"), false),
            ready(),
            issuer(false),
            column("Requester", ".spec.username", false),
            status(),
        ],
        Kind::Challenge => vec![state(), column("Domain", ".spec.dnsName", false), reason()],
        Kind::ClusterIssuer | Kind::Issuer => vec![ready(), status()],
        Kind::Order => vec![state(), issuer(true), reason()],
        Kind::Event | Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => {
            Vec::new()
        }
    };
    columns.push(column("Age", ".metadata.creationTimestamp", false));
    columns
}

/// Open schema with only the parts that the API server needs: required fields, lists that are maps, and defaults.
fn schema(kind: Kind) -> Value {
    let required: &[&str] = match kind {
        Kind::Challenge | Kind::Order => &["metadata", "spec"],
        Kind::ClusterIssuer | Kind::Issuer => &["spec"],
        _ => &[],
    };
    let mut schema = open(&json!({
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": spec(kind),
        "status": status(kind),
    }));
    // At the root the API server itself keeps unknown fields as needed.
    if let Some(root) = schema.as_object_mut() {
        root.remove("x-kubernetes-preserve-unknown-fields");
    }
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Schema of an object with these properties that may have other fields.
fn open(properties: &Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn spec(kind: Kind) -> Value {
    let (required, properties): (&[&str], Value) = match kind {
        Kind::Certificate => {
            (&["issuerRef", "secretName"], json!({"secretName": {"type": "string"}}))
        }
        Kind::CertificateRequest => {
            (&["issuerRef", "request"], json!({"request": bytes(), "username": {"type": "string"}}))
        }
        Kind::Challenge => (
            &["authorizationURL", "dnsName", "issuerRef", "key", "solver", "token", "type", "url"],
            json!({
                "dnsName": {"type": "string"},
                "solver": solver(),
                "type": {"type": "string", "enum": ["HTTP-01", "DNS-01"]},
            }),
        ),
        Kind::Order => (&["issuerRef", "request"], json!({"request": bytes()})),
        Kind::ClusterIssuer | Kind::Issuer => return open(&json!({"acme": acme()})),
        Kind::Event | Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => {
            return open(&json!({}));
        }
    };
    let mut spec = open(&properties);
    spec["properties"]["issuerRef"] = issuer_reference();
    spec["required"] = required.into();
    spec
}

fn bytes() -> Value {
    json!({"type": "string", "format": "byte"})
}

/// Schema of an issuer reference; no defaults, as in cert-manager, since a hash of the spec names Orders and Challenges.
fn issuer_reference() -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "group": {"type": "string"},
            "kind": {"type": "string"},
            "name": {"type": "string"},
        },
    })
}

fn acme() -> Value {
    let mut acme = open(&json!({
        "server": {"type": "string"},
        "solvers": {"type": "array", "items": solver()},
    }));
    acme["required"] = json!(["privateKeySecretRef", "server"]);
    acme
}

fn solver() -> Value {
    let parents = open(&json!({
        "group": {"type": "string", "default": "gateway.networking.k8s.io"},
        "kind": {"type": "string", "default": "Gateway"},
    }));
    let gateway = open(&json!({
        "parentRefs": {"type": "array", "items": parents},
        "podTemplate": pod_template(),
    }));
    let ingress = open(&json!({"podTemplate": pod_template()}));
    open(&json!({"http01": open(&json!({"gatewayHTTPRoute": gateway, "ingress": ingress}))}))
}

fn pod_template() -> Value {
    let secrets = json!({
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string", "default": ""}}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    });
    open(&json!({"spec": open(&json!({"imagePullSecrets": secrets}))}))
}

fn status(kind: Kind) -> Value {
    let state = json!({
        "type": "string",
        "enum": ["valid", "ready", "pending", "processing", "invalid", "expired", "errored"],
    });
    open(&match kind {
        Kind::Challenge => json!({
            "presented": {"type": "boolean"},
            "processing": {"type": "boolean"},
            "reason": {"type": "string"},
            "state": state,
        }),
        Kind::Order => json!({
            "certificate": bytes(), "reason": {"type": "string"}, "state": state,
        }),
        _ => json!({"conditions": conditions()}),
    })
}

fn conditions() -> Value {
    let mut condition = open(&json!({
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    }));
    condition["required"] = json!(["status", "type"]);
    json!({
        "type": "array",
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
