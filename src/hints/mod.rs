//! Hints: next steps in words, with command lines for the same state or cluster. Lower rooms return next steps as data; this
//! room alone writes the words for people. Progress lines have hints too, so this room stands below `cli`.

pub mod answer;
pub mod arguments;
pub mod finding;
mod http01;
pub mod invocation;
mod keystore;
pub mod reproduce;
pub mod solver;
pub mod store;

use self::answer::resolver;
use crate::diagnosis::verdict::next_step::{CaaStep, NextStep};
use crate::model::issuer::CHALLENGE_TYPE;
use crate::model::{Key, ObjectName};

/// Returns the hints for a next step, one line each.
pub fn lines(step: &NextStep) -> Vec<String> {
    Words { is_made: invocation::current().is_given_names() }.lines(step)
}

/// Returns the first hint for a next step.
pub fn line(step: &NextStep) -> String {
    lines(step).into_iter().next().unwrap_or_default()
}

/// Writer of the words for a next step.
#[derive(Clone, Copy, Debug)]
struct Words {
    /// Whether the issuer was made from the flags of this command, so that there is no manifest to change.
    is_made: bool,
}

impl Words {
    fn lines(self, step: &NextStep) -> Vec<String> {
        match step {
            NextStep::Store(error) => store::lines(error),
            NextStep::Solver(remedy) => solver::lines(remedy),
            // The words for the step say already to run the command again.
            NextStep::ThenAgain(step) if self.is_made && says_run_again(step) => {
                vec![self.line(step)]
            }
            NextStep::ThenAgain(step) => {
                vec![format!("{}; then run the same command again", self.line(step))]
            }
            step => vec![self.line(step)],
        }
    }

