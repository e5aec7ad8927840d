//! The next step: what helps against which obstacle, one line each.
//!
//! What helps against an answer that is not seen, and the command lines that look again, are the same for `order` and
//! for `challenge check`: one fault has one next step.

pub mod caa;
mod http01;
pub(crate) mod reproduce;
pub mod self_check;

use self::self_check::RESOLVER;
use crate::acme::AccountKey;
use crate::acme::error::{self, AcmeError, Fault, Sort};
use crate::app::failure::{Failure, Kind as FailureKind, STORE, exposed};
use crate::app::invocation;
use crate::controllers::ReconcileError;
use crate::model::{Challenge, Key, Problem};
use crate::store::error::StoreError;

/// An issuer, as whoever is to change it knows it.
#[derive(Clone, Copy, Debug)]
struct Site<'a> {
    issuer: &'a Key,
    /// Whether it was made from the flags of this command, so that there is no manifest to change.
    is_made: bool,
}

impl<'a> Site<'a> {
    fn of(issuer: &'a Key) -> Self {
        Self { issuer, is_made: invocation::current().is_given_names() }
    }

    /// What says where the CA is.
    fn server(self) -> String {
        if self.is_made {
            return "--server".to_owned();
        }
        format!("spec.acme.server of {}", self.issuer)
    }

    /// What says whom the CA may write to.
    fn email(self) -> String {
        if self.is_made {
            "--email".to_owned()
        } else {
            format!("spec.acme.email of {}", self.issuer)
        }
    }

    /// How a field is reached for which there is no flag: it begins with a deed, as in `put the root into`.
    fn change(self, deed: &str, field: &str) -> String {
        if !self.is_made {
            return format!("{deed} {field} of {}", self.issuer);
        }
        format!(
            "write the manifests down: {} --dry-run=client -o yaml > FILE.yaml; {deed} {field} there; and run: {}",
            invocation::current().again(),
            invocation::current().like("order -f FILE.yaml")
        )
    }
}

/// What helps against a fault that stands in the way of an object whose issuer this is.
pub fn for_error(error: &ReconcileError, issuer: &Key) -> Option<String> {
    match error {
        ReconcileError::Acme(error) => for_ca(error, Site::of(issuer)),
        ReconcileError::Store(StoreError::Unusable { .. }) => Some(STORE.to_owned()),
        ReconcileError::Store(StoreError::Exposed { place, exposure }) => {
            Some(exposed(place, *exposure))
        }
        ReconcileError::Store(error) => {
            error.hints_by(&invocation::current().kubectl_program()).into_iter().next()
        }
        ReconcileError::Solve(error) => {
            error.hint.clone().or_else(|| self_check::dns_advice(&error.to_string()))
        }
        ReconcileError::Missing(_) => None,
        // What waits goes on by itself.
        ReconcileError::OverBudget(over) if over.until.is_some() => None,
        ReconcileError::OverBudget(_) => Some(format!(
            "nothing more is asked of the CA in this run; see why the order before brought nothing, then {} asks once more",
            invocation::current().again()
        )),
        ReconcileError::NameConflict(taken) => Some(taken.hint()),
        ReconcileError::Panicked => Some("please report it, with what stands on stderr".to_owned()),
    }
}

