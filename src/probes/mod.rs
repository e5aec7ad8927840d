//! Probes look before the CA does, and report what was seen; `reconcile::visible`,
//! `reconcile::published` and `reconcile::shown` judge it.

pub mod cluster;
pub mod dns;
pub mod http;
pub mod tls_alpn;

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
