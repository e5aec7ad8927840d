//! What helps when CAA records keep a CA from issuing (RFC 8659, RFC 8657): whose records decide, and how one has to
//! read.
//!
//! A refusal for CAA exits with 4 wherever it comes: the domain has to change, not the manifest.

use std::collections::{BTreeMap, BTreeSet};

use crate::acme::TlsOptions;
use crate::ca::NO_ACCOUNT;
use crate::diagnosis::chain::Chain;
use crate::model::{Challenge, Key};

/// How the problem of a refused name begins, at Boulder and at our own CA.
const NAME: &str = "While processing CAA for ";
/// How its reason begins when records exclude the CA.
const OWNER: &str = " CAA record for ";
/// What stands before a name whose records could not be looked up.
const LOST: &str = " looking up CAA for ";
/// Most hints of one sort.
const MOST: usize = 3;

/// A CA that is kept from issuing.
#[derive(Clone, Debug)]
pub struct Excluded {
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

impl Excluded {
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
        let (bound, others): (Vec<_>, Vec<_>) =
            refused(reason).partition(|refused| refused.is_bound);
        let bound: BTreeSet<String> = bound.into_iter().map(|refused| refused.owner).collect();
        let mut names: BTreeMap<String, String> =
            others.into_iter().map(|refused| (refused.name, refused.owner)).collect();
        let lost = reason.split(LOST).skip(1).filter_map(|rest| plain(word(rest)));
        let lost = lost.map(ToOwned::to_owned).collect();
        let refused = challenges.iter().filter(|challenge| is_caa(&challenge.status.reason));
        let methods = refused.clone().map(|challenge| challenge.spec.kind.acme_name()).collect();
        if names.is_empty() && bound.is_empty() && is_caa(reason) {
            // A CA with words of its own: its types of problems are everybody's.
            names.extend(refused.map(|challenge| (ordered(challenge), String::new())));
        }
        Self { names, bound, lost, methods, issuer, ca: None }
    }

    /// Where the CA can be asked by which name records have to call it: its directory and whom to trust there; nothing where no
    /// hint would name it.
    pub fn ca(&self) -> Option<&(String, TlsOptions)> {
        self.ca.as_ref().filter(|_| !self.names.is_empty())
    }

    /// What helps, with the names by which the CA says that records have to call it.
    pub fn hints(&self, identities: &[String]) -> Vec<String> {
        self.hints_naming(identities.iter().find_map(|identity| plain(identity)))
    }

    fn hints_naming(&self, identity: Option<&str>) -> Vec<String> {
        let lost = self.lost.iter().take(MOST).map(|owner| {
            format!("see that the name servers of {owner} answer questions for CAA records, if only with none: dig {owner} CAA")
        });
        let issuer = &self.issuer;
        let bound = self.bound.iter().take(MOST).map(|owner| {
            format!(
                "the account of {issuer} is made with its first order, and no CAA record can name it before: have \
                 {issuer} registered alone (order -f), then let the record of {owner} have its status.acme.uri as accounturi"
            )
        });
        let names = self.names.iter().take(MOST).map(|(name, owner)| {
            let (tag, base) = match name.strip_prefix("*.") {
                Some(base) => ("issuewild", base),
                None => ("issue", name.as_str()),
            };
            let (owner, place) = match owner.as_str() {
                "" => (base, format!("{base}, or of the nearest name above it that has some,")),
                owner => (owner, owner.to_owned()),
            };
            let value = identity.unwrap_or("DOMAIN");
            format!(
                "the CAA records of {place} decide for {name} (dig {owner} CAA): let one of them name the CA, as in \
                 {owner}. CAA 0 {tag} \"{value}\""
            )
        });
        let mut hints: Vec<String> = lost.chain(bound).chain(names).collect();
        if self.names.is_empty() {
            return hints;
        }
        if identity.is_none() {
            hints
                .push("DOMAIN is what the CA's own documentation tells for CAA records".to_owned());
        }
        let methods = self.methods.iter().copied().collect::<Vec<_>>().join(" and ");
        let methods = match methods.as_str() {
            "" => String::new(),
            methods => format!(", and its validationmethods have to include {methods}"),
        };
        hints.push(format!(
            "a record that names the CA already may hold conditions: its accounturi has to be the account of {issuer} \
             (status.acme.uri){methods}"
        ));
        hints
    }
}

/// Tells whether a text quotes a problem of this sort, whatever the namespace of its type.
fn is_caa(text: &str) -> bool {
    text.split_whitespace().any(|word| word.ends_with(":caa:"))
}

/// A name that is refused.
struct Refused {
    name: String,
    /// Whose records exclude the CA.
    owner: String,
    /// Whether an account is all that is missing.
    is_bound: bool,
}

/// The names that are refused in a text.
fn refused(text: &str) -> impl Iterator<Item = Refused> + '_ {
    text.split(NAME).skip(1).filter_map(|rest| {
        let (name, why) = rest.split_once(':')?;
        let owner = why.strip_prefix(OWNER)?;
        let (name, owner) = (plain(name)?.to_owned(), plain(word(owner))?.to_owned());
        Some(Refused { name, owner, is_bound: rest.contains(NO_ACCOUNT) })
    })
}

/// A name as it may stand in a command to copy: what is quoted was said by somebody else.
fn plain(name: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._*".contains(c);
    (!name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)).then_some(name)
}

