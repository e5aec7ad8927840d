//! Names by which manifests refer to this program's solvers.

/// `groupName` of this program's solvers.
pub const GROUP: &str = "kubectl-acme";

/// `solverName` of programs that publish.
pub const EXEC: &str = "exec";

/// `solverName` of people who publish (`--dns01-manual`).
pub const MANUAL: &str = "manual";
