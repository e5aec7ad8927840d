//! `account export`, `account import` and `account recover`: the key of an account as a file, and the account of a key.
//!
//! A key is stored only after the CA has named the account of the key: a wrong file changes nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

use crate::account::{
    AccountClient, AskArgs, NamedAccount, WrittenParts, ask, is_unknown, refused,
};
use crate::acme::{AccountKey, AccountReply, Acme as _, Registration};
use crate::context::Context;
use crate::context::blocking::{Unfinished, aside};
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::controllers::account_secrets;
use crate::controllers::accounts::key_in_secret;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk::{self, Durability, FileAccess, Folder, Links};
use crate::input::files::reason;
use crate::input::{self, Input, applying, completers};
use crate::model::{Blob, Kind, Record, Secret};
use crate::reconcile::issuer::{self, Outcome};
use crate::store::local::Access;
use crate::store::resources::{Resources, typed};

/// Maximum size of a key file, in bytes.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// Flags of `account export`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExportArgs {
    /// Name of the Issuer, or KIND/NAME
    #[arg(value_name = "ISSUER", add = completers::names(Kind::Issuer))]
    issuer: String,
    /// File to write the key to: PEM, readable by its owner only; an existing file is kept
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Flags of `account import`.
#[derive(Clone, Debug, clap::Args)]
pub struct ImportArgs {
    /// Name of the Issuer, or KIND/NAME
    #[arg(value_name = "ISSUER", add = completers::names(Kind::Issuer))]
    issuer: String,
    /// The key: PEM or JWK
    ///
    /// certbot keeps the key in accounts/SERVER/ID/private_key.json, lego in accounts/SERVER/EMAIL/keys/EMAIL.key, acme.sh in
    /// ca/SERVER/account.key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Replace another account key of the Issuer; the old key stays in the Secret under another name
    #[arg(long)]
    replace: bool,
    /// Flags of requests to the CA
    #[command(flatten)]
    ask: AskArgs,
}

/// Flags of `account recover`.
#[derive(Clone, Debug, clap::Args)]
pub struct RecoverArgs {
    /// Name of the Issuer, or KIND/NAME
    #[arg(
        value_name = "ISSUER",
        required_unless_present = "files",
        add = completers::names(Kind::Issuer)
    )]
    issuer: Option<String>,
    /// Manifest of the Issuer, if the store is lost as well
    #[arg(long = "filename", short = 'f', value_name = "PATH", requires = "key")]
    files: Vec<String>,
    /// The key, if the Issuer's Secret is lost as well: PEM or JWK
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Flags of requests to the CA
    #[command(flatten)]
    ask: AskArgs,
}

/// Writes the key of an account to a file that only its owner may read.
///
/// # Errors
/// Fails when there is no key, or when the file exists already or cannot be written.
pub async fn export(args: ExportArgs, context: &Context) -> Result<(), Failure> {
    let desk = AccountClient::open(&AskArgs::default(), Access::ReadOnly, context).await?;
    let account = desk.named(&args.issuer, context).await?;
    let key = desk.key(&account)?;
    let pem = key.to_pem().map_err(|why| Failure::usage(format!("{}: {why}", account.key())))?;
    let path = args.out.clone();
    let shown = args.out.display().to_string();
    let written = aside(context.interrupted(), Duration::ZERO, move || write_new(&path, &pem));
    match written.await {
        Ok(written) => written
            .map_err(|error| Failure::usage(format!("cannot write {shown}: {}", reason(&error))))?,
        Err(Unfinished::Signal(kind)) => return Err(Failure::silent(kind)),
        Err(Unfinished::Panic) => {
            return Err(Failure::new(FailureKind::Unexpected, "writing the key panicked"));
        }
    }
    let said = format!("account key of {} is in {shown}\n", account.key());
    Ok(context.printer(&OutputArgs::default()).text(&said)?)
}

