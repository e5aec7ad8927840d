//! Flags for manifests that are made of names, and the making of these manifests.

use std::env;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::context::Context;
use crate::context::blocking::{Unfinished, aside};
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::acme_server::AcmeServer;
use crate::model::common::Blob;
use crate::model::dns_provider::DnsProvider;
use crate::model::names::host_in;
use crate::model::quick_dns::{self, DnsSolver, EnvironmentFault, ProcessEnvironment};
use crate::model::quick_order::{
    self, Binding, CaWishes, KeyChoice, KeyWish, Proof, QuickOrder, SignedRequest, secret_name,
};
use crate::model::{Identifier, manifest};
use crate::print::document;

/// Variable that holds the HMAC key itself, in place of the file.
const HMAC_VARIABLE: &str = "KUBECTL_ACME_EAB_HMAC";
/// Longest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Flags for manifests that are made of names.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "What to issue")]
pub struct QuickArgs {
    /// Contact of the account, without -f
    #[arg(long, value_name = "ADDRESS")]
    pub email: Option<String>,
    /// CA, without -f
    ///
    /// letsencrypt, letsencrypt-staging, zerossl, google, google-staging, sslcom-ecc, sslcom-rsa, actalis, sectigo-dv,
    /// sectigo-ev, sectigo-ov, digicert, globalsign, or the URL of a directory.
    #[arg(long, value_name = "CA", default_value = "letsencrypt")]
    pub server: String,
    /// Answer DNS-01 at this provider, without -f; credentials come from the environment
    ///
    /// The credentials become a Secret beside the Issuer, which --dry-run=client -o yaml shows in clear. NAME_FILE may name
    /// a file that holds the value of a variable NAME.
    #[arg(long, value_name = "PROVIDER", value_enum, conflicts_with = "dns01_manual")]
    pub dns01: Option<DnsProvider>,
    /// Trust these roots (PEM) for the connection to the CA, without -f
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub ca_bundle: Option<PathBuf>,
    /// Key ID of an external account at the CA, without -f
    #[arg(long, hide_short_help = true, value_name = "ID")]
    pub eab_kid: Option<String>,
    /// HMAC key of the external account in base64url; - for standard input [env: KUBECTL_ACME_EAB_HMAC=the key itself]
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub eab_hmac_file: Option<PathBuf>,
    /// Profile to ask the CA for, without -f; of a list, the first that the CA has
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Type of the certificate's key, with --domain
    #[arg(long, hide_short_help = true, value_name = "TYPE", value_enum, default_value = "p256")]
    pub key_type: KeyChoice,
    /// Common name of the root that the chain should lead to, without -f; of a list, the first that is offered
    #[arg(long, hide_short_help = true, value_name = "CN")]
    pub preferred_chain: Option<String>,
}

/// Flags for manifests that are made of names, each with the field that replaces the flag in a written manifest.
pub const NAME_FLAGS: [(&str, &str); 9] = [
    ("email", "an Issuer's manifest names its contact, spec.acme.email"),
    ("server", "an Issuer's manifest names its CA, spec.acme.server"),
    ("dns01", "an Issuer's manifest names its providers, spec.acme.solvers"),
    ("ca-bundle", "an Issuer's manifest holds the roots, spec.acme.caBundle"),
    ("eab-kid", "an Issuer's manifest names the account, spec.acme.externalAccountBinding"),
    ("eab-hmac-file", "an Issuer's manifest names the account, spec.acme.externalAccountBinding"),
    ("profile", "an Issuer's manifest names the profile, spec.acme.profile"),
    ("key-type", "a Certificate's manifest says which key, spec.privateKey"),
    ("preferred-chain", "an Issuer's manifest names the chain, spec.acme.preferredChain"),
];

/// Flags about keys that this program makes, each with the reason why a signing request does not take the flag.
pub const KEY_FLAGS: [(&str, &str); 2] = [
    ("key-type", "a signing request has its key already"),
    ("out-secret", "without the key there is no Secret"),
];

/// Certificate that is wished for, beside the flags above.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// Names of the certificate.
    pub domains: &'a [String],
    /// Signing request with the names, if the key is elsewhere.
    pub request: Option<SignedRequest>,
    /// Proof of the names, if no provider is named.
    pub proof: Proof,
    /// The type of challenge.
    pub challenge_type: Option<&'a str>,
}

/// Values from files and the environment.
struct Gathered {
    bundle: Blob,
    binding: Option<Binding>,
    answers: Option<DnsSolver>,
}

