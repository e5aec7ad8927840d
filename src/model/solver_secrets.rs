//! Secrets that a DNS-01 solver needs.

use super::SecretKeySelector;
use super::field::FieldPath;
use super::own_solver::OwnSolver;
use super::solver::Dns01Solver;

impl Dns01Solver {
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
