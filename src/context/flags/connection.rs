//! Flags of every command that choose the cluster, the user, and the program that works on the resources.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::duration;
use super::lease::Terms;
use crate::store::cluster::Connection;
use crate::store::cluster::lease::LEASE_NAMESPACE;

/// Heading of the flags that have no effect without a cluster.
pub const HEADING: &str = "Cluster flags";

/// Flags of every command that say where in a cluster resources are.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = HEADING)]
pub struct ClusterArgs {
    /// Kubeconfig in place of ~/.kube/config
    ///
    /// This file goes before KUBECONFIG as well.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context in place of the current one
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// User to act as
    #[arg(long = "as", global = true, value_name = "USER", hide_short_help = true)]
    pub user: Option<String>,
    /// Group to act as, repeatable
    #[arg(long = "as-group", global = true, value_name = "GROUP", hide_short_help = true)]
    pub groups: Vec<String>,
    /// Longest time for one request to the cluster, such as 5s; 0 means no limit
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_timeout, hide_short_help = true)]
    pub request_timeout: Option<Duration>,
    /// Namespace of the Lease that names the leader
    #[arg(
        long,
        global = true,
        value_name = "NAMESPACE",
        default_value = LEASE_NAMESPACE,
        hide_short_help = true
    )]
    pub leader_election_namespace: String,
    /// Program that works on the resources
    #[arg(long, global = true, value_name = "WHO", default_value = "auto", value_enum)]
    pub driver: DriverChoice,
    /// Times of the Lease, from the flags of the commands that may hold it.
    #[arg(skip)]
    pub terms: Terms,
}

impl ClusterArgs {
    /// Returns the settings of the connection to the cluster.
    pub fn connection(&self, namespace: Option<&str>) -> Connection {
        Connection {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespace: namespace.map(str::to_owned),
            user: self.user.clone(),
            groups: self.groups.clone(),
            request_timeout: self.request_timeout,
        }
    }

    /// Removes the flags that name a cluster or a user.
    #[must_use]
    pub fn without_place(self) -> Self {
        Self { kubeconfig: None, context: None, user: None, groups: Vec::new(), ..self }
    }
}

/// Reads a duration as kubectl does: with a unit, or in whole seconds; zero means no limit.
fn parse_timeout(text: &str) -> Result<Duration, String> {
    let given = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => duration(text)?.0.unsigned_abs(),
    };
    Ok(if given.is_zero() { Duration::MAX } else { given })
}

/// Program that works on the resources of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DriverChoice {
    /// cert-manager if it holds its Lease, else this process
    #[default]
    Auto,
    /// cert-manager, even if this process cannot see it
    CertManager,
    /// This process; refused while another one holds the Lease
    #[value(name = "self")]
    Ourselves,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<Duration>) {
        assert_eq!(parse_timeout(text).ok(), expected, "{text}");
    }

    #[test]
    fn a_timeout_of_requests_is_read_as_kubectl_does() {
        check("5s", Some(Duration::from_secs(5)));
        check("5", Some(Duration::from_secs(5)));
        check("1m30s", Some(Duration::from_secs(90)));
        check("0", Some(Duration::MAX));
        check("soon", None);
        check("-5s", None);
    }
}
