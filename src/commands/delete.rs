//! `delete`: deletes objects of the local store; a Challenge with an answer is deleted after the clean-up of the answer.

use std::sync::Arc;

use crate::context::Context;
use crate::context::confirm::{ConfirmArgs, confirm};
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::input::selector::LabelSelector;
use crate::input::target::{self, Targets};
use crate::input::{completers, lookup};
use crate::model::{Issuer, Key, Kind, Record};
use crate::print::Printer;
use crate::print::columns::qualified_name;
use crate::store::local::Access;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Flags of `delete`.
#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// KIND NAME…, KIND/NAME…, or KIND with --all or -l
    #[arg(required = true, value_name = "KIND NAME|KIND/NAME", add = completers::objects())]
    pub objects: Vec<String>,
    /// Delete every object of the kind in the namespace
    #[arg(long)]
    pub all: bool,
    /// Delete in all namespaces, together with --all or -l
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Delete the objects with these labels: app=web, tier!=front, 'app in (web,mail)', app, !app
    #[arg(long, short = 'l', value_name = "LABELS")]
    pub selector: Option<LabelSelector>,
    /// Say nothing when there is no such object
    #[arg(long)]
    pub ignore_not_found: bool,
    /// Flag that confirms the deletion of an account key
    #[command(flatten)]
    pub confirm: ConfirmArgs,
    /// Print KIND/NAME of each deleted object: name
    #[arg(long, short, value_name = "FORMAT", value_parser = ["name"], env = "KUBECTL_ACME_DELETE_OUTPUT")]
    pub output: Option<String>,
}

/// Runs `delete`.
///
/// # Errors
/// Fails when the selection is unclear, an object is not found, or the store cannot be written.
pub async fn run(args: DeleteArgs, context: &mut Context) -> Result<(), Failure> {
    if let Some(secret) = account_secret(&args, context) {
        return delete_account_key(&secret, &args, context).await;
    }
    let wanted = Targets::parse(&args.objects)?;
    args.check(&wanted)?;
    let store = open(&args, context).await?;
    let mut printer = context.printer(&OutputArgs::default());
    let (found, missing) = find(&store, &wanted, &args, context).await?;
    for record in &found {
        store.delete(&record.key).await?;
        let line = match args.output {
            Some(_) => format!("{}\n", qualified_name(&record.object)),
            None => format!("{} deleted\n", quote(record)),
        };
        printer.text(&line)?;
    }
    say_what_waits(&store, &printer, &found).await?;
    if found.is_empty() && missing.is_empty() {
        say_nothing_found(&printer, &wanted, &args, context);
    }
    for failure in &missing {
        printer.error(&failure.message, &failure.hints);
    }
    if missing.is_empty() { Ok(()) } else { Err(Failure::silent(FailureKind::Unexpected)) }
}

/// Opens the local store; refuses a cluster, where kubectl deletes objects.
async fn open(args: &DeleteArgs, context: &mut Context) -> Result<Arc<dyn Store>, Failure> {
    // Without a state folder none is made.
    let exists = context.absent_state()?.is_none();
    let access = if exists { Access::ReadWrite } else { Access::ReadOnly };
    let store = context.store(access).await?;
    if !store.in_cluster() {
        return Ok(store);
    }
    let place = format!("--namespace={}", context.namespace());
    let words = ["delete".to_owned()].into_iter().chain(args.objects.clone()).chain([place]);
    let words: Vec<String> = words.collect();
    let what = "delete works on the local store (--local) only: use kubectl for a cluster";
    Err(Failure::usage(what).hint(invocation::current().kubectl(&words)))
}

/// Key of the Secret, if exactly one Secret is named.
fn account_secret(args: &DeleteArgs, context: &Context) -> Option<Key> {
    let (kind, name) = match &args.objects[..] {
        [word] => word.split_once('/')?,
        [kind, name] => (kind.as_str(), name.as_str()),
        _ => return None,
    };
    let is_named = Kind::parse(kind) == Some(Kind::Secret) && !name.is_empty();
    let is_alone = !args.all && args.selector.is_none() && !name.contains('/');
    (is_named && is_alone).then(|| target::key(Kind::Secret, name, context.namespace()))
}

/// Deletes the Secret of an account key, so that the Issuer gets another account. No other Secret is deleted: the Secret of
/// a certificate is deleted with the Certificate, and further Secrets do not belong to this program.
async fn delete_account_key(
    key: &Key,
    args: &DeleteArgs,
    context: &mut Context,
) -> Result<(), Failure> {
    let store = open(args, context).await?;
    let users = users(&store, key, context).await?;
    if store.get(key).await?.is_none() {
        if args.ignore_not_found {
            return Ok(());
        }
        return Err(lookup::not_found(&store, key).await?);
    }
    let Some(user) = users.first() else {
        let what = format!("{key} holds no account key: delete removes no other Secret");
        return Err(Failure::usage(what).about(key));
    };
    let wish = format!("delete the account key of {user} in {key} for ever");
    confirm(args.confirm, &wish, context).await?;
    store.delete(key).await?;
    let line = match args.output {
        Some(_) => format!("secret/{}\n", key.name.name),
        None => format!("secret \"{}\" deleted\n", key.name.name),
    };
    Ok(context.printer(&OutputArgs::default()).text(&line)?)
}

