//! Assembly of the controllers, in one place, from the parts of a command or a test; and their orderly stop.

pub mod dns01;
pub mod memory_zone;
pub mod world;

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use self::dns01::ProviderMeans;
use self::memory_zone::MemoryZone;
pub use self::world::{ProcessMemory, Rules, World, account_keys};
use crate::acme::Clients;
use crate::context::failure::Failure;
use crate::controllers::Controller;
use crate::controllers::accounts::Accounts;
use crate::controllers::blocking::KeysAside;
use crate::controllers::certificate::CertificateController;
use crate::controllers::challenge::ChallengeController;
use crate::controllers::clock::SystemClock;
use crate::controllers::driver::Driver;
use crate::controllers::ingress_shim::IngressShimController;
use crate::controllers::issuer::IssuerController;
use crate::controllers::obstacles::Obstacles;
use crate::controllers::order::OrderController;
use crate::controllers::recorder::Recorder;
use crate::controllers::renewal_inquiry::RenewalInquiry;
use crate::controllers::request::RequestController;
use crate::controllers::scheduler::{Scheduler, SharedContention};
use crate::controllers::solver_set::SolverSet;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::dns::zone::Zones;
use crate::dns::{Resolve, in_place_of_system};
use crate::fetch::Fetcher;
use crate::probes::Probe;
use crate::probes::dns::DnsProbe;
use crate::probes::http::HttpProbe;
use crate::probes::tls_alpn::TlsAlpnProbe;
use crate::solvers::Solver;
use crate::solvers::dns01::manual::Manual;
use crate::solvers::tls_alpn01::TlsAlpn01;
use crate::store::Store;
use crate::store::cluster::lease::LeaseTimes;
use crate::store::error::StoreError;

/// Longest wait, when work ends, for answers of CAs to requests that only read.
const FINAL_READ_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);
/// Interval between two checks of whether the controllers still run.
const LIVENESS_CHECK_PERIOD: std::time::Duration = std::time::Duration::from_secs(1);

/// Running controllers.
#[derive(Debug)]
pub struct Engine {
    stop: CancellationToken,
    task: JoinHandle<Result<(), StoreError>>,
    obstacles: watch::Receiver<Obstacles>,
    clients: Arc<Clients>,
    /// Time that steps under way may take after the Lease is lost.
    grace: std::time::Duration,
}

/// Builds the clients of CAs, whose hosts are looked up by `--dns` if that flag is given.
pub fn clients(resolver: &Arc<dyn Resolve>) -> Clients {
    Clients::with_resolver(in_place_of_system(resolver))
}

/// Parts that the controllers are made of.
#[derive(Debug)]
pub struct ControllerParts {
    /// Store with the resources.
    pub store: Arc<dyn Store>,
    /// Solver of HTTP-01.
    pub http01: Arc<dyn Solver>,
    /// Means of the DNS-01 providers.
    pub dns01: ProviderMeans,
    /// Solver of TLS-ALPN-01.
    pub tls_alpn01: Arc<TlsAlpn01>,
    /// HTTP and TLS client of the self-check.
    pub fetcher: Fetcher,
    /// Finder of zones and their name servers.
    pub zones: Zones,
    /// Zone of a rehearsal, in place of providers and real zones.
    pub memory_zone: Option<MemoryZone>,
    /// Clients of CAs.
    pub clients: Clients,
    /// Rules of the controllers.
    pub rules: Rules,
}

impl ControllerParts {
    /// Builds the parts for a command without flags: no listener for TLS-ALPN-01, no credentials from the environment.
    pub fn new(
        store: Arc<dyn Store>,
        http01: Arc<dyn Solver>,
        fetcher: Fetcher,
        zones: Zones,
    ) -> Self {
        Self {
            dns01: ProviderMeans::default(),
            memory_zone: None,
            clients: clients(&fetcher.resolver),
            tls_alpn01: Arc::new(TlsAlpn01::new(Vec::new())),
            rules: Rules::without_flags(store.in_cluster()),
            store,
            http01,
            fetcher,
            zones,
        }
    }
}

