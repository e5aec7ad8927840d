//! `certificate revoke`: revokes certificates at their CA (RFC 8555 §7.6).
//!
//! All names are resolved before the first request: if one name leads to no certificate, nothing is revoked.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{OsStringValueParser, TypedValueParser as _};

use super::inspect::stored::of_request;
use super::inspect::{CertificatePlace, files};
use crate::account::{AccountClient, AskArgs, NamedAccount, ask};
use crate::acme::inspection::{InspectedChain, Material};
use crate::acme::{AccountKey, PrivateKey, RevocationReason, RevokedBy, chain};
use crate::context::Context;
use crate::context::confirm::{ConfirmArgs, confirm};
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::input::{completers, lookup, target};
use crate::model::memory::{Holder, Memory, RevokedMemory};
use crate::model::metadata::Resource;
use crate::model::secret::{TLS_CRT, TLS_KEY};
use crate::model::{Certificate, Key, Kind, ObjectName, Secret};
use crate::store::error::StoreError;
use crate::store::local::Access;
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

/// Maximum number of tries to write an object that controllers write at the same time.
const WRITE_TRIES: usize = 10;

/// Maximum size of a file that is taken for a private key, in bytes.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// Flags of `certificate revoke`.
#[derive(Clone, Debug, clap::Args)]
pub struct RevokeArgs {
    /// Names of Certificates, or files with a certificate
    #[arg(required = true, value_name = "NAME|FILE", add = completers::certificates_and_files())]
    what: Vec<String>,
    /// Reason for the revocation
    #[arg(long, value_name = "REASON", value_enum, default_value = "unspecified")]
    reason: ReasonChoice,
    /// Issuer whose account revokes, or KIND/NAME [default: that of the Certificate]
    #[arg(long, value_name = "ISSUER", add = completers::names(Kind::Issuer))]
    issuer: Option<String>,
    /// Sign with the certificate's own private key in place of the account's
    ///
    /// The key is read from this file; without a file, from beside the certificate.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        // The parser of paths refuses an empty value.
        value_parser = OsStringValueParser::new().map(PathBuf::from)
    )]
    key: Option<PathBuf>,
    /// Flag that answers the confirmation question
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Flags of requests to the CA
    #[command(flatten)]
    ask: AskArgs,
}

/// Reason for a revocation, in the terms of RFC 5280 §5.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReasonChoice {
    /// No reason is given
    Unspecified,
    /// Somebody else may have the private key
    #[value(name = "keyCompromise")]
    KeyCompromise,
    /// The subject in the certificate is no longer right
    #[value(name = "affiliationChanged")]
    AffiliationChanged,
    /// Another certificate replaces this one
    Superseded,
    /// The names are not used any more
    #[value(name = "cessationOfOperation")]
    CessationOfOperation,
}

impl ReasonChoice {
    fn reason(self) -> RevocationReason {
        match self {
            Self::Unspecified => RevocationReason::Unspecified,
            Self::KeyCompromise => RevocationReason::KeyCompromise,
            Self::AffiliationChanged => RevocationReason::AffiliationChanged,
            Self::Superseded => RevocationReason::Superseded,
            Self::CessationOfOperation => RevocationReason::CessationOfOperation,
        }
    }
}

impl RevokeArgs {
    /// Takes the word after `--key` as the key file if that file has a private key and no certificate. Without `=`, clap reads
    /// this word as one more certificate.
    fn with_key_apart(mut self, word: Option<&str>) -> Self {
        let is_without_file = self.key.as_ref().is_some_and(|key| key.as_os_str().is_empty());
        let Some(word) = word.filter(|_| is_without_file && self.what.len() > 1) else {
            return self;
        };
        let at = self.what.iter().rposition(|it| it == word);
        if let Some(at) = at.filter(|_| has_key_alone(word)) {
            self.key = Some(self.what.remove(at).into());
        }
        self
    }
}

/// Returns whether a file has a private key in PEM and no certificate.
fn has_key_alone(path: &str) -> bool {
    let is_small = std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() < MAX_KEY_BYTES);
    let text = is_small.then(|| std::fs::read(path).ok().map(zeroize::Zeroizing::new)).flatten();
    text.is_some_and(|bytes| {
        let has = |mark: &[u8]| bytes.windows(mark.len()).any(|part| part == mark);
        has(b"PRIVATE KEY-----") && !has(b"CERTIFICATE-----")
    })
}

