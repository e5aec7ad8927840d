//! How challenges are answered and looked at: flags of every command that works on resources.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::certificates::CertificateArgs;
use super::dns01::Dns01Args;
use super::ingress_shim::IngressShimArgs;
use super::probe_pod::ProbePodArgs;
use super::solver_pods::SolverPodArgs;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::duration;
use crate::context::flags::lease::LeaseArgs;
use crate::context::flags::look::{LookArgs, NameserverArgs};
use crate::context::flags::slots::SlotArgs;
use crate::dns::zone::Zones;
use crate::engine::{Equipment, Rules};
use crate::fetch::Fetcher;
use crate::model::request_rates::RequestRates;
use crate::model::{ChallengeType, Duration};
use crate::permissions::task::Places;
use crate::reconcile::request::Approval;
use crate::solvers::http01::files::Files;
use crate::solvers::http01::listener::Listener;
use crate::solvers::http01::webroot::Webroot;
use crate::solvers::tls_alpn01::TlsAlpn01;
use crate::solvers::{Solver, Together};
use crate::store::Store;
use crate::store::cluster::ClusterStore;

/// How challenges are answered and looked at.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Challenges")]
pub struct DriveArgs {
    /// Answer HTTP-01 here [default: port 80]
    ///
    /// Repeatable; without it all addresses of this machine.
    #[arg(long, value_name = "ADDR:PORT", value_delimiter = ',')]
    pub http01_listen: Vec<SocketAddr>,
    /// Answer TLS-ALPN-01 here [default: port 443]
    ///
    /// Repeatable; without it all addresses of this machine.
    #[arg(long, hide_short_help = true, value_name = "ADDR:PORT", value_delimiter = ',')]
    pub tls_alpn_listen: Vec<SocketAddr>,
    /// Answer HTTP-01 by files below DIR
    ///
    /// They are written to DIR/.well-known/acme-challenge, for a web server that runs already.
    #[arg(long, value_name = "DIR")]
    pub http01_webroot: Option<PathBuf>,
    /// Whether to approve CertificateRequests that nobody has denied; false leaves that to a policy or a person
    #[arg(long, hide_short_help = true, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub approve: bool,
    /// Which Certificates Ingresses ask for
    #[command(flatten)]
    pub ingress_shim: IngressShimArgs,
    /// What holds for every Certificate
    #[command(flatten)]
    pub certificates: CertificateArgs,
    /// How many challenges are in flight
    #[command(flatten)]
    pub slots: SlotArgs,
    /// Keep the request rates of this CA at directories whose own are not known
    #[arg(long, hide = true, value_name = "CA", value_parser = rates)]
    pub limits: Option<&'static RequestRates>,
    /// Longest pause between two self-checks of a challenge
    #[arg(
        long,
        hide_short_help = true,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = duration
    )]
    pub dns01_check_retry_period: Duration,
    /// How the self-check looks at names
    #[command(flatten)]
    pub look: LookArgs,
    /// How records are published
    #[command(flatten)]
    pub dns01: Dns01Args,
    /// Whom the self-check of DNS-01 asks
    #[command(flatten)]
    pub nameservers: NameserverArgs,
    /// How the self-check looks from inside a cluster
    #[command(flatten)]
    pub probe_pod: ProbePodArgs,
    /// What answers HTTP-01 in a cluster
    #[command(flatten)]
    pub solver_pods: SolverPodArgs,
    /// How the Lease is held
    #[command(flatten)]
    pub lease: LeaseArgs,
}

/// Reads the short name of a CA that publishes its request rates.
fn rates(name: &str) -> Result<&'static RequestRates, String> {
    RequestRates::named(name).ok_or_else(|| {
        let known: Vec<&str> = RequestRates::names().collect();
        format!("the request rates that are known are those of {}", known.join(" and "))
    })
}

impl DriveArgs {
    /// Returns what the controllers of a command with these flags work with.
    ///
    /// # Errors
    /// Fails when the host of a resolver has no address.
    pub async fn equipment(
        &self,
        store: Arc<dyn Store>,
        http01: Arc<dyn Solver>,
        fetcher: Fetcher,
        context: &Context,
    ) -> Result<Equipment, Failure> {
        let (zones, dns01) = (self.zones(&fetcher).await?, self.dns01.reach(context));
        let rules = Rules {
            approval: self.approval(),
            options: self.certificates.options(),
            cluster_resource_namespace: context.global.cluster_resource_namespace.clone(),
            limits: self.slots.limits(),
            rates: self.limits,
            check_period: self.dns01_check_retry_period.0,
            ..Rules::without_flags(dns01.is_in_cluster())
        };
        let usual = Equipment::new(store, http01, fetcher, zones);
        Ok(Equipment { dns01, tls_alpn01: self.tls_alpn01(), rules, ..usual })
    }

