//! Solvers that only this program has. Manifests write them as webhooks of this program's own group, so that
//! cert-manager's schema keeps them, and cert-manager itself cannot serve them.
//!
//! The group is `kubectl-acme`. If cert-manager drives the resources, `order -f` refuses such a solver. What depends
//! on whether a DNS-01 solver is one of this group stands here, too: its Secrets, and how many values it keeps.

pub mod hook;
pub mod provider;

use self::hook::Hook;
use self::provider::{EXEC, ProviderSupport, Settings};
pub use self::provider::{GROUP, MANUAL};
use super::SecretKeySelector;
use super::field::{FieldPath, Remark};
use super::solver::{Dns01Solver, Webhook};

/// Solver of this program, read and found complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnSolver {
    /// A program publishes.
    Exec(Hook),
    /// A person publishes.
    Manual,
    /// A provider of the long list publishes.
    Provider(Settings),
}

impl OwnSolver {
    /// Reads a webhook of this program's group; `None` if the group is another.
    ///
    /// # Errors
    /// Fails with every part that has to change.
    pub fn read(webhook: &Webhook, at: &FieldPath) -> Option<Result<Self, Vec<Remark>>> {
        if webhook.group_name != GROUP {
            return None;
        }
        let at_config = at.key("config");
        Some(match webhook.solver_name.as_str() {
            EXEC => Hook::read(webhook.config.as_ref(), &at_config).map(Self::Exec),
            MANUAL => Ok(Self::Manual),
            name => match provider::known(name) {
                ProviderSupport::Served(listed) => {
                    listed.read(webhook.config.as_ref(), &at_config).map(Self::Provider)
                }
                ProviderSupport::NotServed { why, instead } => Err(vec![
                    Remark::new(at.key("solverName"), format!("{name} is not served: {why}"))
                        .hint(instead),
                ]),
                ProviderSupport::Unknown { nearest } => {
                    let message = format!("there is no solver \"{name}\" of kubectl-acme");
                    let hint = format!("there are: {}", nearest.join(", "));
                    Err(vec![Remark::new(at.key("solverName"), message).hint(hint)])
                }
            },
        })
    }

    /// Returns the keys of Secrets that the solver needs.
    pub fn secrets(&self) -> Vec<SecretKeySelector> {
        match self {
            Self::Exec(hook) => hook.secrets().cloned().collect(),
            Self::Manual => Vec::new(),
            Self::Provider(settings) => settings.secrets.values().cloned().collect(),
        }
    }
}

impl Dns01Solver {
    /// Reports whether the provider is known to keep several values at one name, however soon one is added after the other.
    /// A webhook or a program may keep one, a person is asked for one record at a time, and acme-dns forgets the first.
    pub fn keeps_several_values(&self) -> bool {
        let is_one_of_many = self.webhook.as_ref().is_some_and(|webhook| {
            webhook.group_name == GROUP && ![EXEC, MANUAL].contains(&webhook.solver_name.as_str())
        });
        is_one_of_many
            || self.akamai.is_some()
            || self.azure_dns.is_some()
            || self.cloud_dns.is_some()
            || self.cloudflare.is_some()
            || self.digitalocean.is_some()
            || self.rfc2136.is_some()
            || self.route53.is_some()
    }