/// A certificate that is to be revoked.
struct Target {
    /// Name or file, as given on the command line.
    word: String,
    /// Certificate in DER.
    der: Vec<u8>,
    serial: String,
    /// Issuer name in the certificate: the subject of the signing CA.
    issuer: String,
    /// Certificate resource that was named, if one was.
    certificate: Option<ObjectName>,
    account: NamedAccount,
    /// Whether `--issuer` names another Issuer than that of the Certificate.
    is_of_another_account: bool,
    /// Private key of the certificate, if this key signs the request.
    key: Option<AccountKey>,
}

/// Revokes certificates, after a person has confirmed.
///
/// # Errors
/// Fails when a name leads to no certificate, a key does not fit, the person declines, or a CA refuses.
pub async fn run(args: RevokeArgs, context: &Context) -> Result<(), Failure> {
    let args = args.with_key_apart(invocation::current().behind("--key"));
    let desk = AccountClient::open(&args.ask, Access::ReadWrite, context).await?;
    let mut targets = Vec::new();
    for word in &args.what {
        targets.push(find(word, &args, &desk, context).await?);
    }
    let all: Vec<String> =
        targets.iter().map(|one| format!("{} (serial {})", one.word, one.serial)).collect();
    confirm(args.confirm, &format!("revoke {}", all.join(", ")), context).await?;
    let mut printer = context.printer(&OutputArgs::default());
    for one in &targets {
        let (key, by) = match &one.key {
            Some(key) => (key.clone(), RevokedBy::CertificateKey),
            None => (desk.key(&one.account)?, RevokedBy::Account),
        };
        let url = one.account.url(&key);
        let session = desk.session(&one.account, key, url)?;
        let what = format!("cannot revoke {} by the account of", one.word);
        let revoking = session.revoke(&one.der, args.reason.reason(), by);
        let revoked = ask(revoking, &one.account, &what, context).await.map_err(of_certificate);
        if revoked.as_ref().err().is_none_or(is_already_revoked) {
            record_revoked(desk.store(), one, context).await?;
        }
        revoked.map_err(|why| add_hint(why, one))?;
        printer.text(&format!("certificate {} of {} is revoked\n", one.serial, one.word))?;
    }
    if targets.iter().any(|one| one.is_of_another_account && one.key.is_none()) {
        printer.hint(
            "another account than that of the Issuer revoked the certificate: the CA may withdraw the authorizations of its names from \
             the account that ordered it, which then has to prove the names again",
        );
    }
    if let Some(name) = targets.iter().find_map(|one| one.certificate.as_ref()) {
        let renewal = invocation::current().renewal(name);
        printer.hint(&format!("servers show the old certificate until it is replaced: {renewal}"));
    }
    Ok(())
}

async fn find(
    word: &str,
    args: &RevokeArgs,
    desk: &AccountClient,
    context: &Context,
) -> Result<Target, Failure> {
    let (material, certificate, issuer) = match CertificatePlace::parse(word, files::is_there)? {
        CertificatePlace::File(name) => {
            (files::read(&name, context.interrupted()).await?, None, None)
        }
        CertificatePlace::Certificate(name) => {
            let (material, (certificate, issuer)) = read_stored(&name, desk, context).await?;
            (material, Some(certificate), Some(issuer))
        }
        CertificatePlace::Request(name) => {
            let name = ObjectName::new(context.namespace(), name);
            let found = of_request(desk.store(), &name, None, context.now()).await?;
            let issuer = found.issued_by.as_ref().map(named_issuer);
            (Material { certificates: found.chain, key: None }, None, issuer)
        }
        CertificatePlace::Secret(_) | CertificatePlace::Server { .. } => {
            return Err(Failure::usage(format!("\"{word}\" is neither a Certificate nor a file"))
                .hint("name the Certificate of that certificate"));
        }
    };
    let named = args.issuer.as_deref().map(|issuer| issuer.rsplit('/').next().unwrap_or(issuer));
    // The account that ordered a certificate in a file is unknown.
    let is_of_another_account = named
        .zip(issuer.as_deref())
        .is_some_and(|(named, own)| own.rsplit('/').next() != Some(named));
    let Some(issuer) = args.issuer.clone().or(issuer) else {
        let what = format!("the CA that issued {word} is not known");
        return Err(Failure::usage(what).hint("name the Issuer of that CA: --issuer"));
    };
    let account = desk.named(&issuer, context).await?;
    let Some(der) = material.certificates.first().cloned() else {
        return Err(Failure::usage(format!("there is no certificate in {word}")));
    };
    let leaf = chain::leaf_of_der(&der)
        .map_err(|why| Failure::usage(format!("cannot read the certificate of {word}: {why}")))?;
    let key = match &args.key {
        None => None,
        Some(path) => Some(own_key(word, path, &material, &leaf.public_key, context).await?),
    };
    let (word, serial) = (word.to_owned(), leaf.serial);
    let issuer = InspectedChain::read(std::slice::from_ref(&der), context.now());
    let issuer = issuer.map(|read| read.content.issuer).unwrap_or_default();
    Ok(Target { word, der, serial, issuer, certificate, account, is_of_another_account, key })
}

