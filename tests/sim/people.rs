//! What people do meanwhile: they apply manifests at the beginning, and change their minds when the plan says so.

use std::sync::Arc;
use std::time::Duration;

use kubectl_acme::model::{Key, Kind, ObjectName, Order, Record, State};
use kubectl_acme::store::{Part, Store as _};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::ca::BASE;
use super::events::Event;
use super::plan::{Deed, FIGHT, Fault, Moment, Wish};
use super::world::World;

/// Where everything is.
pub(crate) const NAMESPACE: &str = "web";

/// The manifests.
pub(crate) async fn begin(world: &World) {
    let solver = if world.setting.by_record {
        json!({"dns01": {"webhook": {"groupName": "acme.example", "solverName": "sim"}}})
    } else {
        json!({"http01": {"ingress": {}}})
    };
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
        "metadata": {"name": "ca", "namespace": NAMESPACE},
        "spec": {"acme": {
            "server": format!("{BASE}/directory"),
            "privateKeySecretRef": {"name": "account"},
            "solvers": [solver],
        }},
    });
    apply(world, issuer).await;
    for wish in &world.setting.wishes {
        apply(world, certificate(world, wish, false)).await;
    }
}

async fn apply(world: &World, object: Value) {
    world.store.apply(Record::new(object).unwrap()).await.unwrap();
}

/// A Certificate; changed, it has one more name.
fn certificate(world: &World, wish: &Wish, is_changed: bool) -> Value {
    let rotation = if world.setting.keeps_key { "Never" } else { "Always" };
    let names = if is_changed { wish.changed_names() } else { wish.names.clone() };
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"name": wish.name, "namespace": NAMESPACE},
        "spec": {
            "secretName": format!("{}-tls", wish.name),
            "dnsNames": names,
            "issuerRef": {"name": "ca"},
            "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": rotation},
        },
    })
}

/// Whoever does what the plan says.
pub(crate) fn act(world: &Arc<World>) {
    for fault in &world.faults {
        let Fault::Person { at, deed, whose } = *fault else { continue };
        let world = Arc::clone(world);
        tokio::spawn(async move {
            let wish = world.setting.wishes[whose].clone();
            match at {
                Moment::Second(second) => sleep(Duration::from_secs(second)).await,
                Moment::Step(step) => world.reaches(step).await,
                Moment::AfterFailure(pause) => {
                    failure(&world, &wish).await;
                    sleep(Duration::from_millis(pause)).await;
                }
            }
            if deed == Deed::FightsOverSecret {
                timeout(Duration::from_secs(FIGHT), fights(&world, &wish)).await.ok();
                return;
            }
            world.tell(Event::Person { deed, certificate: wish.name.clone() });
            does(&world, deed, &wish).await;
            world.written.notify_waiters();
        });
    }
}

/// Deletes a Secret each time that it is there.
async fn fights(world: &World, wish: &Wish) {
    let secret = secret(wish);
    loop {
        let written = world.written.notified();
        if world.peek(&secret).is_some() {
            let (deed, certificate) = (Deed::FightsOverSecret, wish.name.clone());
            world.tell(Event::Person { deed, certificate });
            world.store.delete(&secret).await.ok();
            world.written.notify_waiters();
        }
        written.await;
    }
}

fn secret(wish: &Wish) -> Key {
    Key::new(Kind::Secret, ObjectName::new(NAMESPACE, format!("{}-tls", wish.name)))
}

/// Waits until an order has failed.
async fn failure(world: &World, wish: &Wish) {
    loop {
        let written = world.written.notified();
        let has_failed = |order: &Order| order.status.state.is_some_and(State::is_failure);
        let orders = world.typed::<Order>(Kind::Order);
        let mut own = orders.iter().filter(|order| order.metadata.name.starts_with(&wish.name));
        if own.any(has_failed) {
            return;
        }
        written.await;
    }
}

async fn does(world: &World, deed: Deed, wish: &Wish) {
    let key = |kind, name: &str| Key::new(kind, ObjectName::new(NAMESPACE, name));
    let first = |kind: Kind| {
        let below = world.peek_all(kind).into_iter();
        below.map(|record| record.key).find(|key| key.name.name.starts_with(&wish.name))
    };
    let gone = match deed {
        Deed::DeletesSecret => Some(secret(wish)),
        Deed::DeletesCertificate => Some(key(Kind::Certificate, &wish.name)),
        Deed::DeletesRequest => first(Kind::CertificateRequest),
        Deed::DeletesOrder => first(Kind::Order),
        Deed::DeletesChallenge => first(Kind::Challenge),
        Deed::ChangesNames | Deed::Renews | Deed::FightsOverSecret => None,
    };
    if let Some(gone) = gone {
        world.store.delete(&gone).await.unwrap();
        world.written.notify_waiters();
    }
    match deed {
        Deed::DeletesCertificate => {
            sleep(Duration::from_secs(world.lots.with(|lots| lots.pick(&[0, 1, 60])))).await;
            apply(world, certificate(world, wish, false)).await;
        }
        Deed::ChangesNames => apply(world, certificate(world, wish, true)).await,
        Deed::Renews => {
            let Some(mut record) = world.peek(&key(Kind::Certificate, &wish.name)) else { return };
            let conditions = &mut record.object["status"]["conditions"];
            let mut all = conditions.as_array().cloned().unwrap_or_default();
            all.retain(|condition| condition["type"] != "Issuing");
            all.push(json!({
                "type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
                "message": "Certificate re-issuance manually triggered",
                "lastTransitionTime": world.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            }));
            *conditions = all.into();
            world.store.replace(record, Part::Status).await.ok();
        }
        _ => {}
    }
}