impl QuickArgs {
    /// Makes manifests for a few names, to be read like any other manifests.
    ///
    /// # Errors
    /// Fails if a name, a flag, a file or a variable cannot be used, or if a signal came.
    pub async fn made(
        &self,
        wish: Wish<'_>,
        context: &Context,
    ) -> Result<manifest::Source, Failure> {
        let flag = if wish.request.is_some() { "--csr: its name" } else { "--domain" };
        // People write blanks behind commas, and a comma at the end.
        let given = wish.domains.iter().map(|domain| domain.trim());
        let listed = given.filter(|domain| wish.domains.len() == 1 || !domain.is_empty());
        let names = listed.map(|domain| read_name(flag, domain)).collect::<Result<Vec<_>, _>>()?;
        let server = AcmeServer::parse(&self.server).map_err(|why| {
            let names: Vec<_> = AcmeServer::names().collect();
            Failure::usage(format!("cannot use --server: {why}"))
                .hint(format!("one of {}, or the URL of a directory", names.join(", ")))
        })?;
        let mut names = names.into_iter();
        let Some(first) = names.next() else {
            return Err(Failure::usage("--domain names nothing"));
        };
        self.check_type(&wish)?;
        // Standard input and pipes may never end.
        let (this, of) = (self.clone(), server.clone());
        let gather = move || this.gather(&of);
        let gathered = match aside(context.interrupted(), Duration::ZERO, gather).await {
            Ok(gathered) => gathered?,
            Err(Unfinished::Signal(kind)) => return Err(Failure::interrupted(kind)),
            Err(Unfinished::Panic) => {
                return Err(Failure::new(FailureKind::Unexpected, "reading files panicked"));
            }
        };
        let proof = match (wish.challenge_type, gathered.answers) {
            (_, Some(answers)) => Proof::Provider(answers),
            (None | Some("dns-account-01"), None) => wish.proof,
            (Some(_), None) => Proof::Unaided,
        };
        let (bundle, binding) = (gathered.bundle, gathered.binding);
        let (profile, preferred_chain) = (self.profile.clone(), self.preferred_chain.clone());
        let is_own = wish.request.is_some();
        let wish = QuickOrder {
            first,
            more: names.collect(),
            email: self.email.clone(),
            server,
            namespace: context.namespace().to_owned(),
            proof,
            key: match wish.request {
                Some(request) => KeyWish::Own(request),
                None => KeyWish::Make(self.key_type),
            },
            ca: CaWishes { bundle, binding, profile, preferred_chain },
        };
        let records = quick_order::manifests(&wish);
        let documents: Vec<String> =
            records.iter().map(|record| document::yaml(&record.object)).collect();
        let name = if is_own { "--csr" } else { "--domain" }.to_owned();
        Ok(manifest::Source { name, text: documents.join("---\n") })
    }

