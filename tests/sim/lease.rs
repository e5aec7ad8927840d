//! The part of an API server that keeps the Lease.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::StatusCode;
use http::header::DATE;
use jiff::Timestamp;
use kubectl_acme::store::cluster::lease::{LEASE_NAME, LEASE_NAMESPACE};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::events::Event;
use super::plan::{Fault, Side};
use super::world::{Life, World};

/// The Lease, and who is excused from it.
#[derive(Debug, Default)]
pub(crate) struct LeaseServer {
    lease: Mutex<Option<Value>>,
}

/// Whoever writes a name into the Lease that is nobody's.
pub(crate) const USURPER: &str = "usurper";

impl LeaseServer {
    /// Whose name stands in it.
    pub(crate) fn holder(&self) -> Option<String> {
        let lease = self.lease.lock();
        let holder = lease.as_ref()?["spec"]["holderIdentity"].as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    /// Writes another name into it.
    pub(crate) fn usurp(&self, now: Timestamp) {
        if let Some(lease) = self.lease.lock().as_mut() {
            lease["spec"]["holderIdentity"] = USURPER.into();
            lease["spec"]["leaseDurationSeconds"] = 15.into();
            written(lease, now);
        }
    }
}

/// The server as one process reaches it.
pub(crate) fn router(life: &Arc<Life>) -> Router {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases");
    Router::new()
        .route(&path, post(write))
        .route(&format!("{path}/{LEASE_NAME}"), get(read).put(write))
        .with_state(Arc::clone(life))
}

async fn read(State(life): State<Arc<Life>>) -> Response {
    reached(&life).await;
    let world = &life.world;
    let answer = match &*world.lease.lease.lock() {
        Some(lease) => (StatusCode::OK, lease.to_string()),
        None => refusal(StatusCode::NOT_FOUND),
    };
    answered(&life, answer).await
}

async fn write(State(life): State<Arc<Life>>, body: Bytes) -> Response {
    reached(&life).await;
    let world = &life.world;
    let mut given: Value = serde_json::from_slice(&body).unwrap();
    let answer = {
        let mut stored = world.lease.lease.lock();
        let revision = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        if stored.as_ref().map_or(Value::Null, revision) == revision(&given) {
            let next = stored.as_ref().map(revision);
            given["metadata"]["resourceVersion"] = next.unwrap_or_else(|| json!("0"));
            given["metadata"]["uid"] = "lease".into();
            written(&mut given, world.now());
            *stored = Some(given.clone());
            (StatusCode::OK, given.to_string())
        } else {
            refusal(StatusCode::CONFLICT)
        }
    };
    answered(&life, answer).await
}

/// Counts the revision up, and notes when it was written, as an API server does.
fn written(lease: &mut Value, now: Timestamp) {
    let revision =
        lease["metadata"]["resourceVersion"].as_str().and_then(|r| r.parse::<u64>().ok());
    lease["metadata"]["resourceVersion"] = (revision.unwrap_or(0) + 1).to_string().into();
    lease["metadata"]["managedFields"] = json!([{
        "manager": "cert-manager-leader-election", "operation": "Update",
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:holderIdentity": {}, "f:renewTime": {}}},
    }]);
}

async fn reached(life: &Arc<Life>) {
    life.step().await;
    let world = &life.world;
    world.latency().await;
    let seconds = world.elapsed() / 1000;
    let is_away = world.faults.iter().any(|fault| match fault {
        Fault::NoLease { place, at, seconds: long } => {
            *place == life.place && (*at..at + long).contains(&seconds)
        }
        _ => false,
    });
    if is_away || world.is_out(Side::ApiServer) {
        world.tell(Event::Note { what: format!("p{} does not reach the Lease", life.place) });
        std::future::pending::<()>().await;
    }
}

async fn answered(life: &Arc<Life>, (status, body): (StatusCode, String)) -> Response {
    life.step().await;
    let date = life.world.now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    (status, [(DATE, date)], body).into_response()
}

fn refusal(code: StatusCode) -> (StatusCode, String) {
    (code, json!({"code": code.as_u16(), "details": {"name": LEASE_NAME}}).to_string())
}

/// Somebody writes another name into the Lease when the plan says so.
pub(crate) fn usurpers(world: &Arc<World>) {
    for fault in &world.faults {
        if let Fault::Usurped { at } = *fault {
            let world = Arc::clone(world);
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_secs(at)).await;
                world.lease.usurp(world.now());
                world.tell(Event::Usurps);
            });
        }
    }
}
