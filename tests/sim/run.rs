//! One run of a seed, and how one that failed is made shorter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use kubectl_acme::ca::without_socket::CalledCa;
use kubectl_acme::ca::{Config, OptionalEndpoint, Profile};
use kubectl_acme::surroundings::Environment;
use tokio::time::{sleep, timeout};

use super::answers::CaLook;
use super::ca::BASE;
use super::plan::{Fault, Setting};
use super::rng::{Lots, Rng};
use super::world::World;
use super::{draw, invariants, lease, people, process};

/// So long everything may take after the last fault, in hours: a certificate that failed is tried again after one, two, four …
const HOURS: u64 = 30;

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) violation: Option<String>,
    pub(crate) log: Vec<String>,
    pub(crate) requests: (u64, u64),
}

/// Runs a seed.
pub(crate) fn run(seed: u64) -> Outcome {
    let (setting, faults) = draw::of(seed);
    run_with(&setting, &faults)
}

/// Runs a setting with those faults.
pub(crate) fn run_with(setting: &Setting, faults: &[Fault]) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(within(setting.clone(), faults.to_vec()))
    }));
    ran.unwrap_or_else(|_| Outcome {
        violation: Some("the simulation panicked".to_owned()),
        log: Vec::new(),
        requests: (0, 0),
    })
}

async fn within(setting: Setting, faults: Vec<Fault>) -> Outcome {
    let world = World::new(setting, faults);
    let setting = &world.setting;
    let drawn = Lots::of(setting.seed, "issuer");
    let of_requests = drawn.clone();
    let of_ca = Arc::downgrade(&world);
    let surroundings = Environment {
        now: Arc::new(move || of_ca.upgrade().unwrap().now()),
        draw: Arc::new(move |octets| {
            drawn.with(|lots| lots.fill(octets));
            Ok(())
        }),
    };
    let config = Config {
        reuse_orders: setting.reuse_orders,
        reuse_authorizations: setting.reuse_authorizations,
        refuse_nonces_percent: setting.refuse_nonces,
        retry_after: setting.ca_retry_after,
        finalize_delay: setting.finalize_delay.map(Duration::from_millis),
        profiles: vec![profile(setting.minutes_good)],
        // Its windows would lie before the certificate, which is another matter.
        without: setting
            .minutes_good
            .filter(|minutes| *minutes < 60)
            .map(|_| OptionalEndpoint::RenewalInfo)
            .into_iter()
            .collect(),
        ..Config::default()
    };
    let look = Arc::new(CaLook(Arc::downgrade(&world)));
    world.ca.set(CalledCa::new((config, BASE), &[], look, surroundings).unwrap()).unwrap();
    // Who signs takes nothing from what is drawn when requests are answered.
    of_requests.with(|lots| *lots = Rng::of(setting.seed, "ca"));
    people::begin(&world).await;
    people::act(&world);
    lease::usurpers(&world);
    for place in 0..world.setting.processes {
        tokio::spawn(process::inhabit(Arc::clone(&world), place));
    }
    // Where certificates are renewed all the time, moments in which nobody works are short.
    let longest = if setting.minutes_good.is_some() { 60 } else { 900 };
    let settled = async {
        let mut pause = 1;
        loop {
            sleep(Duration::from_secs(pause)).await;
            if world.is_calm() {
                pause = (pause + 5).min(longest);
            }
            // Nothing is expected of anybody any more.
            let is_over = world.is_calm() || world.faults.is_empty();
            if is_over && world.is_done() {
                return;
            }
        }
    };
    let limit = Duration::from_secs(world.setting.calm + HOURS * 3600);
    tokio::select! {
        biased;
        () = world.broken.notified() => {}
        _ = timeout(limit, settled) => world.at_the_end(),
    }
    let mut log = world.log();
    if world.violation().is_some() {
        log.extend(invariants::remains(&world));
    }
    Outcome { violation: world.violation(), log, requests: world.requests() }
}

/// The one profile of the CA.
fn profile(minutes_good: Option<u64>) -> Profile {
    // Certificates begin an hour before they are issued.
    let validity = minutes_good
        .map_or(Duration::from_hours(90 * 24), |minutes| Duration::from_mins(60 + minutes));
    Profile::new("classic", "what everybody gets", validity)
}

/// Leaves out as many faults as the failure stands: first halves, then one by one.
pub(crate) fn shorten(setting: &Setting, faults: &[Fault]) -> (Vec<Fault>, Outcome) {
    let mut kept = faults.to_vec();
    let mut worst = run_with(setting, &kept);
    let mut size = kept.len().div_ceil(2).max(1);
    loop {
        let mut start = 0;
        while start < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(start..(start + size).min(kept.len()));
            let outcome = run_with(setting, &fewer);
            if outcome.violation.is_some() {
                (kept, worst) = (fewer, outcome);
            } else {
                start += size;
            }
        }
        if size == 1 {
            return (kept, worst);
        }
        size = size.div_ceil(2);
    }
}
