//! Temporary listeners that answer challenges on this machine during a diagnosis: between two commands no process
//! listens, and a probe could not show whether requests reach this machine.

use std::net::SocketAddr;

use super::investigator::Investigator;
use super::names::looked_for;
use crate::diagnosis::case::name::NameCase;
use crate::diagnosis::case::{Case, DriverCase};
use crate::issue::flags::drive::listener;
use crate::model::memory::{Holder, Memory};
use crate::model::{Answer, ChallengeType};
use crate::solvers::Solver as _;
use crate::solvers::http01::listener::Listener;
use crate::solvers::tls_alpn01::TlsAlpn01;

/// Listeners that answer until they are dropped.
pub(super) struct Answering {
    /// Listener of HTTP-01; `None` if no name needs it, or its port cannot be bound.
    pub(super) http01: Option<Listener>,
    /// Listener of TLS-ALPN-01; `None` if no name needs it.
    _tls_alpn01: Option<TlsAlpn01>,
}

impl Investigator {
    /// Answers on this machine if no other process does. If HTTP-01 cannot be answered, the case gets the reason.
    pub(super) async fn listen(&self, case: &mut Case) -> Answering {
        let is_local = self.store.as_ref().is_some_and(|store| !store.in_cluster());
        let is_free = is_local && case.driver == DriverCase::Nobody;
        let tls_alpn01 = if is_free { self.shake_hands(case).await } else { None };
        Answering { http01: self.answer_http(case, is_free).await, _tls_alpn01: tls_alpn01 }
    }

    async fn answer_http(&self, case: &mut Case, is_free: bool) -> Option<Listener> {
        let chosen = self.answers.http01()?;
        let is_needed = |name: &NameCase| match name.kind {
            Some(ChallengeType::Http01) => is_free && !is_file(name),
            // A flag together with a domain asks whether requests reach its address. An address from the environment
            // is meant for orders.
            None => name.is_bare() && !chosen.is_empty() && !self.answers.is_for_orders(),
            Some(_) => false,
        };
        if !case.names.iter().any(is_needed) {
            return None;
        }
        let remembered = remembered(case, ChallengeType::Http01);
        let places = if chosen.is_empty() { &remembered } else { chosen };
        match listener(places).await {
            Ok(listener) => {
                for (answer, _) in case.names.iter().filter_map(looked_for) {
                    listener.put(&answer);
                }
                Some(listener)
            }
            Err(failure) => {
                case.listener_fault = Some(failure.message);
                // Answers that would have to be given here cannot be seen now.
                for name in case.names.iter_mut().filter(|name| is_needed(name)) {
                    name.pending = None;
                }
                None
            }
        }
    }

    /// Presents the certificates of TLS-ALPN-01. If another program holds the port, the probe connects to that one.
    async fn shake_hands(&self, case: &Case) -> Option<TlsAlpn01> {
        let kind = ChallengeType::TlsAlpn01;
        let chosen = &self.answers.tls_alpn_listen;
        let places = if chosen.is_empty() { remembered(case, kind) } else { chosen.clone() };
        let solver = TlsAlpn01::new(places);
        let pending = case.names.iter().filter_map(|name| name.pending.as_ref());
        let mut is_needed = false;
        for challenge in pending.filter(|challenge| challenge.spec.kind == kind) {
            let Ok(answer) = Answer::of(challenge) else { continue };
            is_needed |= solver.present(challenge, &answer).await.is_ok();
        }
        is_needed.then_some(solver)
    }
}

/// Listen addresses that the open Challenges of a type have recorded, each address once.
fn remembered(case: &Case, kind: ChallengeType) -> Vec<SocketAddr> {
    let pending = case.names.iter().filter_map(|name| name.pending.as_ref());
    let pending = pending.filter(|challenge| challenge.spec.kind == kind);
    let mut all: Vec<SocketAddr> = pending
        .flat_map(|it| Memory::read(Holder::Challenge, &it.metadata.annotations).listens_at)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns whether the answer for a name was written as a file that another web server serves.
fn is_file(name: &NameCase) -> bool {
    let annotations = name.pending.as_ref().map(|challenge| &challenge.metadata.annotations);
    annotations.is_some_and(|all| Memory::read(Holder::Challenge, all).webroot.is_some())
}
