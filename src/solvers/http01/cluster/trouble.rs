//! Obstacles to making and removing solver objects.
//!
//! A quota is waited for, because it may pass by itself; a missing permission, a class that is named twice and a
//! missing Ingress wait for a person.

use crate::model::Challenge;
use crate::solvers::SolveError;
use crate::solvers::remedy::Remedy;
use crate::store::error::StoreError;

/// Reason why objects could not be made or removed.
pub(super) enum Trouble {
    /// The cluster refused, or did not answer.
    Store(StoreError),
    /// The Ingress that is to be edited is not there.
    NoIngress(String),
    /// The solver's settings are invalid.
    Setup(String),
    /// Other clients write all the time.
    Busy(String),
}

impl Trouble {
    /// Builds the error, with the failed action and its object.
    pub(super) fn with(self, deed: &str, challenge: &Challenge) -> SolveError {
        let what = format!("{deed} of challenge {}", challenge.name());
        match self {
            Self::Store(error) => SolveError::new(what, error.to_string(), error.needs_person())
                .advised(Remedy::Store(Box::new(error))),
            Self::NoIngress(name) => {
                let namespace = challenge.metadata.namespace.clone();
                SolveError::lasting(what, format!("ingress {name} not found"))
                    .advised(Remedy::Ingress { name, namespace })
            }
            Self::Setup(why) => SolveError::lasting(what, why),
            Self::Busy(why) => SolveError::passing(what, why),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Setup(why)
    }
}
