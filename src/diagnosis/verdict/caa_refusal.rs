//! Steps that help when CAA records keep a CA from issuing (RFC 8659, RFC 8657): whose records decide, and which values
//! these records need.
//!
//! A refusal because of CAA always exits with 4: the domain has to change, not the manifest.

use std::collections::{BTreeMap, BTreeSet};

use super::next_step::CaaStep;
use crate::acme::TlsOptions;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::words::foreign;
use crate::model::names::shown_domain;
use crate::model::{Challenge, Key};

/// Maximum number of steps of one sort.
const MAX_STEPS_PER_SORT: usize = 3;

/// Refusal of a CA to issue because of CAA records.
#[derive(Clone, Debug)]
pub struct CaaRefusal {
    /// Names as ordered, each with the owner of the records that decide; the owner is empty if the CA does not name it.
    names: BTreeMap<String, String>,
    /// Owners of records that are for one account, if the issuer of a rehearsal has no account yet.
    bound: BTreeSet<String>,
    /// Owners of records that could not be looked up.
    lost: BTreeSet<String>,
    /// ACME names of the challenge types of the refused names.
    methods: BTreeSet<&'static str>,
    issuer: Key,
    /// Directory URL and TLS settings, to ask the CA by which names CAA records call it.
    ca: Option<(String, TlsOptions)>,
}

impl CaaRefusal {
    /// Reads from the reason and the challenges of a failed order which names CAA records keep from the CA; `None` if
    /// there are none.
    pub fn of(chain: &Chain, challenges: &[&Challenge], reason: &str) -> Option<Self> {
        let acme = chain.issuer.as_ref().and_then(|issuer| issuer.spec.acme.as_ref());
        let trust = |bundle: &[u8], skip_verify| {
            let ca_bundle = bundle.to_vec();
            TlsOptions { ca_bundle, skip_verify }
        };
        let ca =
            acme.map(|acme| (acme.server.clone(), trust(&acme.ca_bundle.0, acme.skip_tls_verify)));
        let issuer = chain.named_issuer();
        let excluded = Self { ca, ..Self::read(reason, challenges, issuer) };
        let Self { names, bound, lost, .. } = &excluded;
        let is_one = !names.is_empty() || !bound.is_empty() || !lost.is_empty();
        is_one.then_some(excluded)
    }

    fn read(reason: &str, challenges: &[&Challenge], issuer: Key) -> Self {
        let (mut bound, mut names) = (BTreeSet::new(), BTreeMap::new());
        for refused in foreign::refused_by_caa(reason) {
            let (Some(name), Some(owner)) = (plain(refused.name), plain(refused.owner)) else {
                continue;
            };
            if refused.is_bound {
                bound.insert(owner.to_owned());
            } else {
                names.insert(name.to_owned(), owner.to_owned());
            }
        }
        let lost = foreign::lost_caa(reason).filter_map(plain).map(ToOwned::to_owned).collect();
        let refused = challenges.iter().filter(|c| foreign::is_caa(&c.status.reason));
        let methods = refused.clone().map(|challenge| challenge.spec.kind.acme_name()).collect();
        if names.is_empty() && bound.is_empty() && foreign::is_caa(reason) {
            // A CA with wording of its own: only the type of its problem is standard.
            names.extend(refused.map(|challenge| (ordered_name(challenge), String::new())));
        }
        Self { names, bound, lost, methods, issuer, ca: None }
    }

    /// Returns the directory URL and the TLS settings to ask the CA for the names by which records have to call the CA;
    /// `None` if no step would use such a name.
    pub fn ca(&self) -> Option<&(String, TlsOptions)> {
        self.ca.as_ref().filter(|_| !self.names.is_empty())
    }

    /// Returns the steps that help. `identities` are the names by which records have to call the CA, as the CA says.
    pub fn steps(&self, identities: &[String]) -> Vec<CaaStep> {
        let identity = identities.iter().find_map(|identity| plain(identity));
        let issuer = &self.issuer;
        let lost = self.lost.iter().take(MAX_STEPS_PER_SORT).cloned().map(CaaStep::Servers);
        let bound = self.bound.iter().take(MAX_STEPS_PER_SORT).cloned();
        let bound = bound.map(|owner| CaaStep::AccountFirst { issuer: issuer.clone(), owner });
        let names = self.names.iter().take(MAX_STEPS_PER_SORT).map(|(name, owner)| {
            CaaStep::NameAuthority {
                name: name.clone(),
                owner: owner.clone(),
                identity: identity.map(ToOwned::to_owned),
            }
        });
        let mut steps: Vec<CaaStep> = lost.chain(bound).chain(names).collect();
        if !self.names.is_empty() {
            steps.extend(identity.is_none().then_some(CaaStep::IdentityInDocumentation));
            let methods = self.methods.iter().copied().collect();
            steps.push(CaaStep::Conditions { issuer: issuer.clone(), methods });
        }
        steps
    }
}

