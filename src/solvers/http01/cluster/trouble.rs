//! What stands in the way of making and removing solver objects.
//!
//! A quota is waited for, because it may pass by itself; a missing permission, a class that is named twice and a
//! missing Ingress wait for a person.

use crate::model::Challenge;
use crate::solvers::SolveError;
use crate::store::error::StoreError;

/// Why objects could not be made or removed.
pub(super) enum Trouble {
    /// The cluster refused, or did not answer.
    Store(StoreError),
    /// The Ingress that is to be edited is not there.
    NoIngress(String),
    /// What is asked for cannot be.
    Setup(String),
    /// Others write all the time.
    Busy(String),
}

impl Trouble {
    /// The same, with the deed and its object.
    pub(super) fn with(self, deed: &str, challenge: &Challenge) -> SolveError {
        let what = format!("{deed} of challenge {}", challenge.name());
        let (why, needs_person, hint) = match self {
            Self::Store(error) => {
                (error.to_string(), error.needs_person(), error.hints().into_iter().next())
            }
            Self::NoIngress(name) => {
                let hint = no_ingress(&name, &challenge.metadata.namespace);
                (format!("ingress {name} not found"), true, Some(hint))
            }
            Self::Setup(why) => (why, true, None),
            Self::Busy(why) => (why, false, None),
        };
        SolveError { what, why, needs_person, hint, until: None }
    }
}

/// What helps where the Ingress that is to be edited is not there.
pub fn no_ingress(name: &str, namespace: &str) -> String {
    format!(
        "create Ingress {name} in namespace {namespace}, or change http01.ingress.name of the issuer's solver"
    )
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
