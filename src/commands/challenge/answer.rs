//! `challenge present` and `challenge cleanup`: present or remove the answer of one Challenge with the Challenge's solver.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::hints::{made_by_a_person, over, record};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::{LookArgs, NameserverArgs};
use crate::context::flags::output::OutputArgs;
use crate::controllers::ReconcileError;
use crate::controllers::by_hand::ManualAnswer;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::input::{completers, lookup, target};
use crate::issue::flags::dns01::Dns01Args;
use crate::issue::flags::drive::{lasting_http01, listener};
use crate::issue::flags::solver_pods::SolverPodArgs;
use crate::issue::preflight::announce;
use crate::lead::{Claim, Other, claim};
use crate::model::{Answer, Challenge, ChallengeType, Kind};
use crate::permissions::Permissions;
use crate::permissions::task::{Places, Task};
use crate::print::columns::Namespaces;
use crate::print::{Group, Shape};
use crate::solvers::tls_alpn01::TlsAlpn01;
use crate::solvers::{Solver, SolverGroup};
use crate::store::Store;
use crate::store::local::Access;
use crate::store::resources::typed;

/// Maximum time to wait for another command that drives.
const TURN_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);

/// Flags of `challenge present` and `challenge cleanup`.
#[derive(Debug, clap::Args)]
pub struct AnswerArgs {
    /// Name of the challenge
    #[arg(value_name = "NAME", add = completers::names(Kind::Challenge))]
    pub name: String,
    /// Answer HTTP-01 here [default: port 80]
    ///
    /// Repeatable; without this flag all addresses of this machine.
    #[arg(long, value_name = "ADDR:PORT", value_delimiter = ',')]
    pub http01_listen: Vec<SocketAddr>,
    /// Answer TLS-ALPN-01 here [default: port 443]
    ///
    /// Repeatable; without this flag all addresses of this machine.
    #[arg(long, hide_short_help = true, value_name = "ADDR:PORT", value_delimiter = ',')]
    pub tls_alpn_listen: Vec<SocketAddr>,
    /// Answer HTTP-01 by a file below DIR
    ///
    /// The file is written to DIR/.well-known/acme-challenge.
    #[arg(long, value_name = "DIR")]
    pub http01_webroot: Option<PathBuf>,
    /// Flags of DNS providers
    #[command(flatten)]
    pub dns01: Dns01Args,
    /// Flags of lookups
    #[command(flatten)]
    pub look: LookArgs,
    /// Name servers for zones
    #[command(flatten)]
    pub nameservers: NameserverArgs,
    /// Solver Pods that answer HTTP-01 in a cluster
    #[command(flatten)]
    pub solver_pods: SolverPodArgs,
    /// Flags of the output
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Action on the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerAction {
    /// Make the answer visible.
    Present,
    /// Remove the answer.
    CleanUp,
}

impl AnswerAction {
    fn words(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::CleanUp => "clean up",
        }
    }
}

/// Presents or removes the answer; sends nothing to the CA.
///
/// # Errors
/// Fails when there is no such challenge, when another process drives, and when the solver fails.
pub async fn run(
    args: AnswerArgs,
    action: AnswerAction,
    context: &mut Context,
) -> Result<(), Failure> {
    let name = target::name_of(Kind::Challenge, &args.name)?;
    let key = target::key(Kind::Challenge, &name, context.namespace());
    let found = context.store(Access::ReadOnly).await?;
    let key = lookup::one(&found, &key).await?;
    let name = key.name.name.clone();
    let challenge: Challenge = typed(lookup::read(&found, &key).await?)?;
    let answer = Answer::of(&challenge).map_err(|why| {
        Failure::new(FailureKind::Solver, format!("{}: {why}", cannot(action, &name)))
    })?;
    if action == AnswerAction::Present
        && let Some(why) = over(&challenge)
    {
        return Err(Failure::usage(format!("{}: {why}", cannot(action, &name))));
    }
    if action == AnswerAction::Present
        && let Some(record) = made_by_a_person(&challenge)
    {
        let message =
            format!("{}: no provider is named: a person makes the record", cannot(action, &name));
        return Err(Failure::new(FailureKind::Person, message)
            .hint(format!("make this record: {record}"))
            .hint("or add a dns01 solver to the issuer, and delete the order"));
    }
    if args.serves(&challenge, found.in_cluster()) && action == AnswerAction::Present {
        return serve(&args, &challenge, &answer, context).await;
    }
    let answers = args.http01_webroot.is_none() && args.http01_listen.is_empty();
    let places = Places::of(context, answers).with_direct(&args.dns01.dns01_webhook);
    let task = Task::answer(&challenge, places);
    let store = context.store_within(task.confinement(), Access::ReadWrite).await?;
    let permit = Permissions::new(context, task);
    let deadline = Timestamp::now().saturating_add(TURN_TIMEOUT).unwrap_or(Timestamp::MAX);
    let claim = claim(context, deadline, &permit).await?;
    if let Claim::Watches(Other { driver, next_step, .. }) = &claim {
        let message = format!(
            "{}: {driver} drives, and presents and cleans up answers by itself",
            cannot(action, &name)
        );
        return Err(Failure::new(FailureKind::OwnedByAnother, message).hint(next_step.clone()));
    }
    announce::work(context, &store, &BTreeSet::new(), &[], &claim, None).await?;
    // The Challenge was read before this process had the lead, so the copy may be old.
    let challenge: Challenge = typed(lookup::read(&store, &key).await?)?;
    let answering = ManualAnswer::new(&store, args.solver(&challenge, &store, context).await?);
    let now = Timestamp::now();
    let done = match action {
        AnswerAction::Present => answering.put_up(&challenge, &answer, now).await,
        AnswerAction::CleanUp => answering.take_down(&challenge, &answer, now).await,
    };
    done.map_err(|error| failure(action, &name, &error))?;
    let mut printer = context.printer(&args.output);
    if action == AnswerAction::CleanUp && challenge.spec.kind == ChallengeType::DnsPersist01 {
        printer.note(&format!(
            "the record stays, for the next order; remove it when no certificate needs it any more: {}",
            record(&challenge)
        ));
    }
    let Some(stored) = store.get(&key).await? else {
        printer.note(&format!("challenge {name} was deleted before; now it is gone"));
        return Ok(());
    };
    let groups = [Group { kind: Kind::Challenge, objects: vec![&stored.object] }];
    Ok(printer.resources(&groups, Shape::One, Namespaces::Hidden, context.now())?)
}