    #[expect(clippy::too_many_lines, reason = "one table, from steps to words")]
    fn line(self, step: &NextStep) -> String {
        const BINDING: &str = "spec.acme.externalAccountBinding";
        let in_place =
            |secret: &str, issuer| format!("Secret {secret} in {}", namespace_of_secrets(issuer));
        let called = invocation::current();
        match step {
            NextStep::ThenAgain(_) | NextStep::Store(_) | NextStep::Solver(_) => {
                self.lines(step).into_iter().next().unwrap_or_default()
            }
            NextStep::TrustCa(_) if self.is_made => {
                "run the same command with --ca-bundle FILE, where FILE holds the CA's root (PEM)"
                    .to_owned()
            }
            NextStep::TrustCa(issuer) => format!(
                "{}, or set skipTLSVerify for a test",
                self.change("put the CA's root into", "spec.acme.caBundle", issuer)
            ),
            NextStep::CheckServer(issuer) => format!("check {}", self.server(issuer)),
            NextStep::CheckServerAndResolver(issuer) => {
                format!("check {}, and {}", self.server(issuer), resolver())
            }
            NextStep::CheckResolver => format!("check {}", resolver()),
            NextStep::CheckConnection(issuer) => format!(
                "check {}, and whether this machine may connect there (firewall, proxy)",
                self.server(issuer)
            ),
            NextStep::CheckDirectory(issuer) => format!(
                "check that {} is the URL of an ACME directory, and that no proxy answers in the CA's place",
                self.server(issuer)
            ),
            NextStep::DirectoryUrl(issuer) => {
                format!("{} must be the URL of an ACME directory", self.server(issuer))
            }
            NextStep::ConnectFromCertManager(issuer) => format!(
                "check spec.acme.server of {issuer}, and whether cert-manager may connect there"
            ),
            NextStep::OpenPages(pages) => match &pages[..] {
                [] => "do what the CA asks for in its answer, such as an agreement to its new terms"
                    .to_owned(),
                pages => {
                    format!("open {} and do what the CA asks for there", pages.join(" and "))
                }
            },
            NextStep::ReadPages(pages) => format!("the CA says more at {}", pages.join(" and ")),
            NextStep::BesideAcme => {
                "the CA does this on its own pages, if at all: ACME has no request for it".to_owned()
            }
            NextStep::AuthorityAtFault => {
                "the fault is the CA's own; its status page may say more".to_owned()
            }
            NextStep::LiftPause => "do what the CA asks for in its answer; waiting alone does not help; then run the same \
                                    command again"
                .to_owned(),
            NextStep::AfterLimit => {
                "run the same command again once the limit is over; the CA's answer says more"
                    .to_owned()
            }
            NextStep::GetBinding(_) if self.is_made => {
                "get a key ID and an HMAC key from the CA, and run the same command with --eab-kid ID --eab-hmac-file FILE"
                    .to_owned()
            }
            NextStep::GetBinding(issuer) => format!(
                "get a key ID and an HMAC key from the CA, and name them in {BINDING} of {issuer}"
            ),
            NextStep::CompareBinding(_) if self.is_made => {
                "compare --eab-kid and --eab-hmac-file with the key ID and the HMAC key that the CA gave"
                    .to_owned()
            }
            NextStep::CompareBinding(issuer) => format!(
                "compare key ID and HMAC key in {BINDING} of {issuer} with those the CA gave; the HMAC key is in the Secret \
                 named there"
            ),
            NextStep::BindingKey => {
                "write the HMAC key into that Secret as the CA gave it (base64url), and nothing else"
                    .to_owned()
            }
            NextStep::ChangeContact(issuer) => format!("change {}", self.email(issuer)),
            NextStep::OtherKindOfKey { issuer, secret } => format!(
                "put an account key of another kind into {} (RSA, ECDSA P-256 or P-384)",
                in_place(secret, issuer)
            ),
            NextStep::OtherAuthority(algorithms) => format!(
                "use another CA: this program signs with none of {}",
                algorithms.join(", ")
            ),
            NextStep::OtherKey { issuer, secret } => {
                let field = "spec.acme.privateKeySecretRef";
                if self.is_made {
                    let place = in_place(secret, issuer);
                    return format!(
                        "the CA does not accept the account key in {place}: {} deletes the key, for a new account; then \
                         run the same command again",
                        without_secret(secret, issuer)
                    );
                }
                let change = self.change("name another Secret in", field, issuer);
                let why =
                    format!("the CA does not accept the account key in {}", in_place(secret, issuer));
                format!("{why}: {change}, for a new key")
            }
            NextStep::MendKey { issuer, secret } => format!(
                "put the account's key (PEM) into {}, or delete that Secret for a new account: {}",
                in_place(secret, issuer),
                without_secret(secret, issuer)
            ),
            NextStep::OtherKindOfCertificateKey if self.is_made => {
                "choose a key that every CA accepts: --key-type p256, or rsa2048".to_owned()
            }
            NextStep::OtherKindOfCertificateKey => {
                "choose a key that every CA accepts: spec.privateKey of the Certificate with algorithm ECDSA and size \
                 256, or RSA and 2048"
                    .to_owned()
            }
            NextStep::OtherAccount { issuer, secret } => format!(
                "the CA accepts no more orders from this account: {} deletes its key, for a new account; or ask the CA",
                without_secret(secret, issuer)
            ),
            NextStep::AddSecret(_) | NextStep::ChangeIssuer(_) if self.is_made => {
                "change --server or --email".to_owned()
            }
            NextStep::AddSecret(issuer) => {
                format!("add that Secret to the manifests, or change {issuer}")
            }
            NextStep::SolverSecret(issuer) => format!(
                "create that Secret in {}, or name another one in {issuer}",
                namespace_of_secrets(issuer)
            ),
            NextStep::ChangeIssuer(issuer) => format!("change {issuer}"),
            NextStep::Profile(issuer) => format!(
                "choose another spec.acme.profile of {issuer}, or leave it out for the CA's own choice"
            ),
            NextStep::LeaveNameOut => {
                "remove the name from the Certificate, or ask another CA for it".to_owned()
            }
            NextStep::ChallengeType(issuer) => format!(
                "ask for a type that the CA offers, or remove the annotation {CHALLENGE_TYPE} from {issuer}"
            ),
            NextStep::Solvers(issuer) => {
                format!("add a solver for that name to {issuer}, or widen the selector of one")
            }
            NextStep::IssuerKind => {
                "issuerRef.kind must be Issuer, ClusterIssuer or absent".to_owned()
            }
            NextStep::BringIssuerBack => {
                format!("{} creates the issuer again", called.like("order -f MANIFEST.yaml"))
            }
            NextStep::ChangeCertificate(certificate) => {
                format!("change {certificate} accordingly, and apply it again")
            }
            NextStep::RenewalWindows => {
                "change spec.renewal.windows; the certificate stays as it is".to_owned()
            }
            NextStep::AskOnceMore => format!(
                "this run places no further order; find out why the order before failed, then {} orders once more",
                called.again()
            ),
            NextStep::Approve(ObjectName { namespace, name }) => {
                let approve = called.like_in(namespace, &format!("certificate approve {name}"));
                format!("a policy or a person has to approve the request: {approve}")
            }
            NextStep::AskApprover => {
                "ask for an approval: a policy or a person approves CertificateRequests there".to_owned()
            }
            NextStep::RenewOncePassed(certificate) => {
                format!("once the approver agrees: {}", called.renewal(certificate))
            }
            NextStep::DescribeOrder(ObjectName { namespace, name }) => {
                let describe = called.like_in(namespace, &format!("describe order/{name}"));
                format!("{describe} shows the CA's answers")
            }
            NextStep::Timeline(ObjectName { namespace, name }) => {
                let timeline = called.like_in(namespace, &format!("timeline certificate/{name}"));
                format!("{timeline} shows every step")
            }
            NextStep::FreeName { taken, passes: true, .. } => {
                format!("that object goes away by itself; if not, delete {taken}")
            }
            NextStep::FreeName { taken, ours, .. } => format!(
                "delete {taken}, or keep it under another name, or give {ours} another name"
            ),
            NextStep::Keystore(why) => keystore::line(why),
            NextStep::Report => "please report this, with the output on stderr".to_owned(),
            NextStep::Caa(step) => caa(step),
            NextStep::Zone(symptom) => answer::zone(*symptom).unwrap_or_default().to_owned(),
            NextStep::Answer(step) => answer::line(step),
            NextStep::KeptByResolver(kept, record) => answer::kept(*kept, record),
            NextStep::PastGuard { guard, namespace } => store::past(*guard, "pods", namespace),
        }
    }