    /// What the self-check and our own CA look with.
    ///
    /// # Errors
    /// Fails when a flag cannot be read, or the resolver's host has no address.
    pub async fn fetcher(&self) -> Result<Fetcher, Failure> {
        self.look.fetcher().await
    }

    /// What finds zones and their servers.
    ///
    /// # Errors
    /// Fails when the resolver's host has no address.
    pub async fn zones(&self, fetcher: &Fetcher) -> Result<Zones, Failure> {
        self.nameservers.zones(&self.look, fetcher).await
    }

    /// Tells whether a flag has HTTP-01 answered on this machine, where there is a cluster, too.
    pub fn answers_here(&self) -> bool {
        self.http01_webroot.is_some() || !self.http01_listen.is_empty()
    }

    /// Tells whether answering HTTP-01 takes a port of this machine.
    fn takes_a_port(&self, in_cluster: bool) -> bool {
        self.http01_webroot.is_none() && (!in_cluster || !self.http01_listen.is_empty())
    }

    /// Where things are, as far as flags say it.
    pub fn places(&self, context: &Context) -> Places {
        Places::of(context, !self.answers_here()).with_direct(&self.dns01.dns01_webhook)
    }

    /// Who approves requests.
    pub fn approval(&self) -> Approval {
        if self.approve { Approval::Ours } else { Approval::Theirs }
    }

    /// What answers TLS-ALPN-01 by these flags; nothing listens yet.
    pub fn tls_alpn01(&self) -> Arc<TlsAlpn01> {
        Arc::new(TlsAlpn01::new(self.tls_alpn_listen.clone()))
    }

    /// Opens what answers HTTP-01: the webroot or the listener that a flag names; else, in a cluster, objects there, and
    /// on this machine port 80.
    ///
    /// # Errors
    /// Fails when the folder cannot be written, or the port is not permitted or taken, and names the ways out; nobody has
    /// been asked for anything then.
    pub async fn http01(&self, context: &Context) -> Result<Arc<dyn Solver>, Failure> {
        match context.cluster() {
            Some(cluster) if !self.answers_here() => {
                Ok(Arc::new(self.solver_pods.solver(cluster, None)))
            }
            cluster => self.http01_here(cluster.is_none()).await,
        }
    }

    /// Opens what answers HTTP-01 where a challenge of that type is asked for; otherwise nothing answers, and no port is taken.
    ///
    /// # Errors
    /// Fails as [`Self::http01`] does.
    pub async fn http01_for(
        &self,
        asked: &BTreeSet<ChallengeType>,
        in_cluster: bool,
        context: &Context,
    ) -> Result<Arc<dyn Solver>, Failure> {
        if self.takes_a_port(in_cluster) && !asked.contains(&ChallengeType::Http01) {
            return Ok(Arc::new(Files::beside(Arc::new(Together(Vec::new())))));
        }
        self.http01(context).await
    }

    /// Opens what answers HTTP-01 on this machine; challenges that are kept here remember files of theirs.
    ///
    /// # Errors
    /// Fails as [`Self::http01`] does.
    pub async fn http01_here(&self, are_kept_here: bool) -> Result<Arc<dyn Solver>, Failure> {
        if let Some(folder) = &self.http01_webroot {
            return Ok(webroot(folder, Webroot::open(folder).await?, are_kept_here));
        }
        let listener = Arc::new(listener(&self.http01_listen).await?);
        Ok(if are_kept_here { Arc::new(Files::beside(listener)) } else { listener })
    }
}

/// What answers by files in a folder; challenges that are kept on this machine remember them.
fn webroot(folder: &Path, webroot: Webroot, are_kept_here: bool) -> Arc<dyn Solver> {
    if are_kept_here { Arc::new(Files::below(folder, webroot)) } else { Arc::new(webroot) }
}

/// What puts answers up that outlive this process, and takes down those of a process that is gone: files where a flag names
/// their folder, else the objects of a cluster. A listener's answers ended with its process; files are where the challenge remembers
/// them.
pub fn lasting_http01(
    folder: Option<&Path>,
    in_cluster: impl FnOnce(&ClusterStore) -> Arc<dyn Solver>,
    context: &Context,
) -> Arc<dyn Solver> {
    match (folder, context.cluster()) {
        (Some(folder), cluster) => webroot(folder, Webroot::new(folder), cluster.is_none()),
        (None, Some(cluster)) => in_cluster(cluster),
        (None, None) => Arc::new(Files::beside(Arc::new(Together(Vec::new())))),
    }
}

/// Listens where a flag says, else on port 80.
///
/// # Errors
/// Fails when the port is not permitted or taken, and names the ways out.
pub async fn listener(addresses: &[SocketAddr]) -> Result<Listener, Failure> {
    let bound = match addresses {
        [] => Listener::bind_everywhere(80).await,
        addresses => Listener::bind(addresses).await,
    };
    Ok(bound?)
}