fn for_ca(error: &AcmeError, site: Site<'_>) -> Option<String> {
    let server = site.server();
    Some(match (error, error.sort()) {
        (AcmeError::Transport { fault: Fault::Untrusted, .. }, _) => {
            let change = site.change("put the CA's root into", "spec.acme.caBundle");
            if site.is_made { change } else { format!("{change}, or set skipTLSVerify for a test") }
        }
        (AcmeError::Transport { fault: Fault::NoSuchHost, why, .. }, _)
            if why.starts_with("no such host") =>
        {
            format!("check {server}, and {RESOLVER}")
        }
        (AcmeError::Transport { fault: Fault::NoSuchHost, .. }, _) => format!("check {server}"),
        (AcmeError::Transport { fault: Fault::Lookup, .. }, _) => format!("check {RESOLVER}"),
        (AcmeError::Transport { fault: Fault::Passing, .. }, _) => {
            format!("check {server}, and whether this machine may connect there (firewall, proxy)")
        }
        (AcmeError::NotAcme { .. } | AcmeError::Protocol { .. }, _) => format!(
            "check that {server} is the URL of an ACME directory, and that no proxy answers in the CA's place"
        ),
        (AcmeError::Refused { problem, .. }, _) if needs_user(problem.short_kind()) => {
            for_pages(problem)
        }
        (AcmeError::Refused { .. }, Sort::Unavailable) => {
            "the fault is the CA's own; its status page may tell more".to_owned()
        }
        (AcmeError::Refused { problem, .. }, _) if !problem.pages().is_empty() => {
            format!("the CA says more at {}", problem.pages().join(" and "))
        }
        (AcmeError::Refused { .. }, _) => return None,
    })
}

/// What helps when an Issuer has no account at its CA; the problem is the CA's, where it has answered. `account_key` is the name
/// of the Secret with the account key.
pub fn for_issuer(
    problem: Option<&Problem>,
    message: &str,
    issuer: &Key,
    account_key: &str,
) -> String {
    for_site(problem, message, account_key, Site::of(issuer))
}

/// What helps when a Secret that a dns01 solver of an Issuer names is not there, or lacks its key.
pub fn for_solver_secrets(issuer: &Key) -> String {
    format!(
        "make that Secret in {}, or name another one in {issuer}; then run the same command again",
        namespace_of_secrets(issuer)
    )
}

fn namespace_of_secrets(issuer: &Key) -> String {
    match issuer.name.namespace.as_str() {
        "" => "the namespace for Secrets of ClusterIssuers (--cluster-resource-namespace of whoever drives)".to_owned(),
        namespace => format!("namespace {namespace}"),
    }
}

/// Tells whether a problem of that type ends by a deed of the user at the CA.
fn needs_user(kind: &str) -> bool {
    matches!(kind, "userActionRequired" | "agreementRequired")
}

/// What helps when only a deed of the user at the CA lets things go on.
fn for_pages(problem: &Problem) -> String {
    match &problem.pages()[..] {
        [] => "do what the CA asks for in its answer, such as an agreement to its new terms"
            .to_owned(),
        pages => format!("open {} and do what the CA asks for there", pages.join(" and ")),
    }
}

fn for_site(problem: Option<&Problem>, message: &str, account_key: &str, site: Site<'_>) -> String {
    let (issuer, binding) = (site.issuer, "spec.acme.externalAccountBinding");
    let secret = || format!("Secret {account_key} in {}", namespace_of_secrets(issuer));
    let known = problem.map(|problem| (problem.short_kind(), problem.status, problem));
    let change = match known {
        Some(("externalAccountRequired", ..)) if site.is_made => {
            return site.change("name a key ID and an HMAC key of the CA's in", binding);
        }
        Some(("externalAccountRequired", ..)) => format!(
            "get a key ID and an HMAC key from the CA, and name them in {binding} of {issuer}"
        ),
        Some(_) if message.contains("xternal account binding") => {
            format!("compare key ID and HMAC key in {binding} of {issuer} with those the CA gave")
        }
        Some(("invalidContact" | "invalidEmail" | "unsupportedContact", ..)) => {
            format!("change {}", site.email())
        }
        Some((kind, _, problem)) if needs_user(kind) => for_pages(problem),
        Some(("badPublicKey" | "badSignatureAlgorithm", _, problem))
            if problem.algorithms.is_empty() =>
        {
            format!(
                "put an account key of another kind into {} (RSA, ECDSA P-256 or P-384)",
                secret()
            )
        }
        Some(("badSignatureAlgorithm", _, problem))
            if AccountKey::algorithm_among(&problem.algorithms).is_none() =>
        {
            let taken = problem.algorithms.join(", ");
            format!("ask another CA: of {taken} this program signs with none")
        }
        Some((
            "accountDoesNotExist" | "badPublicKey" | "badSignatureAlgorithm" | "unauthorized",
            ..,
        )) => {
            let change = site.change("name another Secret in", "spec.acme.privateKeySecretRef");
            let why = format!("the CA does not take the account key in {}", secret());
            if site.is_made {
                return format!("{why}: {change}");
            }
            format!("{why}: {change}, for a new key")
        }
        Some((_, 404, _)) => {
            format!("{} must be the URL of an ACME directory", site.server())
        }
        _ if site.is_made => format!("change {} or {}", site.server(), site.email()),
        None if message.contains("\" not found in namespace ") => {
            format!("add that Secret to the manifests, or change {issuer}")
        }
        Some(_) | None => format!("change {issuer}"),
    };
    format!("{change}; then run the same command again")
}