    /// Names the flag or the field that holds the CA's URL.
    fn server(self, issuer: &Key) -> String {
        if self.is_made {
            return "--server".to_owned();
        }
        format!("spec.acme.server of {issuer}")
    }

    /// Names the flag or the field that holds the contact's address.
    fn email(self, issuer: &Key) -> String {
        if self.is_made { "--email".to_owned() } else { format!("spec.acme.email of {issuer}") }
    }

    /// Describes how to change a field for which there is no flag; `action` begins the sentence, as in `put the root into`.
    fn change(self, action: &str, field: &str, issuer: &Key) -> String {
        if !self.is_made {
            return format!("{action} {field} of {issuer}");
        }
        format!(
            "save the manifests: {} > FILE.yaml; {action} {field} there; and run: {}",
            invocation::current().as_manifests(),
            invocation::current().like("order -f FILE.yaml")
        )
    }
}

/// Returns whether the words of a step for a made issuer say to run the same command again.
fn says_run_again(step: &NextStep) -> bool {
    matches!(step, NextStep::GetBinding(_) | NextStep::OtherKey { .. })
}

/// Returns the command line that deletes the Secret of an account key, on this machine or in the cluster.
pub fn without_secret(secret: &str, issuer: &Key) -> String {
    let called = invocation::current();
    let namespace = &issuer.name.namespace;
    if called.is_local() {
        return called.like_in(namespace, &format!("delete secret {secret}"));
    }
    let mut words = vec!["delete".to_owned(), "secret".to_owned(), secret.to_owned()];
    if !namespace.is_empty() {
        words.push(format!("--namespace={namespace}"));
    }
    called.kubectl(&words)
}

