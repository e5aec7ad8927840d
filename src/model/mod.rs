//! What things are: cert-manager's resources, names, states, events and the CA's problem document.
//!
//! Floor 0: nothing here reads a clock, a file, a socket or a die.
#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::wildcard_enum_match_arm)]

pub mod asked;
pub mod certificate;
pub mod challenge;
pub mod common;
pub mod conversion;
pub mod cron;
pub mod event;
pub mod field;
pub mod issuer;
pub mod manifest;
pub mod memory;
pub mod metadata;
pub mod names;
pub mod naming;
pub mod observation;
pub mod occasion;
pub mod order;
pub mod order_budget;
pub mod own_solver;
pub mod persist;
pub mod pod_template;
pub mod problem;
pub mod quick;
pub mod request;
pub mod secret;
pub mod solver;
mod solver_secrets;
pub mod state;
pub mod text;
pub mod validation;

pub use self::certificate::{Certificate, CertificateSpec, CertificateStatus};
pub use self::challenge::{Answer, Challenge, ChallengeSpec, ChallengeStatus};
pub use self::common::{
    Blob, Condition, ConditionStatus, Duration, IssuerRef, SecretKeySelector, Time,
};
pub use self::event::{Event, ObjectReference, Severity};
pub use self::issuer::{Issuer, IssuerSpec, IssuerStatus};
pub use self::metadata::{Key, Kind, Metadata, OwnerReference, Record, Resource};
pub use self::names::{DnsName, Identifier, ObjectName};
pub use self::order::{Order, OrderSpec, OrderStatus};
pub use self::problem::Problem;
pub use self::request::{CertificateRequest, CertificateRequestSpec, CertificateRequestStatus};
pub use self::secret::Secret;
pub use self::solver::ChallengeSolver;
pub use self::state::{ChallengeType, State};
