//! Rehearsal on loopback of names that a dns01 solver answers: a zone in memory replaces the provider and the real zone.

use serde_json::{Value, json};

use crate::model::{Kind, Record};

/// Replaces every DNS-01 provider of the Issuers by the zone in memory; selectors stay, and decide as before. Returns
/// whether there was a provider.
pub(super) fn answer_by_memory(records: &mut [Record]) -> bool {
    let issuers = records
        .iter_mut()
        .filter(|record| matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer));
    let mut is_any = false;
    for record in issuers {
        let solvers = record.object.pointer_mut("/spec/acme/solvers").and_then(Value::as_array_mut);
        for solver in solvers.into_iter().flatten() {
            if solver.get("dns01").is_some_and(|dns01| !dns01.is_null()) {
                solver["dns01"] =
                    json!({"webhook": {"groupName": "memory", "solverName": "memory"}});
                is_any = true;
            }
        }
    }
    is_any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_in_memory_stands_in_for_each_provider() {
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer",
            "metadata": {"name": "acme"},
            "spec": {"acme": {
                "server": "https://ca.example/directory", "privateKeySecretRef": {"name": "key"},
                "solvers": [
                    {"http01": {"ingress": {}}, "dns01": null},
                    {"dns01": {"cloudflare": {"apiTokenSecretRef": {"name": "dns", "key": "token"}}},
                     "selector": {"dnsZones": ["example.com"]}},
                ],
            }},
        });
        let mut records = [Record::new(issuer).unwrap()];
        assert!(answer_by_memory(&mut records));
        let solvers = &records[0].object["spec"]["acme"]["solvers"];
        assert_eq!(solvers[0], json!({"http01": {"ingress": {}}, "dns01": null}));
        assert_eq!(solvers[1]["selector"], json!({"dnsZones": ["example.com"]}));
        assert!(solvers[1]["dns01"].get("cloudflare").is_none(), "its Secret is not looked for");
        let http = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}"#;
        assert!(!answer_by_memory(
            &mut [Record::new(serde_json::from_str(http).unwrap()).unwrap()]
        ));
    }
}