/// What helps when an order of that issuer failed so.
pub fn for_order(
    failure: Failure,
    problem: Option<&Problem>,
    challenge: Option<&Challenge>,
    (issuer, in_cluster): (&Key, bool),
) -> Failure {
    match (failure.kind, problem.map(Problem::short_kind), challenge) {
        (FailureKind::Validation, _, Some(challenge)) => {
            failure.hint(self_check::advice(challenge, &challenge.status.reason, in_cluster))
        }
        (FailureKind::Account, Some(kind), _) if needs_user(kind) => {
            let deed = problem.map(for_pages).unwrap_or_default();
            failure.hint(format!("{deed}; then run the same command again"))
        }
        (
            FailureKind::Account,
            Some("accountDoesNotExist" | "badSignatureAlgorithm" | "unauthorized"),
            _,
        ) => failure.hint(format!(
            "the CA takes no orders from this account any more: name another Secret in spec.acme.privateKeySecretRef of {issuer} \
             for an account with a new key, or ask the CA"
        )),
        // The page that lifts the pause stands in the CA's words.
        (FailureKind::RateLimited, _, _) if problem.is_some_and(error::says_paused) => failure.hint(
            "do what the CA asks for in its answer; waiting alone does not help; then run the same command again",
        ),
        // cert-manager waits for no limit.
        (FailureKind::RateLimited, _, _) => failure
            .hint("run the same command again once the limit is over; the CA's answer says more"),
        (FailureKind::Usage, Some("invalidProfile"), _) => failure.hint(format!(
            "choose another spec.acme.profile of {issuer}, or leave it out for the CA's own choice"
        )),
        (FailureKind::Usage, Some("rejectedIdentifier" | "unsupportedIdentifier"), _) => {
            failure.hint("take the name out of the Certificate, or ask another CA for it")
        }
        _ => failure,
    }
}