/// The first word of a text, without punctuation behind it.
fn word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default().trim_end_matches([';', ',', '.'])
}

/// The name of a challenge as it was ordered.
fn ordered(challenge: &Challenge) -> String {
    let name = &challenge.spec.dns_name;
    if challenge.spec.wildcard { format!("*.{name}") } else { name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ChallengeType, Kind, ObjectName};
    use crate::reconcile::testing::challenge;

    /// The hints for a reason, at a CA that calls itself so.
    fn check(reason: &str, challenges: &[Challenge], identity: Option<&str>, expected: &[&str]) {
        let issuer = Key::new(Kind::Issuer, ObjectName::new("web", "acme"));
        let challenges: Vec<&Challenge> = challenges.iter().collect();
        let hints = Excluded::read(reason, &challenges, issuer).hints_naming(identity);
        assert_eq!(hints, expected, "{reason}");
    }

    fn refused_by(kind: ChallengeType, wildcard: bool, reason: &str) -> Challenge {
        let challenge = challenge("www.example.com").change(|c| {
            c.spec.kind = kind;
            c.spec.wildcard = wildcard;
            c.status.reason = reason.to_owned();
        });
        challenge.build()
    }

    const CONDITIONS: &str = "a record that names the CA already may hold conditions: its accounturi has to be the account of \
                              Issuer web/acme (status.acme.uri)";

    #[test]
    fn the_record_that_decides_is_named_and_how_it_has_to_read() {
        let reason = "acme: authorization error for www.example.com: 403 urn:ietf:params:acme:error:caa: While processing CAA for \
                      www.example.com: CAA record for example.com prevents issuance";
        let conditions = format!("{CONDITIONS}, and its validationmethods have to include http-01");
        let record = "the CAA records of example.com decide for www.example.com (dig example.com CAA): let one of them name the \
                      CA, as in example.com. CAA 0 issue \"ca.example\"";
        let challenges = [refused_by(ChallengeType::Http01, false, reason)];
        check(reason, &challenges, Some("ca.example"), &[record, &conditions]);
    }

    #[test]
    fn wildcards_have_a_tag_of_their_own() {
        let reason = "Failed to finalize Order: 403 urn:ietf:params:acme:error:caa: Error finalizing order :: rechecking caa: \
                      While processing CAA for *.example.com: CAA record for example.com prevents issuance";
        let record = "the CAA records of example.com decide for *.example.com (dig example.com CAA): let one of them name the \
                      CA, as in example.com. CAA 0 issuewild \"ca.example\"";
        check(reason, &[], Some("ca.example"), &[record, CONDITIONS]);
    }

    #[test]
    fn the_words_of_other_cas_need_not_name_the_record() {
        let reason = "403 urn:ietf:params:acme:error:caa: not permitted";
        let conditions = format!("{CONDITIONS}, and its validationmethods have to include dns-01");
        let record = "the CAA records of www.example.com, or of the nearest name above it that has some, decide for \
                      *.www.example.com (dig www.example.com CAA): let one of them name the CA, as in www.example.com. CAA 0 \
                      issuewild \"DOMAIN\"";
        let domain = "DOMAIN is what the CA's own documentation tells for CAA records";
        let challenges = [refused_by(ChallengeType::Dns01, true, reason)];
        check(reason, &challenges, None, &[record, domain, &conditions]);
    }

    #[test]
    fn an_account_that_is_yet_to_be_made_is_made_first() {
        let reason = format!(
            "403 urn:ietf:params:acme:error:caa: While processing CAA for a.example.com: CAA record for example.com prevents \
             issuance: {NO_ACCOUNT}; 403 urn:ietf:params:acme:error:caa: While processing CAA for b.example.com: CAA record for \
             b.example.com prevents issuance"
        );
        let account = "the account of Issuer web/acme is made with its first order, and no CAA record can name \
                       it before: have Issuer web/acme registered alone (order -f), then let the record of example.com have its \
                       status.acme.uri as accounturi";
        let record = "the CAA records of b.example.com decide for b.example.com (dig b.example.com CAA): let one of them name \
                      the CA, as in b.example.com. CAA 0 issue \"ca.example\"";
        check(&reason, &[], Some("ca.example"), &[account, record, CONDITIONS]);
    }

    #[test]
    fn what_is_no_name_is_not_put_into_commands() {
        for (name, owner) in
            [("$(id)", "example.com"), ("a.example.com", "$(id)"), ("a\nerror", "-f")]
        {
            let reason = format!(
                "403 urn:ietf:params:acme:error:caa: While processing CAA for {name}: CAA record for {owner} prevents issuance"
            );
            check(&reason, &[], None, &[]);
        }
        check(
            "400 urn:ietf:params:acme:error:dns: SERVFAIL looking up CAA for `id`",
            &[],
            None,
            &[],
        );
    }

    #[test]
    fn records_that_cannot_be_looked_up_are_the_name_servers_fault() {
        let reason = "400 urn:ietf:params:acme:error:dns: While processing CAA for a.example.com: DNS problem: SERVFAIL looking up \
                      CAA for example.com - the domain's nameservers may be malfunctioning";
        let servers = "see that the name servers of example.com answer questions for CAA records, if only with none: dig \
                       example.com CAA";
        check(reason, &[], Some("ca.example"), &[servers]);
        check("400 urn:ietf:params:acme:error:dns: NXDOMAIN looking up A for a", &[], None, &[]);
    }
}