impl Engine {
    /// Starts the controllers with an HTTP probe of this machine.
    pub fn start(equipment: ControllerParts) -> Self {
        let probe = Arc::new(HttpProbe { fetcher: equipment.fetcher.clone() });
        Self::start_looking(equipment, probe, CancellationToken::new())
    }

    /// Starts the controllers with the given probe for the HTTP-01 self-check; both run until `stop` is canceled.
    pub fn start_looking(
        equipment: ControllerParts,
        probe: Arc<dyn Probe>,
        stop: CancellationToken,
    ) -> Self {
        let ControllerParts { store, http01, tls_alpn01, fetcher, zones, rules, clients, .. } =
            equipment;
        let namespace = &rules.cluster_resource_namespace;
        let dns01_probe: Arc<dyn Probe>;
        let dns01: Arc<dyn Solver>;
        if let Some(zone) = equipment.memory_zone {
            (dns01, dns01_probe) = (Arc::new(zone.clone()), Arc::new(zone));
        } else {
            let reach = equipment.dns01;
            dns01 = reach.solver(&store, zones.clone(), &fetcher.resolver, namespace);
            dns01_probe = Arc::new(DnsProbe { zones });
        }
        let world = World {
            clock: Arc::new(SystemClock::default()),
            clients,
            keys: Arc::new(KeysAside),
            http01,
            dns01,
            tls_alpn01,
            http01_probe: probe,
            dns01_probe,
            tls_alpn01_probe: Arc::new(TlsAlpnProbe { fetcher }),
        };
        Self::start_in(world, store, rules, stop)
    }

    /// Starts the controllers in the caller's world; they run until `stop` is canceled.
    pub fn start_in(
        world: World,
        store: Arc<dyn Store>,
        rules: Rules,
        stop: CancellationToken,
    ) -> Self {
        let Rules { selection, limits, .. } = rules;
        let World { clock, clients, keys, dns01, .. } = world;
        let telling = Arc::clone(&clock);
        let ProcessMemory { unwritten, budget, refused } = rules.memory;
        let clients = clients.by_clock(move || telling.now()).remembering(refused);
        let clients = Arc::new(clients.with_rates(rules.rates));
        let namespace = rules.cluster_resource_namespace;
        let connect = Accounts::connect_with(Arc::clone(&clients));
        let accounts = Arc::new(Accounts::new(&store, &namespace, connect));
        let recorder = Recorder::new(Arc::clone(&store));
        let contention = SharedContention::default();
        let by_hand = dns01.is_by_hand();
        let solvers = SolverSet {
            http01: world.http01,
            by_person: Arc::new(Manual { provider: Arc::clone(&dns01) }),
            dns01,
            tls_alpn01: world.tls_alpn01,
            http01_probe: world.http01_probe,
            dns01_probe: world.dns01_probe,
            tls_alpn01_probe: world.tls_alpn01_probe,
            contention: contention.clone(),
            check_period: rules.check_period,
        };
        let (asking, defaults) = rules.asking;
        let mut controllers: Vec<Arc<dyn Controller>> = vec![
            Arc::new(
                IssuerController::new(recorder.clone(), Arc::clone(&accounts), rules.account_keys)
                    .by_hand(by_hand)
                    .making(Arc::clone(&keys)),
            ),
            Arc::new(
                CertificateController::new(recorder.clone())
                    .with(rules.options)
                    .making(keys)
                    .asking(RenewalInquiry::new(Arc::clone(&clients))),
            ),
            Arc::new(RequestController::new(
                recorder.clone(),
                Arc::clone(&accounts),
                rules.approval,
            )),
            Arc::new(
                OrderController::new(recorder.clone(), accounts.clone(), selection.clone(), budget)
                    .with_types(rules.types)
                    .within(limits)
                    .remembering(unwritten),
            ),
            Arc::new(ChallengeController::new(
                recorder.clone(),
                Arc::clone(&accounts),
                solvers,
                Arc::clone(&clock),
            )),
            Arc::new(Scheduler::new(recorder.clone(), limits, selection.clone(), contention)),
        ];
        controllers.extend(asking.into_iter().map(|kind| -> Arc<dyn Controller> {
            Arc::new(IngressShimController::new(kind, recorder.clone(), defaults.clone()))
        }));
        let (sender, obstacles) = watch::channel(Obstacles::new());
        let driver = Driver::new(store, clock, controllers, selection, sender);
        let task = tokio::spawn(driver.run(stop.clone()));
        let grace = LeaseTimes::default().grace();
        Self { stop, task, obstacles, clients, grace }
    }