/// Adds the commands that show more of an order that failed.
pub fn where_to_look(failure: Failure, certificate: &Key, order: &str) -> Failure {
    let name = &certificate.name;
    let order = invocation::current().like_in(&name.namespace, &format!("describe order/{order}"));
    let timeline = invocation::current()
        .like_in(&name.namespace, &format!("timeline certificate/{}", name.name));
    failure
        .hint(format!("{order} shows the CA's answers"))
        .hint(format!("{timeline} shows every step"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, ObjectName};

    /// The hint against a fault of transport, for an issuer of a manifest and for one that `--domain` made.
    fn check_ca(fault: Fault, why: &str, of_manifest: &str, made: &str) {
        let issuer = Key::new(Kind::Issuer, ObjectName::new("default", "acme"));
        let (url, why) = ("https://ca.example/dir".to_owned(), why.to_owned());
        let error = AcmeError::Transport { deed: "read", url, why, fault };
        for (is_made, expected) in [(false, of_manifest), (true, made)] {
            let hint = for_ca(&error, Site { issuer: &issuer, is_made }).unwrap();
            assert!(hint.contains(expected), "{hint}");
            assert_eq!(hint.contains("Issuer default/acme"), !is_made && hint.contains("spec."));
        }
    }

    #[test]
    fn an_issuer_that_was_made_from_flags_is_changed_by_flags() {
        let refused = "Connection refused";
        check_ca(
            Fault::Passing,
            refused,
            "check spec.acme.server of Issuer",
            "check --server, and",
        );
        let host = "no such host ca.example";
        let [manifest, made] = ["spec.acme.server of Issuer default/acme", "--server"];
        let [manifest, made] = [manifest, made].map(|at| format!("check {at}, and {RESOLVER}"));
        check_ca(Fault::NoSuchHost, host, &manifest, &made);
        check_ca(
            Fault::NoSuchHost,
            "it is no https URL",
            "check spec.acme.server",
            "check --server",
        );
        let manifests = "--dry-run=client -o yaml > FILE.yaml; put the CA's root into";
        check_ca(Fault::Untrusted, "", "put the CA's root into spec.acme.caBundle of", manifests);
    }

    #[test]
    fn a_resolver_that_does_not_answer_is_told_from_a_wrong_server() {
        check_ca(Fault::Lookup, "cannot look up ca.example: …", RESOLVER, RESOLVER);
    }

    #[test]
    fn what_the_ca_refuses_of_a_made_issuer_is_changed_by_flags() {
        let issuer = Key::new(Kind::Issuer, ObjectName::new("default", "acme"));
        let problem = |kind: &str, status| Problem {
            kind: format!("urn:ietf:params:acme:error:{kind}"),
            status,
            ..Problem::default()
        };
        for (kind, status, expected) in [
            ("invalidContact", 400, "change --email;"),
            ("malformed", 404, "--server must be the URL of an ACME directory;"),
            ("malformed", 400, "change --server or --email;"),
            ("invalidEmail", 400, "change --email;"),
            (
                "unauthorized",
                403,
                "name another Secret in spec.acme.privateKeySecretRef there; and run:",
            ),
            ("externalAccountRequired", 400, "spec.acme.externalAccountBinding there; and run:"),
        ] {
            let problem = problem(kind, status);
            let hint = for_site(Some(&problem), "", "key", Site { issuer: &issuer, is_made: true });
            assert!(hint.contains(expected), "{hint}");
        }
    }

    #[test]
    fn what_a_person_has_to_do_at_the_ca_is_told_with_its_page() {
        let issuer = Key::new(Kind::Issuer, ObjectName::new("default", "acme"));
        let hint = |kind: &str, link: Option<&str>, algorithms: &[&str]| {
            let problem = Problem {
                kind: format!("urn:ietf:params:acme:error:{kind}"),
                status: 403,
                links: link.into_iter().map(str::to_owned).collect(),
                algorithms: algorithms.iter().map(|name| (*name).to_owned()).collect(),
                ..Problem::default()
            };
            for_site(Some(&problem), "", "key", Site { issuer: &issuer, is_made: false })
        };
        let again = "; then run the same command again";
        for (kind, link, algorithms, expected) in [
            (
                "userActionRequired",
                Some("https://ca.example/agree"),
                &[][..],
                "open https://ca.example/agree and do what the CA asks for there",
            ),
            (
                "userActionRequired",
                None,
                &[],
                "do what the CA asks for in its answer, such as an agreement to its new terms",
            ),
            (
                "badSignatureAlgorithm",
                None,
                &["RS256"],
                "the CA does not take the account key in Secret key in namespace default: name another Secret in \
                 spec.acme.privateKeySecretRef of Issuer default/acme, for a new key",
            ),
            (
                "badSignatureAlgorithm",
                None,
                &["EdDSA", "ES512"],
                "ask another CA: of EdDSA, ES512 this program signs with none",
            ),
            (
                "badPublicKey",
                None,
                &[],
                "put an account key of another kind into Secret key in namespace default (RSA, ECDSA P-256 or P-384)",
            ),
            (
                "unauthorized",
                None,
                &[],
                "the CA does not take the account key in Secret key in namespace default: name another Secret in \
                 spec.acme.privateKeySecretRef of Issuer default/acme, for a new key",
            ),
        ] {
            assert_eq!(hint(kind, link, algorithms), format!("{expected}{again}"));
        }
    }
}