    /// Returns the keys of Secrets that the provider needs.
    pub fn secrets(&self) -> Vec<SecretKeySelector> {
        let mut all: Vec<&SecretKeySelector> = Vec::new();
        if let Some(p) = &self.akamai {
            all.extend([
                &p.client_token_secret_ref,
                &p.client_secret_secret_ref,
                &p.access_token_secret_ref,
            ]);
        }
        all.extend(self.cloud_dns.iter().filter_map(|p| p.service_account_secret_ref.as_ref()));
        if let Some(p) = &self.cloudflare {
            all.extend(p.api_key_secret_ref.iter().chain(p.api_token_secret_ref.iter()));
        }
        if let Some(p) = &self.route53 {
            all.extend(p.access_key_id_secret_ref.iter());
            all.push(&p.secret_access_key_secret_ref);
        }
        all.extend(self.azure_dns.iter().filter_map(|p| p.client_secret_secret_ref.as_ref()));
        all.extend(self.digitalocean.iter().map(|p| &p.token_secret_ref));
        all.extend(self.acme_dns.iter().map(|p| &p.account_secret_ref));
        all.extend(self.rfc2136.iter().map(|p| &p.tsig_secret_secret_ref));
        let own = self.webhook.iter().filter_map(|p| OwnSolver::read(p, &FieldPath::default()));
        // An own solver that cannot be read is refused elsewhere.
        let own = own.filter_map(Result::ok).flat_map(|own| own.secrets());
        let named = all.into_iter().filter(|selector| !selector.name.is_empty());
        named.cloned().chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Checks the faults of a webhook of this program's group.
    fn check(solver: &str, config: Value, expected: &[&str]) {
        let webhook = Webhook {
            group_name: GROUP.to_owned(),
            solver_name: solver.to_owned(),
            config: Some(config),
        };
        let read = OwnSolver::read(&webhook, &FieldPath::of("webhook")).unwrap();
        let said: Vec<String> = read.err().unwrap_or_default().iter().map(told).collect();
        assert_eq!(said, expected);
    }

    fn told(remark: &Remark) -> String {
        let hint = remark.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default();
        format!("{remark}{hint}")
    }

    #[test]
    fn groups_of_others_are_left_alone() {
        let webhook = Webhook { group_name: "acme.example.com".to_owned(), ..Webhook::default() };
        assert_eq!(OwnSolver::read(&webhook, &FieldPath::of("webhook")), None);
    }

    #[test]
    fn a_name_that_is_unknown_is_answered_by_the_nearest_ones_first() {
        let webhook = Webhook {
            group_name: GROUP.to_owned(),
            solver_name: "hetzer".to_owned(),
            config: None,
        };
        let read = OwnSolver::read(&webhook, &FieldPath::of("webhook")).unwrap();
        let remark = &read.unwrap_err()[0];
        let solver = "webhook.solverName: there is no solver \"hetzer\" of kubectl-acme";
        assert_eq!(remark.to_string(), solver);
        let hint = remark.hint.as_deref().unwrap();
        assert!(hint.starts_with("there are: hetzner, "), "{hint}");
        assert_eq!(hint.split(", ").count(), provider::ALL.len() + 2, "all, and exec and manual");
    }

    #[test]
    fn names_that_another_field_or_nobody_serves_say_so() {
        check(
            "cloudflare",
            json!({}),
            &[
                "webhook.solverName: cloudflare is not served: cert-manager has a field of its own for it | \
               write dns01.cloudflare in place of dns01.webhook",
            ],
        );
        check(
            "duckdns",
            json!({}),
            &[
                "webhook.solverName: duckdns is not served: it keeps one text at a name, and a second one replaces it | \
               use solverName: exec, with a program that knows what else is there",
            ],
        );
    }

    #[test]
    fn the_fields_of_a_provider_are_checked_one_by_one() {
        let key = json!({"name": "dns", "key": "token"});
        check("hetzner", json!({"apiTokenSecretRef": key}), &[]);
        check("hetzner", json!({}), &["webhook.config.apiTokenSecretRef: is required"]);
        check(
            "hetzner",
            json!({"apiToken": "hush"}),
            &[
                "webhook.config.apiToken: a credential belongs in a Secret | write apiTokenSecretRef: {name: …, key: …}",
                "webhook.config.apiTokenSecretRef: is required",
            ],
        );
        check(
            "hetzner",
            json!({"apiTokenSecretRef": {"name": "dns"}, "zone": "z"}),
            &[
                "webhook.config.apiTokenSecretRef.key: secret key is required",
                "webhook.config.zone: unknown field | hetzner has: apiTokenSecretRef",
            ],
        );
        check(
            "hetzner",
            json!({"apiTokenSecretRef": "dns"}),
            &["webhook.config.apiTokenSecretRef: must be an object with name and key"],
        );
        check("hetzner", json!([]), &["webhook.config: must be an object"]);
        check(
            "pdns",
            json!({"apiKeySecretRef": key, "endpoint": "dns.example.com:8081"}),
            &["webhook.config.endpoint: \"dns.example.com:8081\" is not an http or https URL"],
        );
        check(
            "inwx",
            json!({"username": ["u"], "passwordSecretRef": key, "sandbox": "yes"}),
            &[
                "webhook.config.username: must be text",
                "webhook.config.sandbox: must be true or false",
            ],
        );
        check(
            "cloudns",
            json!({"authPasswordSecretRef": key}),
            &["webhook.config: one of authID, subAuthID is required"],
        );
    }

    #[test]
    fn the_program_of_a_hook_and_its_surroundings_are_checked() {
        let secret = json!({"secretKeyRef": {"name": "dns", "key": "token"}});
        check("exec", json!({"command": ["./dns.sh"]}), &[]);
        check(
            "exec",
            json!({"command": ["dns", "--fast"], "args": ["a"], "timeoutSeconds": 5,
                "env": [{"name": "A", "value": "1"}, {"name": "TOKEN", "valueFrom": secret}]}),
            &[],
        );
        check("exec", json!({}), &["webhook.config: missing field `command`"]);
        check("exec", Value::Null, &["webhook.config: missing field `command`"]);
        check(
            "exec",
            json!({"command": []}),
            &["webhook.config.command: must begin with a program"],
        );
        check(
            "exec",
            json!({"command": ["a"], "timeoutSeconds": 3600}),
            &["webhook.config.timeoutSeconds: must be from 1 to 600"],
        );
        check(
            "exec",
            json!({"command": ["a"], "env": [{"name": "A=B", "value": "1"}, {"name": "C"},
                {"name": "D", "value": "1", "valueFrom": secret},
                {"name": "E", "valueFrom": {"secretKeyRef": {"name": "", "key": "k"}}}]}),
            &[
                "webhook.config.env[0].name: \"A=B\" is not the name of a variable",
                "webhook.config.env[1]: one of value, valueFrom is required",
                "webhook.config.env[2]: one of value, valueFrom is required",
                "webhook.config.env[3].valueFrom.secretKeyRef.name: secret name is required",
            ],
        );
    }
}
