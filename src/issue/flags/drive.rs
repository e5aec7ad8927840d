//! Flags of every command that works on resources: how challenges are answered and checked.

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
use crate::engine::{ControllerParts, Rules};
use crate::fetch::Fetcher;
use crate::model::request_rates::RequestRates;
use crate::model::{ChallengeType, Duration};
use crate::permissions::task::Places;
use crate::reconcile::request::Approval;
use crate::solvers::http01::files::RememberedFiles;
use crate::solvers::http01::listener::Listener;
use crate::solvers::http01::webroot::Webroot;
use crate::solvers::tls_alpn01::TlsAlpn01;
use crate::solvers::{Solver, SolverGroup};
use crate::store::Store;
use crate::store::cluster::ClusterStore;

/// Flags that decide how challenges are answered and checked.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Challenges")]
pub struct DriveArgs {
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
    /// Answer HTTP-01 by files below DIR
    ///
    /// The files are written to DIR/.well-known/acme-challenge, for a web server that runs already.
    #[arg(long, value_name = "DIR")]
    pub http01_webroot: Option<PathBuf>,
    /// Whether to approve CertificateRequests that are not denied; false leaves approval to a policy or a person
    #[arg(long, hide_short_help = true, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub approve: bool,
    /// Which Certificates Ingresses ask for
    #[command(flatten)]
    pub ingress_shim: IngressShimArgs,
    /// Flags for all Certificates
    #[command(flatten)]
    pub certificates: CertificateArgs,
    /// Number of challenges in flight
    #[command(flatten)]
    pub slots: SlotArgs,
    /// Keep the request rates of this CA at directories whose own rates are not known
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
    /// Flags of the self-check
    #[command(flatten)]
    pub look: LookArgs,
    /// Flags for the publication of DNS-01 records
    #[command(flatten)]
    pub dns01: Dns01Args,
    /// Name servers of the DNS-01 self-check
    #[command(flatten)]
    pub nameservers: NameserverArgs,
    /// Self-check from inside a cluster
    #[command(flatten)]
    pub probe_pod: ProbePodArgs,
    /// Solver Pods in a cluster
    #[command(flatten)]
    pub solver_pods: SolverPodArgs,
    /// Terms of the Lease
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
    ) -> Result<ControllerParts, Failure> {
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
        let usual = ControllerParts::new(store, http01, fetcher, zones);
        Ok(ControllerParts { dns01, tls_alpn01: self.tls_alpn01(), rules, ..usual })
    }

    /// Returns the fetcher with which the self-check and our own CA check challenges.
    ///
    /// # Errors
    /// Fails when a flag cannot be read, or the resolver's host has no address.
    pub async fn fetcher(&self) -> Result<Fetcher, Failure> {
        self.look.fetcher().await
    }

    /// Returns the finder of zones and their name servers.
    ///
    /// # Errors
    /// Fails when the resolver's host has no address.
    pub async fn zones(&self, fetcher: &Fetcher) -> Result<Zones, Failure> {
        self.nameservers.zones(&self.look, fetcher).await
    }

    /// Returns whether a flag has HTTP-01 answered on this machine, even if there is a cluster.
    pub fn answers_here(&self) -> bool {
        self.http01_webroot.is_some() || !self.http01_listen.is_empty()
    }

    /// Returns whether answering HTTP-01 takes a port of this machine.
    fn takes_a_port(&self, in_cluster: bool) -> bool {
        self.http01_webroot.is_none() && (!in_cluster || !self.http01_listen.is_empty())
    }

    /// Returns the places that flags decide, by which permissions are checked.
    pub fn places(&self, context: &Context) -> Places {
        Places::of(context, !self.answers_here()).with_direct(&self.dns01.dns01_webhook)
    }

    /// Returns who approves CertificateRequests.
    pub fn approval(&self) -> Approval {
        if self.approve { Approval::Ours } else { Approval::Theirs }
    }

    /// Builds the TLS-ALPN-01 solver of these flags; nothing listens yet.
    pub fn tls_alpn01(&self) -> Arc<TlsAlpn01> {
        Arc::new(TlsAlpn01::new(self.tls_alpn_listen.clone()))
    }

    /// Opens the HTTP-01 solver: the webroot or the listener that a flag names; else objects in a cluster if there is one,
    /// and port 80 on this machine if not.
    ///
    /// # Errors
    /// Fails when the folder cannot be written, or the port is not permitted or taken, and names the ways out; the CA has
    /// not been asked for anything by then.
    pub async fn http01(&self, context: &Context) -> Result<Arc<dyn Solver>, Failure> {
        match context.cluster() {
            Some(cluster) if !self.answers_here() => {
                Ok(Arc::new(self.solver_pods.solver(cluster, None)))
            }
            cluster => self.http01_here(cluster.is_none()).await,
        }
    }

    /// Opens the HTTP-01 solver; if it would take a port that no type in `asked` needs, returns a solver without answers.
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
            return Ok(Arc::new(RememberedFiles::beside(Arc::new(SolverGroup(Vec::new())))));
        }
        self.http01(context).await
    }

    /// Opens the HTTP-01 solver of this machine; Challenges that are kept on this machine remember their files.
    ///
    /// # Errors
    /// Fails as [`Self::http01`] does.
    pub async fn http01_here(&self, are_kept_here: bool) -> Result<Arc<dyn Solver>, Failure> {
        if let Some(folder) = &self.http01_webroot {
            return Ok(webroot(folder, Webroot::open(folder).await?, are_kept_here));
        }
        let listener = Arc::new(listener(&self.http01_listen).await?);
        Ok(if are_kept_here { Arc::new(RememberedFiles::beside(listener)) } else { listener })
    }
}

/// Builds the solver that answers by files in a folder; Challenges that are kept on this machine remember the files.
fn webroot(folder: &Path, webroot: Webroot, are_kept_here: bool) -> Arc<dyn Solver> {
    if are_kept_here {
        Arc::new(RememberedFiles::below(folder, webroot))
    } else {
        Arc::new(webroot)
    }
}

/// Builds the solver whose answers outlive this process, and that removes answers of a process that has ended: files if a
/// flag names their folder, else the objects of a cluster. A listener's answers end with its process; the challenge
/// remembers where its files are.
pub fn lasting_http01(
    folder: Option<&Path>,
    in_cluster: impl FnOnce(&ClusterStore) -> Arc<dyn Solver>,
    context: &Context,
) -> Arc<dyn Solver> {
    match (folder, context.cluster()) {
        (Some(folder), cluster) => webroot(folder, Webroot::new(folder), cluster.is_none()),
        (None, Some(cluster)) => in_cluster(cluster),
        (None, None) => Arc::new(RememberedFiles::beside(Arc::new(SolverGroup(Vec::new())))),
    }
}

/// Listens at the addresses of a flag, or on port 80 if there are none.
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
