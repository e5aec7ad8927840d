//! Probes check an answer before the CA does, and report observations; `reconcile::http01_visible`,
//! `reconcile::dns01_visible` and `reconcile::shown` judge them.

pub mod cluster;
pub mod dns;
pub mod http;
pub mod tls_alpn;

use std::fmt;

use async_trait::async_trait;

use crate::model::observation::Observation;
use crate::model::{Answer, Challenge};

/// Checks whether an answer is where the CA will look for it.
#[async_trait]
pub trait Probe: fmt::Debug + Send + Sync {
    /// Checks once, from every vantage of the probe; never fails, since a failure is an observation too.
    async fn probe(&self, challenge: &Challenge, answer: &Answer) -> Vec<Observation>;
}
