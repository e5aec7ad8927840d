//! Probes look before the CA does, and report what was seen; `reconcile::visible` and
//! `reconcile::published` judge it.

pub mod cluster;
pub mod dns;
pub mod http;

use std::fmt;

use async_trait::async_trait;

use crate::model::observation::Observation;
use crate::model::{Answer, Challenge};

/// Looks whether an answer is where the CA will look.
#[async_trait]
pub trait Probe: fmt::Debug + Send + Sync {
    /// Looks once, from every vantage it has; never fails, since a failure is an observation too.
    async fn look(&self, challenge: &Challenge, answer: &Answer) -> Vec<Observation>;
}
