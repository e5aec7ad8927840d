//! Goals of `wait`, and the end if a goal can no longer be reached: judged as `order` judges the issuances that it follows.

use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::context::failure::Failure;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::node_state::NodeState;
use crate::diagnosis::verdict::{Verdict, awaited, judge_issuer, verdict};
use crate::diagnosis::words::facts;
use crate::model::common::condition;
use crate::model::{
    CertificateRequest, Challenge, ConditionStatus, Issuer, Key, Kind, Order, Problem, Record,
    State,
};
use crate::objects::chain;
use crate::print::jsonpath::Template;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::resources::typed;

/// Goal of a wait.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitGoal {
    /// A condition has this status: `True` unless another status is named.
    Condition {
        /// Type of the condition, in any case.
        name: String,
        /// Status of the condition, in any case.
        status: String,
    },
    /// The certificate is issued, the order or challenge is valid, or the issuer has an account.
    Issued,
    /// The object is gone.
    Deleted,
    /// The object is there.
    Created,
    /// A field has the named value, or any value if none is named.
    Field {
        /// Path of the field.
        path: Template,
        /// Path as it was typed, without braces.
        text: String,
        /// Wanted value; `None` for any value.
        value: Option<String>,
    },
}

/// Error of a text that names no goal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitGoalError {
    /// No form of a goal fits the text.
    #[error(
        "cannot wait for \"{0}\": condition=NAME[=STATUS], issued, create, delete or jsonpath='{{.PATH}}'[=VALUE]"
    )]
    Unknown(String),
    /// The path cannot be parsed.
    #[error("cannot read the path of \"{0}\": {1}")]
    Path(String, String),
}

impl FromStr for WaitGoal {
    type Err = WaitGoalError;

    fn from_str(text: &str) -> Result<Self, WaitGoalError> {
        let unknown = || WaitGoalError::Unknown(text.to_owned());
        match text.to_ascii_lowercase().as_str() {
            "issued" => return Ok(Self::Issued),
            "delete" | "deleted" => return Ok(Self::Deleted),
            "create" | "created" => return Ok(Self::Created),
            _ => {}
        }
        let (form, rest) = text.split_once('=').ok_or_else(unknown)?;
        match form.to_ascii_lowercase().as_str() {
            "condition" => {
                let (name, status) = rest.split_once('=').unwrap_or((rest, "True"));
                if name.is_empty() || status.is_empty() {
                    return Err(unknown());
                }
                Ok(Self::Condition { name: name.to_owned(), status: status.to_owned() })
            }
            "jsonpath" => {
                let (path, value) = match rest.rsplit_once("}=") {
                    Some((path, value)) => (format!("{path}}}"), Some(value.to_owned())),
                    None => (rest.to_owned(), None),
                };
                let bare = path.trim_start_matches('{').trim_end_matches('}').to_owned();
                if bare.is_empty() || value.as_deref() == Some("") {
                    return Err(unknown());
                }
                let read = Template::parse(&format!("{{{bare}}}"));
                let path =
                    read.map_err(|why| WaitGoalError::Path(text.to_owned(), why.to_string()))?;
                Ok(Self::Field { path, text: bare, value })
            }
            _ => Err(unknown()),
        }
    }
}

/// State of an object with respect to a goal.
#[derive(Debug)]
pub enum WaitState {
    /// The goal is reached; has the object, unless the object is gone.
    Met(Option<Box<Record>>),
    /// The goal can no longer be reached.
    Unreachable(Box<Failure>),
    /// The goal is not reached yet; has the reason why the object waits, if known.
    Waiting(Option<String>),
}

impl WaitGoal {
    /// Checks that objects of a kind can reach the goal.
    ///
    /// # Errors
    /// Fails when objects of the kind can never reach the goal.
    pub fn check(&self, kind: Kind) -> Result<(), Failure> {
        let has_no_conditions = matches!(kind, Kind::Order | Kind::Challenge);
        if matches!(self, Self::Condition { .. }) && has_no_conditions {
            let what = format!("{kind}s have no conditions");
            return Err(Failure::usage(what)
                .hint("wait for the end: --for=issued")
                .hint("or for a state: --for=jsonpath='{.status.state}'=valid"));
        }
        Ok(())
    }

    /// Goal in words, to follow the name of the object.
    pub fn words(&self) -> String {
        match self {
            Self::Condition { name, status } if status.eq_ignore_ascii_case("true") => {
                format!("to have condition {name}")
            }
            Self::Condition { name, status } => format!("to have condition {name}={status}"),
            Self::Issued => "to be issued".to_owned(),
            Self::Deleted => "to be deleted".to_owned(),
            Self::Created => "to be created".to_owned(),
            Self::Field { text, value: Some(value), .. } => format!("to have {text}={value}"),
            Self::Field { text, value: None, .. } => format!("to have {text}"),
        }
    }

