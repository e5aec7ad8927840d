//! Requests that a CA made in a validation. No RFC has such records; Boulder shows them with each challenge that was
//! tried (`validationRecord`), one record for each request of the way.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// One request of a validation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValidationRecord {
    /// URL that was asked; empty if a record or a handshake was looked for.
    pub url: String,
    /// Host.
    pub hostname: String,
    /// Port; `None` if there was no connection.
    pub port: Option<u16>,
    /// Addresses to which the host led.
    pub resolved: Vec<IpAddr>,
    /// Addresses that were tried before the one in `used`.
    pub tried: Vec<IpAddr>,
    /// Address that counts; `None` if there was no connection.
    pub used: Option<IpAddr>,
}

impl fmt::Display for ValidationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |all: &[IpAddr]| all.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
        match self.used {
            Some(used) => write!(f, "connected to {used}")?,
            None => f.write_str("connected to no address")?,
        }
        if let Some(port) = self.port {
            write!(f, " port {port}")?;
        }
        if !self.tried.is_empty() {
            write!(f, ", after {}", list(&self.tried))?;
        }
        if !self.resolved.is_empty() {
            write!(f, "; {} led to {}", self.hostname, list(&self.resolved))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_of_the_ca_is_told_in_one_line() {
        let record = ValidationRecord {
            hostname: "www.example.com".to_owned(),
            port: Some(80),
            resolved: vec!["2001:db8::1".parse().unwrap(), "192.0.2.1".parse().unwrap()],
            tried: vec!["2001:db8::1".parse().unwrap()],
            used: "192.0.2.1".parse().ok(),
            ..ValidationRecord::default()
        };
        assert_eq!(
            record.to_string(),
            "connected to 192.0.2.1 port 80, after 2001:db8::1; www.example.com led to 2001:db8::1, 192.0.2.1"
        );
        assert_eq!(ValidationRecord::default().to_string(), "connected to no address");
    }
}
