//! What a rule is.

use crate::diagnosis::case::Case;
use crate::diagnosis::finding::Finding;

/// Looks at what was observed, and adds what it shows.
pub(super) type FaultRule = fn(&Case, &mut Vec<Finding>);