    /// Judges an object. Before a failure counts, the object is read anew, in case another process has just written.
    ///
    /// # Errors
    /// Fails when the store fails.
    pub async fn judge(
        &self,
        store: &Arc<dyn Store>,
        key: &Key,
        deadline: Timestamp,
    ) -> Result<WaitState, StoreError> {
        let Some(record) = store.get(key).await? else {
            return Ok(match self {
                Self::Deleted => WaitState::Met(None),
                Self::Created => WaitState::Waiting(None),
                Self::Condition { .. } | Self::Issued | Self::Field { .. } => {
                    let gone = Failure::new(FailureKind::Unexpected, format!("{key} is gone"));
                    WaitState::Unreachable(Box::new(gone.about(key)))
                }
            });
        };
        if self.is_met(&record) {
            return Ok(WaitState::Met(Some(Box::new(record))));
        }
        match self {
            Self::Deleted => {
                let held = record.metadata().finalizers;
                let held = (!held.is_empty()).then(|| format!("finalizer {}", held.join(", ")));
                Ok(WaitState::Waiting(held))
            }
            _ if self.needs_success(key.kind) => of_issuance(store, &record, deadline).await,
            _ => Ok(WaitState::Waiting(None)),
        }
    }

    /// Returns whether only a successful end of the object reaches the goal.
    fn needs_success(&self, kind: Kind) -> bool {
        match self {
            Self::Issued => true,
            Self::Condition { name, status } => {
                name.eq_ignore_ascii_case("ready") && status.eq_ignore_ascii_case("true")
            }
            // A final state never changes.
            Self::Field { text, value, .. } => {
                let is_state = text.trim_start_matches('$') == ".status.state";
                matches!(kind, Kind::Order | Kind::Challenge) && is_state && value.is_some()
            }
            Self::Deleted | Self::Created => false,
        }
    }

    fn is_met(&self, record: &Record) -> bool {
        match self {
            Self::Deleted => false,
            Self::Created => true,
            Self::Condition { name, status } => has_condition(&record.object, name, status),
            Self::Field { path, value, .. } => {
                let found = path.render(&record.object);
                value.as_ref().map_or(!found.is_empty(), |value| *value == found)
            }
            Self::Issued => {
                let is_ready = has_condition(&record.object, "Ready", "True");
                match record.key.kind {
                    Kind::Order | Kind::Challenge => record.text("/status/state") == "valid",
                    Kind::Certificate => is_ready && !is_issuing(&record.object),
                    _ => is_ready,
                }
            }
        }
    }
}

/// Returns whether a condition has this status, and was observed for the present generation of the object.
fn has_condition(object: &Value, name: &str, status: &str) -> bool {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let is = |it: &Value, field: &str, wanted: &str| {
        it[field].as_str().is_some_and(|found| found.eq_ignore_ascii_case(wanted))
    };
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().any(|it| {
        let about = it["observedGeneration"].as_i64().zip(generation);
        is(it, "type", name) && is(it, "status", status) && about.is_none_or(|(it, now)| it >= now)
    })
}

fn is_issuing(object: &Value) -> bool {
    has_condition(object, "Issuing", "True")
}

/// Judges whether an object can still end successfully, and why the object waits.
async fn of_issuance(
    store: &Arc<dyn Store>,
    record: &Record,
    deadline: Timestamp,
) -> Result<WaitState, StoreError> {
    let (key, record) = (&record.key, record.clone());
    Ok(match key.kind {
        Kind::Certificate => return of_certificate(store, key, deadline).await,
        Kind::CertificateRequest => {
            let request: CertificateRequest = typed(record)?;
            let conditions = &request.status.conditions;
            let NodeState { state, waits_for, .. } = NodeState::of_request(&request, None);
            let is_denied = condition(conditions, "Denied")
                .is_some_and(|denied| denied.status == ConditionStatus::True);
            if is_denied || request.status.failure_time.is_some() {
                return Ok(unreachable(key, &state, &waits_for, (FailureKind::Unexpected, None)));
            }
            WaitState::Waiting(read_awaited(store, key).await?)
        }
        Kind::Order => {
            let order: Order = typed(record)?;
            match order.status.state.filter(|state| state.is_failure()) {
                Some(state) => {
                    let problem = facts::problem(&order);
                    unreachable(
                        key,
                        state.as_str(),
                        &order.status.reason,
                        (of_end(state, problem.as_ref()), problem),
                    )
                }
                None => WaitState::Waiting(read_awaited(store, key).await?),
            }
        }
        Kind::Challenge => {
            let challenge: Challenge = typed(record)?;
            match challenge.status.state.filter(|state| state.is_failure()) {
                Some(state) => unreachable(
                    key,
                    state.as_str(),
                    &challenge.status.reason,
                    (of_end(state, None), None),
                ),
                None => WaitState::Waiting(Some(NodeState::of_challenge(&challenge).waits_for)),
            }
        }
        Kind::Issuer | Kind::ClusterIssuer => match judge_issuer(key, &typed::<Issuer>(record)?) {
            Some(Verdict::Failed(failed)) => WaitState::Unreachable(Box::new(failed.into())),
            Some(Verdict::Waiting(Some(blocker))) => WaitState::Waiting(Some(blocker.what)),
            Some(Verdict::Waiting(None) | Verdict::Issued) | None => WaitState::Waiting(None),
        },
        Kind::Event | Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => {
            WaitState::Waiting(None)
        }
    })
}