    /// Sets the time that steps under way may take after the Lease is lost.
    #[must_use]
    pub fn with_grace(self, grace: std::time::Duration) -> Self {
        Self { grace, ..self }
    }

    /// Obstacles by object; the receiver wakes on every change.
    pub fn obstacles(&self) -> watch::Receiver<Obstacles> {
        self.obstacles.clone()
    }

    /// Clients of the CAs.
    pub fn clients(&self) -> &Arc<Clients> {
        &self.clients
    }

    /// Returns whether the controllers have ended by themselves.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until the controllers have ended by themselves.
    pub async fn ended(&self) {
        while !self.has_ended() {
            tokio::time::sleep(LIVENESS_CHECK_PERIOD).await;
        }
    }

    /// Stops the controllers after the steps under way, without waiting for a CA that does not answer a read request.
    /// Once the Lease is lost, the steps have a grace period and are then aborted: another controller may start soon.
    ///
    /// # Errors
    /// Fails when the controllers had ended before, because the store could no longer be used.
    pub async fn stop(mut self, lost: &CancellationToken) -> Result<(), Failure> {
        self.stop.cancel();
        tokio::select! {
            biased;
            () = lost.cancelled() => {
                if tokio::time::timeout(self.grace, &mut self.task).await.is_err() {
                    self.task.abort();
                }
                Ok(())
            }
            ended = wait_for_end(&mut self.task, &self.clients) => match ended {
                Ok(result) => Ok(result?),
                Err(_) => Err(Failure::new(FailureKind::Unexpected, "a controller panicked")),
            }
        }
    }
}

/// Waits until the controllers have ended; after [`FINAL_READ_TIMEOUT`] requests that only read are broken off.
async fn wait_for_end<T>(task: &mut JoinHandle<T>, clients: &Clients) -> Result<T, JoinError> {
    if let Ok(ended) = tokio::time::timeout(FINAL_READ_TIMEOUT, &mut *task).await {
        return ended;
    }
    clients.stop_reading();
    task.await
}

#[cfg(test)]
mod tests {
    use std::time::Duration as StdDuration;

    use tokio::time::{Instant, sleep};

    use super::*;

    const SECOND: StdDuration = StdDuration::from_secs(1);

    /// Stops controllers whose step takes so many seconds, while the Lease is lost after so many; tells how long that took,
    /// and whether the step was finished.
    async fn check(takes: u32, lost_after: u32, expected: (u32, bool)) {
        let (done, stop, lost) =
            <(CancellationToken, CancellationToken, CancellationToken)>::default();
        let (finished, loses) = (done.clone(), lost.clone());
        let task = tokio::spawn(async move {
            sleep(SECOND * takes).await;
            finished.cancel();
            Ok(())
        });
        tokio::spawn(async move {
            sleep(SECOND * lost_after).await;
            loses.cancel();
        });
        let (_sender, obstacles) = watch::channel(Obstacles::new());
        let (clients, grace) = (Arc::new(Clients::new()), SECOND * 5);
        let engine = Engine { stop, task, obstacles, clients, grace };
        let began = Instant::now();
        engine.stop(&lost).await.unwrap();
        let took = began.elapsed().as_secs_f64().round();
        assert_eq!((took, done.is_cancelled()), (expected.0.into(), expected.1));
    }

    #[tokio::test(start_paused = true)]
    async fn steps_under_way_are_finished_unless_the_lease_is_lost_meanwhile() {
        check(40, 60, (40, true)).await;
        check(40, 10, (15, false)).await;
        check(12, 10, (12, true)).await;
    }
}