impl AnswerArgs {
    /// Returns whether a process on this machine serves the answer, and the answer ends with the process.
    fn serves(&self, challenge: &Challenge, in_cluster: bool) -> bool {
        let is_elsewhere = in_cluster && self.http01_listen.is_empty();
        match challenge.spec.kind {
            ChallengeType::Http01 => self.http01_webroot.is_none() && !is_elsewhere,
            ChallengeType::TlsAlpn01 => true,
            ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
                false
            }
        }
    }

    /// Builds the solver of a challenge whose answer outlives this process.
    async fn solver(
        &self,
        challenge: &Challenge,
        store: &Arc<dyn Store>,
        context: &Context,
    ) -> Result<Arc<dyn Solver>, Failure> {
        if challenge.spec.kind.is_by_record() {
            let fetcher = self.look.fetcher().await?;
            let zones = self.nameservers.zones(&self.look, &fetcher).await?;
            let namespace = &context.global.cluster_resource_namespace;
            let reach = self.dns01.reach(context);
            return Ok(reach.solver(store, zones, &fetcher.resolver, namespace));
        }
        let is_http = challenge.spec.kind == ChallengeType::Http01;
        let folder = self.http01_webroot.as_deref().filter(|_| is_http);
        let in_cluster = |cluster: &_| -> Arc<dyn Solver> {
            if is_http && self.http01_listen.is_empty() {
                return Arc::new(self.solver_pods.solver(cluster, None));
            }
            Arc::new(SolverGroup(Vec::new()))
        };
        Ok(lasting_http01(folder, in_cluster, context))
    }
}

/// Serves the answer from this process until interrupted, which is no failure; does not write to the store.
async fn serve(
    args: &AnswerArgs,
    challenge: &Challenge,
    answer: &Answer,
    context: &Context,
) -> Result<(), Failure> {
    let name = &challenge.metadata.name;
    let (solver, stays): (Box<dyn Solver>, &str) = match challenge.spec.kind {
        ChallengeType::TlsAlpn01 => (Box::new(TlsAlpn01::new(args.tls_alpn_listen.clone())), ""),
        _ => (
            Box::new(listener(&args.http01_listen).await?),
            "; --http01-webroot writes a file that stays",
        ),
    };
    let presented = solver.present(challenge, answer).await;
    presented.map_err(|error| failure(AnswerAction::Present, name, &error.into()))?;
    let domain = &challenge.spec.dns_name;
    context
        .printer(&args.output)
        .note(&format!("challenge {name}: this process answers for {domain} until Ctrl-C{stays}"));
    context.interrupted().wait().await;
    Ok(())
}

fn cannot(action: AnswerAction, name: &str) -> String {
    format!("cannot {} the answer of challenge {name}", action.words())
}

fn failure(action: AnswerAction, name: &str, error: &ReconcileError) -> Failure {
    let failure =
        Failure::new(FailureKind::of_error(error), format!("{}: {error}", cannot(action, name)));
    match error {
        ReconcileError::Solve(error) => failure.helped_by(error.remedy.as_deref()),
        _ => failure,
    }
}
