//! The names by which manifests mean solvers of ours.

/// The `groupName` of these solvers.
pub const GROUP: &str = "kubectl-acme";

/// The `solverName` of programs that publish.
pub const EXEC: &str = "exec";

/// The `solverName` of people who publish (`--dns01-manual`).
pub const MANUAL: &str = "manual";
