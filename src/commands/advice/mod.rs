//! The next step: what helps against which obstacle, one line each.

pub mod caa;
mod http01;
pub(super) mod retrace;
pub mod unseen;

use super::failure::{Failure, Kind as FailureKind};
use super::invocation;
use crate::acme::refusal::Sort;
use crate::acme::{AcmeError, Fault};
use crate::controllers::ReconcileError;
use crate::model::{Challenge, Key, Problem};
use crate::store::StoreError;

/// What helps when the store cannot be used.
pub const STORE: &str = "put that right, or choose another state folder with --local=DIR";

/// What helps where a host has no address, or nobody can say which.
pub const RESOLVER: &str =
    "this machine's own resolver (/etc/resolv.conf); --dns ADDRESS asks another one";

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
        ReconcileError::Store(error) => {
            error.hints_by(&invocation::current().kubectl_program()).into_iter().next()
        }
        ReconcileError::Solve(error) => {
            error.hint.clone().or_else(|| unseen::dns_advice(&error.to_string()))
        }
        ReconcileError::Missing(_) => None,
        ReconcileError::Taken(taken) => Some(taken.hint()),
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
        (AcmeError::NoDirectory { .. } | AcmeError::Protocol { .. }, _) => format!(
            "check that {server} is the URL of an ACME directory, and that no proxy answers in the CA's place"
        ),
        (AcmeError::Refused { .. }, Sort::Unavailable) => {
            "the fault is the CA's own; its status page may tell more".to_owned()
        }
        (AcmeError::Refused { .. }, _) => return None,
    })
}

/// What helps when an Issuer has no account at its CA; the problem is the CA's, where it has answered.
pub fn for_issuer(problem: Option<&Problem>, message: &str, issuer: &Key) -> String {
    for_site(problem, message, Site::of(issuer))
}

/// What helps when a Secret that a dns01 solver of an Issuer names is not there, or lacks its key.
pub fn for_solver_secrets(issuer: &Key) -> String {
    let namespace = match issuer.name.namespace.as_str() {
        "" => "the namespace for Secrets of ClusterIssuers (--cluster-resource-namespace of whoever drives)".to_owned(),
        namespace => format!("namespace {namespace}"),
    };
    format!(
        "make that Secret in {namespace}, or name another one in {issuer}; then run the same command again"
    )
}

fn for_site(problem: Option<&Problem>, message: &str, site: Site<'_>) -> String {
    let (issuer, binding) = (site.issuer, "spec.acme.externalAccountBinding");
    let change = match problem.map(|problem| (problem.short_kind(), problem.status)) {
        Some(("externalAccountRequired", _)) if site.is_made => {
            return site.change("name a key ID and an HMAC key of the CA's in", binding);
        }
        Some(("externalAccountRequired", _)) => format!(
            "get a key ID and an HMAC key from the CA, and name them in {binding} of {issuer}"
        ),
        Some((_, _)) if message.contains("xternal account binding") => {
            format!("compare key ID and HMAC key in {binding} of {issuer} with those the CA gave")
        }
        Some(("invalidContact" | "unsupportedContact", _)) => {
            format!("change {}", site.email())
        }
        Some((_, 404)) => {
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
            failure.hint(unseen::advice(challenge, &challenge.status.reason, in_cluster))
        }
        (FailureKind::Account, Some("accountDoesNotExist" | "unauthorized"), _) => failure.hint(format!(
            "the CA takes no orders from this account any more: delete the Secret of spec.acme.privateKeySecretRef of {issuer} \
             for an account with a new key, or ask the CA"
        )),
        // The page that lifts the pause stands in the CA's words.
        (FailureKind::RateLimited, _, _) => failure.hint(
            "do what the CA asks for in its answer; waiting alone does not help; then run the same command again",
        ),
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
            ("unauthorized", 403, "change --server or --email;"),
            ("externalAccountRequired", 400, "spec.acme.externalAccountBinding there; and run:"),
        ] {
            let problem = problem(kind, status);
            let hint = for_site(Some(&problem), "", Site { issuer: &issuer, is_made: true });
            assert!(hint.contains(expected), "{hint}");
        }
    }
}