/// Returns `name` if it is safe in a command to copy: quoted names come from others.
fn plain(name: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._*".contains(c);
    (!name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)).then_some(name)
}

/// Returns the name of a challenge as it was ordered.
fn ordered_name(challenge: &Challenge) -> String {
    let name = &challenge.spec.dns_name;
    shown_domain(name, challenge.spec.wildcard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ca::NO_ACCOUNT;
    use crate::model::{ChallengeType, Kind, ObjectName};
    use crate::reconcile::testing::challenge;

    fn issuer() -> Key {
        Key::new(Kind::Issuer, ObjectName::new("web", "acme"))
    }

    /// Checks the steps against a reason, at a CA that CAA records call `ca.example`.
    #[track_caller]
    fn check(reason: &str, challenges: &[Challenge], expected: &[CaaStep]) {
        let challenges: Vec<&Challenge> = challenges.iter().collect();
        let steps =
            CaaRefusal::read(reason, &challenges, issuer()).steps(&["ca.example".to_owned()]);
        assert_eq!(steps, expected, "{reason}");
    }

    fn refused_by(kind: ChallengeType, wildcard: bool, reason: &str) -> Challenge {
        let challenge = challenge("www.example.com").change(|c| {
            c.spec.kind = kind;
            c.spec.wildcard = wildcard;
            c.status.reason = reason.to_owned();
        });
        challenge.build()
    }

    fn named(name: &str, owner: &str) -> CaaStep {
        let [name, owner] = [name, owner].map(str::to_owned);
        CaaStep::NameAuthority { name, owner, identity: Some("ca.example".to_owned()) }
    }

    fn conditions(methods: &[&'static str]) -> CaaStep {
        CaaStep::Conditions { issuer: issuer(), methods: methods.to_vec() }
    }

    #[test]
    fn the_record_that_decides_is_named_and_how_it_has_to_read() {
        let reason = "acme: authorization error for www.example.com: 403 urn:ietf:params:acme:error:caa: While processing CAA for \
                      www.example.com: CAA record for example.com prevents issuance";
        let challenges = [refused_by(ChallengeType::Http01, false, reason)];
        let steps = [named("www.example.com", "example.com"), conditions(&["http-01"])];
        check(reason, &challenges, &steps);
    }

    #[test]
    fn wildcards_keep_their_star() {
        let reason = "Failed to finalize Order: 403 urn:ietf:params:acme:error:caa: Error finalizing order :: rechecking caa: \
                      While processing CAA for *.example.com: CAA record for example.com prevents issuance";
        check(reason, &[], &[named("*.example.com", "example.com"), conditions(&[])]);
    }

    #[test]
    fn the_words_of_other_cas_need_not_name_the_record() {
        let reason = "403 urn:ietf:params:acme:error:caa: not permitted";
        let challenges = [refused_by(ChallengeType::Dns01, true, reason)];
        check(reason, &challenges, &[named("*.www.example.com", ""), conditions(&["dns-01"])]);
        let challenges: Vec<&Challenge> = challenges.iter().collect();
        let steps = CaaRefusal::read(reason, &challenges, issuer()).steps(&[]);
        assert_eq!(steps[1], CaaStep::IdentityInDocumentation);
    }

    #[test]
    fn an_account_that_is_yet_to_be_made_is_made_first() {
        let reason = format!(
            "403 urn:ietf:params:acme:error:caa: While processing CAA for a.example.com: CAA record for example.com prevents \
             issuance: {NO_ACCOUNT}; 403 urn:ietf:params:acme:error:caa: While processing CAA for b.example.com: CAA record for \
             b.example.com prevents issuance"
        );
        let account = CaaStep::AccountFirst { issuer: issuer(), owner: "example.com".to_owned() };
        let steps = [account, named("b.example.com", "b.example.com"), conditions(&[])];
        check(&reason, &[], &steps);
    }

    #[test]
    fn what_is_no_name_is_not_put_into_commands() {
        for (name, owner) in
            [("$(id)", "example.com"), ("a.example.com", "$(id)"), ("a\nerror", "-f")]
        {
            let reason = format!(
                "403 urn:ietf:params:acme:error:caa: While processing CAA for {name}: CAA record for {owner} prevents issuance"
            );
            check(&reason, &[], &[]);
        }
        check("400 urn:ietf:params:acme:error:dns: SERVFAIL looking up CAA for `id`", &[], &[]);
    }

    #[test]
    fn records_that_cannot_be_looked_up_are_the_name_servers_fault() {
        let reason = "400 urn:ietf:params:acme:error:dns: While processing CAA for a.example.com: DNS problem: SERVFAIL looking up \
                      CAA for example.com - the domain's nameservers may be malfunctioning";
        check(reason, &[], &[CaaStep::Servers("example.com".to_owned())]);
        check("400 urn:ietf:params:acme:error:dns: NXDOMAIN looking up A for a", &[], &[]);
    }
}