fn write_new(path: &Path, pem: &str) -> std::io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(std::io::ErrorKind::AlreadyExists.into());
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or(std::io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = Folder::open(parent.unwrap_or_else(|| Path::new(".")), Links::All)?;
    let draft = format!(".{name}.kubectl-acme");
    folder.replace(name, &draft, pem.as_bytes(), FileAccess::Owner, Durability::Lasting)
}

/// Stores the key of an account that another ACME client made.
///
/// # Errors
/// Fails when the file holds no key, the CA has no account for the key, or the Issuer has another key.
pub async fn import(args: ImportArgs, context: &Context) -> Result<(), Failure> {
    let key = read_key(&args.key, context).await?;
    let desk = AccountClient::open(&args.ask, Access::ReadWrite, context).await?;
    let account = desk.named(&args.issuer, context).await?;
    let wish = Adoption { account, key, replace: args.replace, input: None };
    adopt(&desk, wish, context).await
}

/// Finds the account of a key at the CA again, and records the account's URL.
///
/// # Errors
/// Fails when there is no key, or the CA has no account for the key.
pub async fn recover(args: RecoverArgs, context: &Context) -> Result<(), Failure> {
    let given = match &args.key {
        Some(file) => Some(read_key(file, context).await?),
        None => None,
    };
    let input = match &args.files[..] {
        [] => None,
        files => Some(input::manifests(files, false, context, &OutputArgs::default()).await?),
    };
    let desk = AccountClient::open(&args.ask, Access::ReadWrite, context).await?;
    let account = match &input {
        Some(input) => issuer_of_manifests(input, args.issuer.as_deref())?,
        None => desk.named(args.issuer.as_deref().unwrap_or_default(), context).await?,
    };
    let key = match given {
        Some(key) => key,
        None => desk.key(&account)?,
    };
    let wish = Adoption { account, key, replace: false, input };
    adopt(&desk, wish, context).await
}

/// Returns the one Issuer of the manifests, which is not in the store yet.
fn issuer_of_manifests(input: &Input, name: Option<&str>) -> Result<NamedAccount, Failure> {
    let is_issuer =
        |record: &&Record| matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer);
    let is_meant = |record: &&Record| name.is_none_or(|name| record.key.name.name == name);
    let issuers: Vec<&Record> = input.records().iter().filter(is_issuer).filter(is_meant).collect();
    let [record] = issuers[..] else {
        let what = format!("the manifests hold {} matching Issuers, not one", issuers.len());
        return Err(Failure::usage(what).hint("name the Issuer that uses the account"));
    };
    NamedAccount::new(typed(record.clone())?, None)
}

async fn read_key(path: &Path, context: &Context) -> Result<AccountKey, Failure> {
    let shown = path.display().to_string();
    let path = path.to_owned();
    let reading = move || {
        let bytes = fs::File::open(path).and_then(|file| disk::read_bytes(file, MAX_KEY_BYTES));
        bytes.map(Zeroizing::new)
    };
    let unreadable = |why: String| Failure::usage(format!("cannot read {shown}: {why}"));
    match aside(context.interrupted(), Duration::ZERO, reading).await {
        Ok(Ok(bytes)) => AccountKey::from_file(&bytes).map_err(|why| {
            Failure::usage(format!("{shown}: {why}"))
                .hint("an account key is PEM, or JWK as certbot keeps it (private_key.json)")
        }),
        Ok(Err(error)) => Err(unreadable(reason(&error))),
        Err(Unfinished::Signal(kind)) => Err(Failure::silent(kind)),
        Err(Unfinished::Panic) => Err(unreadable("reading panicked".to_owned())),
    }
}

/// Request that an Issuer use the account of a key.
struct Adoption {
    account: NamedAccount,
    key: AccountKey,
    /// Whether another key of the Issuer may be replaced.
    replace: bool,
    /// Manifests of the Issuer, if the Issuer is not in the store yet.
    input: Option<Input>,
}

