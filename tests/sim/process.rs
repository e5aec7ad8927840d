//! The processes: each takes the Lease where there is one, drives until it loses it or is killed, and comes again.

use std::sync::Arc;
use std::time::Duration;

use kubectl_acme::acme::{Clients, KeyMaker};
use kubectl_acme::controllers::clock::SystemClock;
use kubectl_acme::engine::{Engine, ProcessMemory, Rules, World as Outside, account_keys};
use kubectl_acme::model::order_budget::Allowance;
use kubectl_acme::reconcile::schedule::Limits;
use kubectl_acme::store::Store;
use kubectl_acme::store::cluster::lease::{ClusterLease, LEASE_NAMESPACE};
use kubectl_acme::store::lease::Role;
use kubectl_acme::store::mirror::Mirror;
use kubectl_acme::surroundings::{Environment, Now};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::answers::{SimProbe, SimSolver};
use super::ca::SimCarrier;
use super::events::Event;
use super::keys::SeededKeys;
use super::lease;
use super::rng::Lots;
use super::store::SimStore;
use super::world::{Life, World};

/// One place in which processes follow each other.
pub(crate) async fn inhabit(world: Arc<World>, place: usize) {
    let later = world.lots.with(|lots| lots.below(3_000));
    if place > 0 {
        sleep(Duration::from_millis(later)).await;
    }
    for incarnation in 0.. {
        let life = world.next_life(place, incarnation);
        world.tell(Event::Starts { life: life.number, place });
        let over = Arc::clone(&life);
        tokio::select! {
            biased;
            () = over.over.notified() => {}
            () = live(Arc::clone(&life)) => {}
        }
        life.end();
        world.answers.lock().gone(life.number);
        let pause = world.lots.with(|lots| lots.pick(&[10, 1_000, 7_000, 40_000]));
        sleep(Duration::from_millis(pause)).await;
    }
}

/// Drives, for as long as it may.
async fn live(life: Arc<Life>) {
    let memory = ProcessMemory::new(Allowance::Standing);
    // One for the whole life: another one would make the same keys again.
    let keys = Lots::of(life.world.setting.seed, &format!("keys {}", life.number));
    let keys: Arc<dyn KeyMaker> = Arc::new(SeededKeys(keys));
    let client = kube::Client::new(lease::router(&life), "default");
    let surroundings = Environment { now: now_of(&life), ..Environment::default() };
    let lease = ClusterLease::at(client, "https://api.example", LEASE_NAMESPACE).unwrap();
    let lease = lease.within(surroundings);
    life.identity.set(lease.identity().to_owned()).ok();
    loop {
        let (lost, guard) = if life.world.setting.cluster {
            let Some(guard) = hold(&lease, &life).await else {
                sleep(Duration::from_secs(2)).await;
                continue;
            };
            (guard.lost(), Some(guard))
        } else {
            (CancellationToken::new(), None)
        };
        life.world.tell(Event::Drives { place: life.place });
        let engine = start(&life, &memory, &keys);
        lost.cancelled().await;
        if engine.has_ended() {
            life.world.violated("the engine ended by itself".to_owned());
        }
        life.world.tell(Event::Lost { place: life.place });
        if engine.stop(&lost).await.is_err() {
            life.world.violated("the engine could not be stopped".to_owned());
        }
        drop(guard);
    }
}

/// The Lease under the one name of this life: a process makes its name once.
async fn hold(
    lease: &ClusterLease,
    life: &Life,
) -> Option<kubectl_acme::store::cluster::lease::ClusterGuard> {
    match lease.acquire(Role::Always).await {
        Ok(guard) => Some(guard),
        Err(error) => {
            let what = format!("p{} has no Lease: {error}", life.place);
            life.world.tell(Event::Note { what });
            None
        }
    }
}

fn now_of(life: &Arc<Life>) -> Now {
    let life = Arc::clone(life);
    Arc::new(move || life.world.now_at(life.place))
}

fn start(life: &Arc<Life>, memory: &ProcessMemory, keys: &Arc<dyn KeyMaker>) -> Engine {
    let setting = &life.world.setting;
    let store: Arc<dyn Store> = Arc::new(SimStore::new(life));
    let store: Arc<dyn Store> = if setting.cluster { Arc::new(Mirror::new(store)) } else { store };
    let solver = Arc::new(SimSolver::new(life));
    let probe = Arc::new(SimProbe(Arc::clone(life)));
    let now = now_of(life);
    let outside = Outside {
        clock: Arc::new(SystemClock::over(move || now())),
        clients: Clients::new().carried_by(Arc::new(SimCarrier(Arc::clone(life)))),
        keys: Arc::clone(keys),
        http01: solver.clone(),
        dns01: solver.clone(),
        tls_alpn01: solver,
        http01_probe: probe.clone(),
        dns01_probe: probe.clone(),
        tls_alpn01_probe: probe,
    };
    let rules = Rules {
        memory: memory.clone(),
        // RSA keys take their time.
        account_keys: account_keys(false),
        limits: Limits { max_in_flight: setting.cap },
        ..Rules::without_flags(setting.cluster)
    };
    Engine::start_in(outside, store, rules, CancellationToken::new())
}