async fn read_awaited(store: &Arc<dyn Store>, key: &Key) -> Result<Option<String>, StoreError> {
    crate::objects::awaited::awaited(store, key).await
}

/// Kind of failure of a failed order or challenge.
fn of_end(state: State, problem: Option<&Problem>) -> FailureKind {
    match (state, problem) {
        (State::Errored, Some(problem)) => FailureKind::of_problem(problem),
        (State::Errored, None) => FailureKind::Unexpected,
        _ => FailureKind::Validation,
    }
}

fn unreachable(
    key: &Key,
    state: &str,
    why: &str,
    (kind, problem): (FailureKind, Option<Problem>),
) -> WaitState {
    let gap = if why.is_empty() { "" } else { ": " };
    let mut failure = Failure::new(kind, format!("{key} is {state}{gap}{why}")).about(key);
    failure.facts.problem = problem.map(Box::new);
    WaitState::Unreachable(Box::new(failure))
}

async fn of_certificate(
    store: &Arc<dyn Store>,
    key: &Key,
    deadline: Timestamp,
) -> Result<WaitState, StoreError> {
    let Some(chain) = chain::read(store, &key.name).await? else {
        return Ok(WaitState::Waiting(None));
    };
    let metadata = &chain.certificate.metadata;
    let issuing = condition(&chain.certificate.status.conditions, "Issuing");
    // The result of an earlier generation says nothing about the present one.
    let is_outdated =
        issuing.is_some_and(|issuing| issuing.observed_generation < metadata.generation);
    let judged = |chain: &_| verdict(chain, &Obstacles::new(), Some(LOWEST_REVISION));
    let first = judged(&chain);
    let told = match first {
        // Several watches have no common order.
        Verdict::Failed(_) => match chain::read_anew(store, key).await? {
            Some(chain) => judged(&chain),
            None => return Ok(WaitState::Waiting(None)),
        },
        told => told,
    };
    Ok(match told {
        Verdict::Failed(failed) if !is_outdated => {
            WaitState::Unreachable(Box::new(Failure::from(failed).about(key)))
        }
        Verdict::Waiting(Some(blocker)) => {
            let too_late = blocker.until.filter(|until| blocker.named_by_ca && *until > deadline);
            match too_late {
                Some(until) => {
                    let failure = Failure::new(blocker.kind, blocker.what.clone());
                    let failure = failure.hint(format!("wait longer, or again after {until:.0}"));
                    WaitState::Unreachable(Box::new(failure.held_up_by(&blocker).about(key)))
                }
                None => WaitState::Waiting(Some(blocker.what)),
            }
        }
        Verdict::Issued | Verdict::Failed(_) | Verdict::Waiting(None) => {
            WaitState::Waiting(awaited::of_chain(&chain))
        }
    })
}

/// Revision below that of every Certificate, so that every result counts.
const LOWEST_REVISION: i64 = -1;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_kubectl_waits_for_is_read_and_more() {
        let read = |text: &str| text.parse::<WaitGoal>().map(|goal| goal.words());
        for (text, expected) in [
            ("condition=Ready", "to have condition Ready"),
            ("condition=ready=True", "to have condition ready"),
            ("condition=Issuing=false", "to have condition Issuing=false"),
            ("issued", "to be issued"),
            ("delete", "to be deleted"),
            ("deleted", "to be deleted"),
            ("create", "to be created"),
            ("jsonpath={.status.state}=valid", "to have .status.state=valid"),
            ("jsonpath={.status.revision}", "to have .status.revision"),
            ("jsonpath=.status.revision", "to have .status.revision"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        for text in
            ["", "ready", "condition=", "condition=Ready=", "jsonpath=", "jsonpath={.a}=", "x=y"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_condition_counts_for_the_object_as_it_is_now() {
        let object = |observed: i64| {
            json!({
                "metadata": {"generation": 2},
                "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": observed}]},
            })
        };
        assert!(has_condition(&object(2), "ready", "true"));
        assert!(!has_condition(&object(1), "ready", "true"));
        assert!(!has_condition(&object(2), "ready", "false"));
    }
}
