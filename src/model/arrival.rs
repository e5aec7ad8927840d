//! Connections that reached this program's own listener for HTTP-01, as plain data: no verdict.

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::text::is_steering;

/// Header that this program's listeners send if they have no answer, so that a checker knows that they declined.
pub const DECLINED_BY: (&str, &str) = ("x-acme-solver", "kubectl-acme");

/// Most letters of a Host header that are kept.
const MAX_HOST_LETTERS: usize = 80;

/// A connection to the listener that concerns an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Arrival {
    /// Time of the connection.
    pub at: Timestamp,
    /// Address that connected: often the server in front of the listener.
    pub from: IpAddr,
    /// Whether a header of the PROXY protocol came first.
    pub is_proxied: bool,
    /// Request that came.
    pub came: Came,
}

/// Content of a connection. Tokens and paths are left out: they are the secret part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Came {
    /// A request for the answer, which was given.
    Answered {
        /// The Host header; empty if there was none.
        host: String,
    },
    /// A request for the token under another path than that of challenges.
    OtherPath {
        /// The Host header; empty if there was none.
        host: String,
    },
    /// A request for a token that the listener does not hold.
    UnknownToken {
        /// The Host header; empty if there was none.
        host: String,
    },
    /// A TLS handshake, although the listener expects HTTP.
    Tls,
    /// A header of the PROXY protocol that cannot be read.
    Garbled,
}

impl Came {
    /// Reports whether the request names the answer's token, so that the request can be about no other answer.
    pub fn names_token(&self) -> bool {
        matches!(self, Self::Answered { .. } | Self::OtherPath { .. })
    }
}

/// Returns the part of a Host header that is kept, on one line.
pub fn kept_host(host: &str) -> String {
    host.chars().filter(|c| !is_steering(*c)).take(MAX_HOST_LETTERS).collect()
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |host: &str| match host {
            "" => "without a Host".to_owned(),
            host => format!("with the Host {host}"),
        };
        match &self.came {
            Came::Answered { host } => write!(f, "the request {}", with(host)),
            Came::OtherPath { host } => {
                write!(f, "a request for the token {}, under another path", with(host))
            }
            Came::UnknownToken { host } => write!(f, "a request for another token {}", with(host)),
            Came::Tls => f.write_str("a TLS handshake"),
            Came::Garbled => f.write_str("a PROXY header that cannot be read"),
        }?;
        write!(f, " from {}", self.from)?;
        if self.is_proxied { f.write_str(", behind a PROXY header") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_said_on_one_line() {
        let said = |came, is_proxied| {
            let from = "192.0.2.1".parse().unwrap();
            Arrival { at: Timestamp::UNIX_EPOCH, from, is_proxied, came }.to_string()
        };
        let host = kept_host(&format!("a\r\n\u{1b}[2J{}", "b".repeat(200)));
        assert_eq!(host.chars().count(), MAX_HOST_LETTERS);
        assert!(!said(Came::Answered { host }, false).contains(['\r', '\n', '\u{1b}']));
        assert_eq!(
            said(Came::OtherPath { host: String::new() }, true),
            "a request for the token without a Host, under another path from 192.0.2.1, behind a PROXY header"
        );
        assert_eq!(said(Came::Tls, false), "a TLS handshake from 192.0.2.1");
    }
}