fn namespace_of_secrets(issuer: &Key) -> String {
    match issuer.name.namespace.as_str() {
        "" => "the namespace for Secrets of ClusterIssuers (--cluster-resource-namespace of the controller)".to_owned(),
        namespace => format!("namespace {namespace}"),
    }
}

/// Returns the hint for CAA records that keep a CA from issuing.
fn caa(step: &CaaStep) -> String {
    match step {
        CaaStep::Servers(owner) => format!(
            "check that the name servers of {owner} answer queries for CAA records, even if there are none: dig {owner} CAA"
        ),
        CaaStep::AccountFirst { issuer, owner } => format!(
            "the account of {issuer} is created with the first order, and no CAA record can name it before: register \
             {issuer} alone first (order -f), then put its status.acme.uri into the record of {owner} as accounturi"
        ),
        CaaStep::NameAuthority { name, owner, identity } => {
            let (tag, base) = match name.strip_prefix("*.") {
                Some(base) => ("issuewild", base),
                None => ("issue", name.as_str()),
            };
            let (owner, place) = match owner.as_str() {
                "" => (base, format!("{base}, or of the nearest name above it that has some,")),
                owner => (owner, owner.to_owned()),
            };
            let value = identity.as_deref().unwrap_or("DOMAIN");
            format!(
                "the CAA records of {place} decide for {name} (dig {owner} CAA): let one of them name the CA, as in \
                 {owner}. CAA 0 {tag} \"{value}\""
            )
        }
        CaaStep::IdentityInDocumentation => {
            "DOMAIN is the name that the CA's own documentation gives for CAA records".to_owned()
        }
        CaaStep::Conditions { issuer, methods } => {
            let methods = match methods.join(" and ").as_str() {
                "" => String::new(),
                methods => format!(", and its validationmethods have to include {methods}"),
            };
            format!(
                "a record that names the CA already may hold conditions: its accounturi has to be the account of {issuer} \
                 (status.acme.uri){methods}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::acme::error::{AcmeError, Fault};
    use crate::controllers::ReconcileError;
    use crate::diagnosis::verdict::advice::{for_error, for_issuer};
    use crate::model::order_budget::{Denial, OverBudget};
    use crate::model::{Kind, Problem};

    fn issuer() -> Key {
        Key::new(Kind::Issuer, ObjectName::new("default", "acme"))
    }

    /// Checks the hint for a fault of transport, for an issuer of a manifest and for an issuer that `--domain` made.
    #[track_caller]
    fn check_ca(fault: Fault, of_manifest: &str, made: &str) {
        let (url, why) = ("https://ca.example/dir".to_owned(), String::new());
        let error = AcmeError::Transport { deed: "read", url, why, fault };
        let step = for_error(&error.into(), &issuer()).unwrap();
        for (is_made, expected) in [(false, of_manifest), (true, made)] {
            let hint = Words { is_made }.line(&step);
            assert!(hint.contains(expected), "{hint}");
            assert_eq!(hint.contains("Issuer default/acme"), !is_made && hint.contains("spec."));
        }
    }

    #[test]
    fn what_is_issued_again_and_again_is_shown_step_by_step() {
        let holder = Key::new(Kind::Certificate, ObjectName::new("web", "www"));
        let until = Some(Timestamp::UNIX_EPOCH);
        let hint = |denial| {
            let over = OverBudget { holder: holder.clone(), denial, until };
            Some(line(&for_error(&ReconcileError::OverBudget(Box::new(over)), &issuer())?))
        };
        let pause = SignedDuration::from_mins(5);
        assert_eq!(hint(Denial::Failures { pause }), None);
        let shown = hint(Denial::TooMany { pause }).unwrap();
        assert!(shown.contains("timeline certificate/www"), "{shown}");
    }

    #[test]
    fn a_caa_record_is_written_out_as_it_has_to_read() {
        let named = |name: &str, owner: &str, identity: Option<&str>| {
            let [name, owner] = [name, owner].map(str::to_owned);
            caa(&CaaStep::NameAuthority { name, owner, identity: identity.map(str::to_owned) })
        };
        assert_eq!(
            named("www.example.com", "example.com", Some("ca.example")),
            "the CAA records of example.com decide for www.example.com (dig example.com CAA): let one of them name the CA, as \
             in example.com. CAA 0 issue \"ca.example\""
        );
        assert_eq!(
            named("*.www.example.com", "", None),
            "the CAA records of www.example.com, or of the nearest name above it that has some, decide for \
             *.www.example.com (dig www.example.com CAA): let one of them name the CA, as in www.example.com. CAA 0 issuewild \
             \"DOMAIN\""
        );
        let conditions = |methods| caa(&CaaStep::Conditions { issuer: issuer(), methods });
        let conditional = "a record that names the CA already may hold conditions: its accounturi has to be the account of \
                           Issuer default/acme (status.acme.uri)";
        assert_eq!(conditions(Vec::new()), conditional);
        let methods = ", and its validationmethods have to include http-01";
        assert_eq!(conditions(vec!["http-01"]), format!("{conditional}{methods}"));
    }

    #[test]
    fn an_issuer_that_was_made_from_flags_is_changed_by_flags() {
        let server = "check spec.acme.server of Issuer";
        check_ca(Fault::Passing, server, "check --server, and");
        let [manifest, made] = ["spec.acme.server of Issuer default/acme", "--server"];
        let resolver = &*resolver();
        let [manifest, made] = [manifest, made].map(|at| format!("check {at}, and {resolver}"));
        check_ca(Fault::NoSuchHost, &manifest, &made);
        check_ca(Fault::Unusable, "check spec.acme.server", "check --server");
        let root = "--ca-bundle FILE";
        check_ca(Fault::Untrusted, "put the CA's root into spec.acme.caBundle of", root);
        check_ca(Fault::Lookup, resolver, resolver);
    }

    #[test]
    fn what_the_ca_refuses_of_a_made_issuer_is_changed_by_flags() {
        for (kind, status, expected) in [
            ("invalidContact", 400, "change --email;"),
            ("malformed", 404, "--server must be the URL of an ACME directory;"),
            ("malformed", 400, "change --server or --email;"),
            ("invalidEmail", 400, "change --email;"),
            ("unauthorized", 403, "delete secret key"),
            ("externalAccountRequired", 400, "with --eab-kid ID --eab-hmac-file FILE"),
        ] {
            let kind = format!("urn:ietf:params:acme:error:{kind}");
            let problem = Problem { kind, status, ..Problem::default() };
            let step = for_issuer(Some(&problem), "", &issuer(), "key");
            let hint = Words { is_made: true }.lines(&step).join("");
            assert!(hint.contains(expected), "{hint}");
        }
    }

    #[test]
    fn what_a_person_has_to_do_at_the_ca_is_told_with_its_page() {
        let hint = |kind: &str, link: Option<&str>, algorithms: &[&str]| {
            let problem = Problem {
                kind: format!("urn:ietf:params:acme:error:{kind}"),
                status: 403,
                links: link.into_iter().map(str::to_owned).collect(),
                algorithms: algorithms.iter().map(|name| (*name).to_owned()).collect(),
                ..Problem::default()
            };
            let step = for_issuer(Some(&problem), "", &issuer(), "key");
            Words { is_made: false }.lines(&step).join("")
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
                "the CA does not accept the account key in Secret key in namespace default: name another Secret in \
                 spec.acme.privateKeySecretRef of Issuer default/acme, for a new key",
            ),
            (
                "badSignatureAlgorithm",
                None,
                &["EdDSA", "ES512"],
                "use another CA: this program signs with none of EdDSA, ES512",
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
                "the CA does not accept the account key in Secret key in namespace default: name another Secret in \
                 spec.acme.privateKeySecretRef of Issuer default/acme, for a new key",
            ),
        ] {
            assert_eq!(hint(kind, link, algorithms), format!("{expected}{again}"));
        }
    }
}
