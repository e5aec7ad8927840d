//! The two layers around the CA's own handlers; without a requested behaviour there are no layers.

use std::future::pending;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use super::Behaviours;
use super::rule::{Active, Effect, ObservedRequest};
use crate::ca::context::Ca;
use crate::ca::refusal::Refusal;
use crate::ca::reply::REPLAY_NONCE;

/// Most bytes of a request's body.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// CA and its behaviours.
#[derive(Clone)]
pub(in crate::ca) struct BehaviourLayer {
    pub(in crate::ca) ca: Arc<Ca>,
    pub(in crate::ca) behaviours: Arc<Behaviours>,
}

/// Adds the layer before the handlers, where behaviours change the CA's memory or answer in place of the CA.
pub(in crate::ca) fn inside(routes: Router<Arc<Ca>>, stage: &BehaviourLayer) -> Router<Arc<Ca>> {
    if stage.behaviours.active.is_empty() {
        return routes;
    }
    routes.layer(from_fn_with_state(stage.clone(), before))
}

/// Adds the outer layer, where behaviours change answers that already have the headers of all answers.
pub(in crate::ca) fn outside(routes: Router<Arc<Ca>>, stage: &BehaviourLayer) -> Router<Arc<Ca>> {
    if stage.behaviours.active.is_empty() {
        return routes;
    }
    routes.layer(from_fn_with_state(stage.clone(), around))
}

async fn before(
    State(BehaviourLayer { ca, behaviours }): State<BehaviourLayer>,
    Extension(asked): Extension<Arc<ObservedRequest>>,
    request: Request,
    next: Next,
) -> Response {
    for active in &behaviours.active {
        match active.rule.deed {
            Effect::Arranges(arrange) => {
                if let Some(scene) = active.meets(&ca, &asked) {
                    arrange(&scene);
                }
            }
            Effect::Answers(answer) => {
                if let Some(scene) = active.meets(&ca, &asked) {
                    return answer(&scene);
                }
            }
            Effect::IsSilent => {
                if active.meets(&ca, &asked).is_some() {
                    pending::<()>().await;
                }
            }
            Effect::Replaces(_)
            | Effect::Heads(_)
            | Effect::Edits(_)
            | Effect::Chains(_)
            | Effect::Sends(_)
            | Effect::Speaks(_) => {}
        }
    }
    next.run(request).await
}

async fn around(
    State(BehaviourLayer { ca, behaviours }): State<BehaviourLayer>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let body = match to_bytes(body, MAX_REQUEST_BYTES).await {
        Ok(body) => body,
        Err(error) => return Refusal::malformed(error.to_string()).into_response(),
    };
    let _under_way = behaviours.begin(head.uri.path());
    let asked = Arc::new(behaviours.note(&ca.base, &head, body.clone()));
    head.extensions.insert(Arc::clone(&asked));
    let mut response = next.run(Request::from_parts(head, Body::from(body))).await;
    for active in &behaviours.active {
        response = change(active, &ca, &asked, response).await;
    }
    response
}

/// Applies a rule to an answer.
async fn change(
    active: &Active,
    ca: &Arc<Ca>,
    asked: &ObservedRequest,
    response: Response,
) -> Response {
    let good = response.status().is_success();
    let is_due = match active.rule.deed {
        Effect::Replaces(_) | Effect::Heads(_) | Effect::Sends(_) => true,
        Effect::Edits(_) | Effect::Chains(_) => good,
        Effect::Arranges(_) | Effect::Answers(_) | Effect::IsSilent | Effect::Speaks(_) => false,
    };
    let Some(scene) = is_due.then(|| active.meets(ca, asked)).flatten() else {
        return response;
    };
    let (mut head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    head.headers.remove(CONTENT_LENGTH);
    match active.rule.deed {
        Effect::Replaces(replace) => {
            let mut replaced = replace(&scene);
            if let Some(nonce) = head.headers.remove(&REPLAY_NONCE) {
                replaced.headers_mut().insert(REPLAY_NONCE, nonce);
            }
            replaced
        }
        Effect::Heads(change) => {
            change(&scene, &mut head);
            Response::from_parts(head, Body::from(body))
        }
        Effect::Edits(edit) => match serde_json::from_slice(&body) {
            Ok(mut object) => {
                edit(&scene, &mut object);
                Response::from_parts(head, Body::from(object.to_string()))
            }
            Err(_) => Response::from_parts(head, Body::from(body)),
        },
        Effect::Chains(write) => {
            let chain = pem::parse_many(&body).unwrap_or_default();
            let chain: Vec<_> = chain.into_iter().map(pem::Pem::into_contents).collect();
            Response::from_parts(head, Body::from(write(&scene, &chain)))
        }
        Effect::Sends(sending) => Response::from_parts(head, sending.body(body)),
        Effect::Arranges(_) | Effect::Answers(_) | Effect::IsSilent | Effect::Speaks(_) => {
            Response::from_parts(head, Body::from(body))
        }
    }
}