    fn check_type(&self, wish: &Wish<'_>) -> Result<(), Failure> {
        match (wish.challenge_type, &wish.proof, self.dns01) {
            (Some("dns-account-01"), Proof::Http01, None) => {
                let message = "--domain with --challenge-type dns-account-01 needs a person or a provider for the records";
                Err(Failure::usage(message)
                    .hint("a person: --dns01-manual")
                    .hint("a DNS provider: --dns01 PROVIDER"))
            }
            (Some(kind @ ("tls-alpn-01" | "dns-persist-01")), _, Some(_)) => {
                Err(Failure::usage(format!(
                    "--dns01 cannot be used with --challenge-type {kind}, which needs no solver"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Reads files and variables.
    fn gather(&self, server: &AcmeServer) -> Result<Gathered, Failure> {
        let bundle = self.ca_bundle.as_deref().map(bundle).transpose()?.unwrap_or_default();
        let binding = self.binding(env::var(HMAC_VARIABLE).ok())?;
        let answers = self.dns01.map(|provider| answers(provider, server)).transpose()?;
        Ok(Gathered { bundle, binding, answers })
    }

    fn binding(&self, variable: Option<String>) -> Result<Option<Binding>, Failure> {
        let variable = variable.filter(|value| !value.trim().is_empty());
        let (hmac, place) = match (&self.eab_hmac_file, variable) {
            (Some(path), _) => {
                let text = if path.as_os_str() == "-" { read_stdin() } else { read(path) };
                let place = format!("--eab-hmac-file {}", path.display());
                let told = |why| Failure::usage(format!("cannot use {place}: {why}"));
                (Some(text.map_err(told)?), place)
            }
            (None, hmac) => (hmac, HMAC_VARIABLE.to_owned()),
        };
        match (&self.eab_kid, hmac) {
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err(Failure::usage("--eab-kid needs the HMAC key that belongs to it")
                    .hint(format!("--eab-hmac-file FILE, or {HMAC_VARIABLE} in the environment")))
            }
            (None, Some(_)) => Err(Failure::usage(format!(
                "{place} needs the key ID that the CA gave with it: --eab-kid ID"
            ))),
            (Some(key_id), Some(hmac)) => match Binding::new(key_id, &hmac) {
                Some(binding) => Ok(Some(binding)),
                None => Err(Failure::usage(format!("cannot use {place}: it is not base64url"))
                    .hint("write the HMAC key and nothing else, as the CA shows it")),
            },
        }
    }
}

/// Reads a name or an address.
pub(super) fn read_name(flag: &str, domain: &str) -> Result<Identifier, Failure> {
    Identifier::parse(domain).map_err(|why| {
        let failure = Failure::usage(format!("cannot use {flag} {domain}: {why}"));
        match host_in(domain) {
            Some(host) => failure.hint(format!("write the name alone: --domain {host}")),
            None if domain.contains(';') => failure.hint("separate names by commas"),
            None => failure,
        }
    })
}

fn bundle(path: &Path) -> Result<Blob, Failure> {
    let place = || format!("cannot use --ca-bundle {}", path.display());
    let text = read(path).map_err(|why| Failure::usage(format!("{}: {why}", place())))?;
    let blocks = pem::parse_many(&text).unwrap_or_default();
    if !blocks.iter().any(|block| block.tag() == "CERTIFICATE") {
        return Err(Failure::usage(format!("{}: it holds no certificate", place()))
            .hint("a file in PEM is needed, with -----BEGIN CERTIFICATE----- in it"));
    }
    Ok(Blob(text.into_bytes()))
}

fn answers(provider: DnsProvider, server: &AcmeServer) -> Result<DnsSolver, Failure> {
    let secret = secret_name(server, provider.names().0);
    quick_dns::answers(provider, &secret, &Process).map_err(|fault| {
        let failure = Failure::usage(format!("cannot use --dns01 {provider}: {fault}"));
        match fault {
            EnvironmentFault::Missing(_) => {
                failure.hint(format!("set {}", provider.needs()))
            }
            EnvironmentFault::Unusable { variable, .. } if variable == "AWS_SESSION_TOKEN" => failure
                .hint("unset the variable and give the keys of a user; or write manifests without keys, and use ambient credentials: --issuer-ambient-credentials"),
            EnvironmentFault::Unusable { .. } | EnvironmentFault::Unreadable { .. } => failure,
        }
    })
}

fn read(path: &Path) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|why| why.to_string())?;
    read_all(file)
}

fn read_stdin() -> Result<String, String> {
    read_all(io::stdin())
}

fn read_all(from: impl io::Read) -> Result<String, String> {
    let mut text = String::new();
    let mut from = from.take(MAX_FILE_BYTES);
    from.read_to_string(&mut text).map_err(|why| why.to_string())?;
    Ok(text)
}

/// Environment of this process.
struct Process;

impl ProcessEnvironment for Process {
    fn variable(&self, name: &str) -> Option<String> {
        env::var(name).ok()
    }

    fn file(&self, path: &str) -> Result<String, String> {
        read(Path::new(path))
    }
}

impl ValueEnum for DnsProvider {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, aliases) = self.names();
        Some(PossibleValue::new(name).aliases(aliases).help(self.needs()))
    }
}

impl ValueEnum for KeyChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        quick: QuickArgs,
        #[arg(long)]
        dns01_manual: bool,
    }

    fn parse(words: &str) -> QuickArgs {
        let words = std::iter::once("order").chain(words.split_whitespace());
        let line = Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
        assert!(!line.dns01_manual);
        line.quick
    }

    /// Returns the binding, or the refusal, from flags and `KUBECTL_ACME_EAB_HMAC`.
    fn check(words: &str, variable: Option<&str>) -> String {
        match parse(words).binding(variable.map(str::to_owned)) {
            Ok(binding) => format!("{binding:?}"),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn a_key_id_and_its_key_go_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hmac");
        fs::write(&path, "a-b_cQ==\n").unwrap();
        let file = format!("--eab-hmac-file {}", path.display());
        let bound = "Some(Binding { key_id: \"k\", hmac: Credentials(keys [\"hmac\"]) })";
        for (words, variable, expected) in [
            ("", None, "None"),
            ("", Some(" "), "None"),
            (&format!("--eab-kid k {file}"), None, bound),
            (&format!("--eab-kid k {file}"), Some("not used!"), bound),
            ("--eab-kid k", Some("abc"), bound),
            ("--eab-kid k", None, "--eab-kid needs the HMAC key that belongs to it"),
            (
                "",
                Some("abc"),
                "KUBECTL_ACME_EAB_HMAC needs the key ID that the CA gave with it: --eab-kid ID",
            ),
            ("--eab-kid k", Some("\"a+b/\""), bound),
            ("--eab-kid k", Some("a.b"), "cannot use KUBECTL_ACME_EAB_HMAC: it is not base64url"),
        ] {
            assert_eq!(check(words, variable), expected, "{words}");
        }
        let alone = check(&file, None);
        assert!(alone.ends_with("needs the key ID that the CA gave with it: --eab-kid ID"));
    }

    #[test]
    fn a_file_without_a_certificate_is_no_bundle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        fs::write(&path, "none").unwrap();
        assert!(bundle(&path).unwrap_err().message.ends_with("key.pem: it holds no certificate"));
        assert!(bundle(&folder.path().join("none")).unwrap_err().message.contains("No such file"));
    }

    #[test]
    fn a_provider_is_found_by_the_names_of_other_programs() {
        for (word, expected) in [
            ("gcloud", DnsProvider::CloudDns),
            ("azure", DnsProvider::AzureDns),
            ("acme-dns", DnsProvider::AcmeDns),
            ("edgedns", DnsProvider::Akamai),
            ("route53", DnsProvider::Route53),
        ] {
            assert_eq!(parse(&format!("--dns01 {word}")).dns01, Some(expected));
        }
    }
}
