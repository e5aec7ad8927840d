//! Type of a rule.

use crate::diagnosis::case::Case;
use crate::diagnosis::finding::Finding;

/// Function that reads the observations, and adds the findings that they show.
pub(super) type FaultRule = fn(&Case, &mut Vec<Finding>);
