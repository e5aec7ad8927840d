//! What helps when CAA records keep a CA from issuing (RFC 8659, RFC 8657): whose records decide, and how one has to
//! read.
//!
//! A refusal for CAA exits with 4 wherever it comes: the domain has to change, not the manifest.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::Chain;
use super::foreign;
use super::next_step::CaaStep;
use crate::acme::TlsOptions;
use crate::model::names::shown_domain;
use crate::model::{Challenge, Key};

/// Most steps of one sort.
const MOST: usize = 3;

/// A CA that is kept from issuing.
#[derive(Clone, Debug)]
pub struct CaaRefusal {
    /// Names, as ordered, and whose records decide; empty where the CA does not tell.
    names: BTreeMap<String, String>,
    /// Whose records are for one account, where the issuer of a rehearsal has none yet.
    bound: BTreeSet<String>,
    /// Whose records could not be looked up.
    lost: BTreeSet<String>,
    /// How control of them was to be shown.
    methods: BTreeSet<&'static str>,
    issuer: Key,
    /// Where the CA is asked who it is.
    ca: Option<(String, TlsOptions)>,
}

impl CaaRefusal {
    /// Reads from the reason of a failed order and its failed challenges which names the CA may not have for want of a CAA record, if
    /// any.
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
            // A CA with words of its own: its types of problems are everybody's.
            names.extend(refused.map(|challenge| (ordered(challenge), String::new())));
        }
        Self { names, bound, lost, methods, issuer, ca: None }
    }

    /// Where the CA can be asked by which name records have to call it: its directory and whom to trust there; nothing where no
    /// step would name it.
    pub fn ca(&self) -> Option<&(String, TlsOptions)> {
        self.ca.as_ref().filter(|_| !self.names.is_empty())
    }

    /// What helps, with the names by which the CA says that records have to call it.
    pub fn steps(&self, identities: &[String]) -> Vec<CaaStep> {
        let identity = identities.iter().find_map(|identity| plain(identity));
        let issuer = &self.issuer;
        let lost = self.lost.iter().take(MOST).cloned().map(CaaStep::Servers);
        let bound = self.bound.iter().take(MOST).cloned();
        let bound = bound.map(|owner| CaaStep::AccountFirst { issuer: issuer.clone(), owner });
        let names = self.names.iter().take(MOST).map(|(name, owner)| CaaStep::NameAuthority {
            name: name.clone(),
            owner: owner.clone(),
            identity: identity.map(ToOwned::to_owned),
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

/// A name as it may stand in a command to copy: what is quoted was said by somebody else.
fn plain(name: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._*".contains(c);
    (!name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)).then_some(name)
}

/// The name of a challenge as it was ordered.
fn ordered(challenge: &Challenge) -> String {
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

    /// What helps against a reason, at a CA that calls itself `ca.example`.
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