/// Corrects the kind of a failure: a certificate that the CA does not know (404) is no fault of the account.
fn of_certificate(mut failure: Failure) -> Failure {
    if failure.facts.problem.as_ref().is_some_and(|problem| problem.status == 404) {
        failure.kind = FailureKind::Unexpected;
    }
    failure
}

fn is_already_revoked(failure: &Failure) -> bool {
    failure.facts.problem.as_ref().is_some_and(|it| it.short_kind() == "alreadyRevoked")
}

/// Records the revocation in every Certificate whose Secret has the certificate, so that the next reconcile replaces it. In
/// a cluster only the named Certificate is considered.
async fn record_revoked(
    store: &Arc<dyn Store>,
    one: &Target,
    context: &Context,
) -> Result<(), StoreError> {
    let certificates = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
    let names = match &one.certificate {
        Some(name) => vec![name.clone()],
        None if store.in_cluster() => Vec::new(),
        None => certificates.list(&Scope::all()).await?.iter().map(Resource::name).collect(),
    };
    let revoked = RevokedMemory { serial: one.serial.clone(), at: context.now() };
    for name in names {
        // The controllers write the Certificate, too.
        for _ in 0..WRITE_TRIES {
            let Some(mut certificate) = certificates.get(&name).await? else { break };
            if one.certificate.is_none() && !has(store, &certificate, &one.serial).await? {
                break;
            }
            let annotations = &mut certificate.metadata.annotations;
            let memory = Memory::read(Holder::Certificate, annotations);
            let is_known =
                memory.revoked.as_ref().is_some_and(|known| known.serial == revoked.serial);
            if is_known {
                break;
            }
            let memory = Memory { revoked: Some(revoked.clone()), ..memory };
            memory.write(Holder::Certificate, annotations);
            match certificates.replace_metadata(&certificate).await {
                Err(StoreError::Conflict { .. }) => {}
                written => {
                    written?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Returns whether the Secret of a Certificate has the certificate with this serial number.
async fn has(
    store: &Arc<dyn Store>,
    certificate: &Certificate,
    serial: &str,
) -> Result<bool, StoreError> {
    let name = ObjectName::new(&certificate.metadata.namespace, &certificate.spec.secret_name);
    let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
    let secret = secrets.get(&name).await?;
    let pem = secret.as_ref().and_then(|secret| secret.value(TLS_CRT)).unwrap_or_default();
    let leaf = chain::leaf(&String::from_utf8_lossy(pem));
    Ok(leaf.is_ok_and(|leaf| leaf.serial == serial))
}

/// Adds a hint to the failure of a revocation, if one helps.
fn add_hint(failure: Failure, one: &Target) -> Failure {
    let Some(problem) = &failure.facts.problem else { return failure };
    let hint = match (problem.short_kind(), &one.certificate) {
        ("unauthorized", _) if one.key.is_none() => {
            "--key=FILE signs with the certificate's own private key, which needs no account"
                .to_owned()
        }
        (_, Some(name)) if is_already_revoked(&failure) => {
            let renewal = invocation::current().renewal(name);
            format!("the certificate is already revoked; replace it: {renewal}")
        }
        ("malformed", _) => {
            format!("the CA is {}: name the Issuer of that CA with --issuer", one.issuer)
        }
        _ => return failure,
    };
    failure.hint(hint)
}

/// Reads the private key of a certificate, and checks that the key fits the certificate.
async fn own_key(
    word: &str,
    path: &std::path::Path,
    material: &Material,
    public_key: &[u8],
    context: &Context,
) -> Result<AccountKey, Failure> {
    let key: PrivateKey = if path.as_os_str().is_empty() {
        match &material.key {
            Some(Ok(key)) => key.clone(),
            Some(Err(why)) => return Err(Failure::usage(format!("the key beside {word}: {why}"))),
            None => {
                let what = format!("there is no private key beside the certificate of {word}");
                return Err(Failure::usage(what).hint("give the private key with --key=FILE"));
            }
        }
    } else {
        files::read_key(path, context.interrupted()).await?
    };
    if key.public_key() != public_key {
        let what = format!("the key is not that of the certificate of {word}: nothing was revoked");
        let hint = "give the matching key with --key=FILE; without --key the account key signs";
        return Err(Failure::usage(what).hint(hint));
    }
    AccountKey::from_key(key).map_err(|why| {
        Failure::usage(format!("the key of {word} cannot sign a revocation: {why}"))
            .hint("without --key the account key signs")
    })
}

/// Reads the certificate and key in the Secret of a Certificate, with the names of the Certificate and its Issuer.
async fn read_stored(
    name: &str,
    desk: &AccountClient,
    context: &Context,
) -> Result<(Material, (ObjectName, String)), Failure> {
    let store = desk.store();
    let named = target::key(Kind::Certificate, name, context.namespace());
    let key = lookup::one(store, &named).await?;
    let certificate: Certificate = typed(lookup::read(store, &key).await?)?;
    let issuer = certificate.spec.issuer_ref.key(&certificate.metadata.namespace);
    let Some(issuer) = issuer.filter(|key| matches!(key.kind, Kind::Issuer | Kind::ClusterIssuer))
    else {
        let what = format!("{key} was not issued by an ACME issuer");
        return Err(Failure::usage(what).about(&key).hint("revoke the certificate at its CA"));
    };
    let place = ObjectName::new(&certificate.metadata.namespace, &certificate.spec.secret_name);
    let secret = store.get(&Key::new(Kind::Secret, place.clone())).await?;
    let secret: Option<Secret> = secret.map(typed).transpose()?;
    let none = || {
        let show = format!("timeline certificate/{}", key.name.name);
        let show = invocation::current().like_in(&key.name.namespace, &show);
        let what = format!("{key} has no certificate in Secret {place}");
        Failure::usage(what).about(&key).hint(format!("show the progress: {show}"))
    };
    let secret = secret.ok_or_else(none)?;
    let mut bytes = secret.value(TLS_CRT).ok_or_else(none)?.to_vec();
    bytes.push(b'\n');
    bytes.extend(secret.value(TLS_KEY).unwrap_or_default());
    let material = Material::find(&zeroize::Zeroizing::new(bytes)).map_err(|why| {
        Failure::usage(format!("cannot read the certificate in Secret {place}: {why}")).about(&key)
    })?;
    Ok((material, (certificate.name(), named_issuer(&issuer))))
}

/// Issuer as KIND/NAME, as written on a command line.
fn named_issuer(key: &Key) -> String {
    format!("{}/{}", key.kind.singular(), key.name.name)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    #[test]
    fn a_key_behind_a_blank_is_no_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let key = "-----BEGIN EC PRIVATE KEY-----\n-----END EC PRIVATE KEY-----\n";
        let certificate = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
        let (key, pair) = (file("tls.key", key), file("tls.pem", &format!("{key}{certificate}")));
        let read = |words: &[&str]| {
            let typed: Vec<&str> = ["revoke"].iter().chain(words).copied().collect();
            let command = RevokeArgs::augment_args(clap::Command::new("revoke"));
            let matches = command.try_get_matches_from(&typed).unwrap();
            let args = RevokeArgs::from_arg_matches(&matches).unwrap();
            let behind = typed.windows(2).find(|pair| pair[0] == "--key").map(|pair| pair[1]);
            let args = args.with_key_apart(behind);
            (args.what, args.key.map(|key| key.to_str().unwrap().to_owned()))
        };
        let found = |what: &[&str], key: Option<&str>| {
            (what.iter().map(|&it| it.to_owned()).collect::<Vec<_>>(), key.map(str::to_owned))
        };
        assert_eq!(read(&["web", "--key", &key]), found(&["web"], Some(&key)));
        assert_eq!(read(&["--key", &key, "web"]), found(&["web"], Some(&key)));
        assert_eq!(read(&["web", &format!("--key={key}")]), found(&["web"], Some(&key)));
        // Everything else is a certificate, whose key is beside it.
        assert_eq!(read(&["web", "--key", &pair]), found(&["web", &pair], Some("")));
        assert_eq!(read(&["--key", "web"]), found(&["web"], Some("")));
        assert_eq!(read(&["web", "mail", "--key"]), found(&["web", "mail"], Some("")));
    }
}
