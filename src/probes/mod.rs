//! Probes look before the CA does, and report what was seen; `reconcile::visible` judges it.

pub mod http;

use std::fmt;

use async_trait::async_trait;

use crate::model::Answer;
use crate::model::observation::Observation;

/// Looks whether an answer is where the CA will look.
#[async_trait]
pub trait Probe: fmt::Debug + Send + Sync {
    /// Looks once, from every vantage it has; never fails, since a failure is an observation too.
    async fn look(&self, answer: &Answer) -> Vec<Observation>;
}