/// Keys of the Issuers whose account key is in a Secret.
async fn users(
    store: &Arc<dyn Store>,
    secret: &Key,
    context: &Context,
) -> Result<Vec<Key>, Failure> {
    let cluster_namespace = &context.global.cluster_resource_namespace;
    let mut users = Vec::new();
    for kind in [Kind::Issuer, Kind::ClusterIssuer] {
        let issuers = Resources::<Issuer>::new(Arc::clone(store), kind);
        for issuer in issuers.list(&Scope::all()).await? {
            let names_it = issuer.spec.acme.as_ref().is_some_and(|acme| {
                acme.private_key_secret_ref.name == secret.name.name
                    && issuer.secret_namespace(cluster_namespace) == secret.name.namespace
            });
            users.extend(names_it.then(|| Key::new(kind, issuer.name())));
        }
    }
    Ok(users)
}

impl DeleteArgs {
    fn check(&self, wanted: &Targets) -> Result<(), Failure> {
        let is_selected = self.all || self.selector.is_some();
        if self.all && self.selector.is_some() {
            return Err(Failure::usage("--all cannot be combined with a selector"));
        }
        match wanted {
            Targets::Kinds(_) if !is_selected => Err(Failure::usage("no name is given")
                .hint("write KIND NAME, or KIND --all for every object of a kind")),
            Targets::Named(_) if is_selected => {
                Err(Failure::usage("names cannot be combined with --all or a selector"))
            }
            Targets::Named(_) if self.all_namespaces => {
                let what = "a name belongs to one namespace, so it cannot be combined with -A";
                Err(Failure::usage(what))
            }
            Targets::Named(_) | Targets::Kinds(_) => Ok(()),
        }
    }
}

/// Finds all objects before the first deletion, since the deletion of an owner deletes its dependents.
async fn find(
    store: &Arc<dyn Store>,
    wanted: &Targets,
    args: &DeleteArgs,
    context: &Context,
) -> Result<(Vec<Record>, Vec<Failure>), Failure> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    match wanted {
        Targets::Kinds(kinds) => {
            let namespace = (!args.all_namespaces).then(|| context.namespace());
            for kind in kinds {
                let mut listed = store.list(*kind, &target::scope(*kind, namespace)).await?;
                listed.retain(|r| args.selector.as_ref().is_none_or(|labels| labels.fits(r)));
                found.extend(listed);
            }
        }
        Targets::Named(named) => {
            for (kind, name) in named {
                let key = target::key(*kind, name, context.namespace());
                match store.get(&key).await? {
                    Some(record) => found.push(record),
                    None if args.ignore_not_found => {}
                    None => missing.push(lookup::not_found(store, &key).await?),
                }
            }
        }
    }
    Ok((found, missing))
}

/// Object as kubectl prints it: `certificate.cert-manager.io "web"`.
fn quote(record: &Record) -> String {
    let Key { kind, name } = &record.key;
    format!("{}.{} \"{}\"", kind.singular(), kind.group(), name.name)
}

/// Prints the deleted objects that still exist: finalizers hold them until a driving command has removed their answers.
async fn say_what_waits(
    store: &Arc<dyn Store>,
    printer: &Printer,
    deleted: &[Record],
) -> Result<(), Failure> {
    if deleted.is_empty() {
        return Ok(());
    }
    let is_held = |record: &Record| record.metadata().is_deleted();
    let mut held = Vec::new();
    for kind in Kind::SIX {
        let listed = store.list(kind, &Scope::all()).await?;
        held.extend(listed.into_iter().filter(is_held).map(|record| record.key));
    }
    if held.is_empty() {
        return Ok(());
    }
    let names: Vec<String> =
        held.iter().map(|key| format!("{}/{}", key.kind.singular(), key.name.name)).collect();
    printer.note(&format!("still to be cleaned up: {}", names.join(", ")));
    printer.hint("the next order -f … or run removes the answers and then deletes these objects");
    Ok(())
}

fn say_nothing_found(printer: &Printer, wanted: &Targets, args: &DeleteArgs, context: &Context) {
    if args.ignore_not_found || matches!(wanted, Targets::Named(_)) {
        return;
    }
    let in_namespace = wanted.kinds().iter().any(|kind| kind.is_namespaced());
    let namespace = (in_namespace && !args.all_namespaces).then(|| context.namespace());
    printer.nothing_found(namespace);
}
