//! Hints for a challenge that a person answers, or that no controller works on.

use crate::hints::invocation::{self, quoted};
use crate::model::memory::{Holder, Memory};
use crate::model::solver::Webhook;
use crate::model::{Challenge, ChallengeType, State, own_solver};
use crate::solvers::dns01::manual::is_a_persons;

/// Hint with the command that goes on with a challenge, with the present solver, when no controller is running.
pub(crate) fn nobody_drives(challenge: &Challenge, is_in_cluster: bool) -> String {
    let untold = "no controller is running, so the CA is not told when the answer is visible";
    let run = invocation::current().like_run();
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    if let Some(resume) = by_hand(challenge, &challenge.metadata.namespace) {
        return format!("{untold}: {resume} goes on");
    }
    if challenge.spec.kind.is_by_record() || is_in_cluster {
        return format!("{untold}: {run}, or order -f …, goes on");
    }
    match memory.webroot {
        Some(folder) => {
            let webroot = format!("--http01-webroot={}", quoted(&folder));
            format!("{untold}: {run} {webroot}, or order -f … {webroot}, goes on")
        }
        None => format!(
            "no controller is running, so this machine answers nothing now: {run}, or order -f …, serves the answer again"
        ),
    }
}

/// Command that goes on with a challenge whose record a person makes; `None` if a program answers the challenge.
pub(crate) fn by_hand(challenge: &Challenge, namespace: &str) -> Option<String> {
    let is_manual = |webhook: &Webhook| {
        webhook.group_name == own_solver::GROUP && webhook.solver_name == own_solver::MANUAL
    };
    let solver = challenge.spec.solver.dns01.as_deref();
    let is_theirs = is_a_persons(challenge)
        || solver.and_then(|solver| solver.webhook.as_ref()).is_some_and(is_manual);
    let flag = match challenge.spec.kind {
        // This record needs no flag.
        ChallengeType::DnsPersist01 if solver.is_none() => "",
        _ if is_theirs => " --dns01-manual",
        _ => return None,
    };
    let order = &challenge.metadata.controller()?.name;
    let command = format!("order resume {order}{flag}");
    Some(invocation::current().like_in(namespace, &command))
}

/// Record that only a person can make; `None` if a solver can make the record.
pub(crate) fn made_by_a_person(challenge: &Challenge) -> Option<String> {
    let spec = &challenge.spec;
    let is_theirs = spec.kind == ChallengeType::DnsPersist01 && spec.solver.dns01.is_none();
    is_theirs.then(|| record(challenge))
}

/// TXT record in text form: name, type and value.
pub(crate) fn record(challenge: &Challenge) -> String {
    format!("{} TXT \"{}\"", challenge.spec.record_name(), challenge.spec.key)
}

/// Reason why the CA does not need the answer any more; `None` if the challenge is open.
pub(crate) fn over(challenge: &Challenge) -> Option<String> {
    if challenge.metadata.is_deleted() {
        return Some("the challenge is being deleted".to_owned());
    }
    let state = challenge.status.state.filter(|state: &State| state.is_final())?;
    Some(format!("the challenge is {state}, so the CA does not ask for the answer any more"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Checks the hint for a local challenge of this type without a controller, with this solver and memory.
    fn check(kind: &str, solver: &Value, memory: &Memory, expected: &str) {
        let owner = json!({"apiVersion": "v1", "kind": "Order", "name": "web-1-5", "uid": "o", "controller": true});
        let mut challenge: Challenge = serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "web", "ownerReferences": [owner]},
            "spec": {
                "url": "", "authorizationURL": "", "dnsName": "www.example.com", "type": kind, "token": "",
                "key": "", "solver": solver, "issuerRef": {"name": "acme"},
            },
        }))
        .unwrap();
        memory.write(Holder::Challenge, &mut challenge.metadata.annotations);
        let hint = nobody_drives(&challenge, false);
        assert!(hint.contains(expected), "{hint}");
    }

    #[test]
    fn what_nobody_drives_goes_on_by_whatever_answered_it() {
        let (nothing, http) = (Memory::default(), json!({"http01": {}}));
        check("HTTP-01", &http, &nothing, "this machine answers nothing now: kubectl-acme run, or");
        let webroot = Some("/srv/my site".to_owned());
        let in_webroot = Memory { webroot, ..Memory::default() };
        let run = "the CA is not told when the answer is visible: kubectl-acme run --http01-webroot='/srv/my site', or order";
        check("HTTP-01", &http, &in_webroot, run);
        let provider = json!({"dns01": {"rfc2136": {"nameserver": "192.0.2.1"}}});
        check("DNS-01", &provider, &nothing, ": kubectl-acme run, or order -f …, goes on");
        let by_hand = Memory { by_hand: true, ..Memory::default() };
        let resume = ": kubectl-acme order resume web-1-5 --dns01-manual -n web goes on";
        check("DNS-01", &provider, &by_hand, resume);
        let manual =
            json!({"dns01": {"webhook": {"groupName": "kubectl-acme", "solverName": "manual"}}});
        check("DNS-01", &manual, &nothing, resume);
    }
}