/// Makes an Issuer use the account of a key.
async fn adopt(desk: &AccountClient, wish: Adoption, context: &Context) -> Result<(), Failure> {
    let Adoption { mut account, key, replace, input } = wish;
    let named = account.key();
    let other = desk.key(&account).ok().filter(|known| known.hash() != key.hash());
    if other.is_some() && !replace {
        let place = desk.secret_place(&account);
        let what =
            format!("{named} has another account key in Secret {place}: nothing was changed");
        return Err(Failure::usage(what).about(&named).hint(
            "account import --replace stores the new key and keeps the old key under another name",
        ));
    }
    let written = WrittenParts {
        issuer: if input.is_some() { &["create", "patch"] } else { &["patch"] },
        secret: match &account.secret {
            None => &["create"],
            Some(_) if desk.key(&account).is_ok_and(|known| known.hash() == key.hash()) => &[],
            Some(_) => &["update"],
        },
        is_told: true,
    };
    desk.must_be_writable(&account, &written, context).await?;
    let found = find(desk, &account, &key, context).await?;
    let printer = context.printer(&OutputArgs::default());
    if let Some(input) = &input {
        // The key is stored first: an Issuer without a key would get a new one.
        store_key(desk, &account, &key).await?;
        applying::apply(input, input.records(), desk.store(), context, &printer).await?;
        let word = format!("{}/{}", named.kind.singular(), named.name.name);
        account = desk.named(&word, context).await?;
    }
    let secret = store_key(desk, &account, &key).await?;
    let registered = Outcome::Registered {
        url: found.url.clone(),
        contact: found.contact,
        key_hash: key.hash(),
    };
    desk.record(&account.issuer, registered).await?;
    let said = format!("account {} of {named} has its key in Secret {secret}\n", found.url);
    Ok(context.printer(&OutputArgs::default()).text(&said)?)
}

/// Finds the account of a key at the CA (RFC 8555 §7.3.1).
async fn find(
    desk: &AccountClient,
    account: &NamedAccount,
    key: &AccountKey,
    context: &Context,
) -> Result<AccountReply, Failure> {
    let session = desk.session(account, key.clone(), None)?;
    let existing = Registration { only_return_existing: true, ..Registration::default() };
    let what = "cannot find the account of";
    let asking = async {
        match session.register(&existing).await {
            Err(error) if is_unknown(&error) => Ok(Err(error)),
            answered => answered.map(Ok),
        }
    };
    ask(asking, account, what, context).await?.map_err(|error| {
        refused(error, account, what).hint(format!(
            "{} has no account for this key; nothing was changed",
            account.acme.server
        ))
    })
}

/// Stores a key in the Secret of the Issuer; another key in the Secret is kept under another name.
async fn store_key(
    desk: &AccountClient,
    account: &NamedAccount,
    key: &AccountKey,
) -> Result<String, Failure> {
    let (acme, place) = (&account.acme, desk.secret_place(account));
    let pem = key.to_pem().map_err(|why| Failure::usage(format!("{}: {why}", account.key())))?;
    let secrets = Resources::<Secret>::new(desk.store.clone(), Kind::Secret)
        .written_by(issuer::writer(&account.issuer));
    match &account.secret {
        None => {
            let namespace = desk.accounts.secret_namespace(&account.issuer);
            secrets.create(&account_secrets::new_secret(acme, namespace, &pem)).await?;
        }
        Some(_) if desk.key(account).is_ok_and(|known| known.hash() == key.hash()) => {}
        Some(secret) => {
            let (mut changed, entry) = (secret.clone(), key_in_secret(acme));
            let old = changed.data.insert(entry.clone(), Blob(pem.as_bytes().to_vec()));
            changed.data.extend(old.map(|old| (format!("{entry}.unused"), old)));
            secrets.replace(&changed).await?;
        }
    }
    Ok(place)
}
