//! Reasons why a name server gives no answer.

use std::fmt;

use crate::model::cause::Symptom;

/// Reason why there is no answer; the texts are stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// No answer came in time.
    TimedOut,
    /// No server listens at the address.
    Refused,
    /// This machine has no route to the server, such as a machine without IPv6.
    NoRoute,
    /// The answer was too large for UDP, and over TCP there was none.
    Truncated(Box<Self>),
    /// The bytes that came are no answer to the question.
    Unreadable,
    /// The HTTPS server sent no DNS answer; the field describes its reply.
    Https(String),
}

impl Silence {
    /// Symptom, as data; `None` if the reason is of no known kind. Only resolvers are asked by HTTPS.
    pub fn symptom(&self) -> Option<Symptom> {
        match self {
            Self::TimedOut | Self::Refused => Some(Symptom::ServersSilent),
            Self::NoRoute => Some(Symptom::NoRoute),
            Self::Unreadable => Some(Symptom::ServerUnreadable),
            Self::Truncated(why) => why.symptom(),
            Self::Https(_) => None,
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("does not answer"),
            Self::Refused => f.write_str("refuses the connection"),
            Self::NoRoute => f.write_str("cannot be reached from here"),
            Self::Truncated(why) => {
                write!(f, "has an answer too large for UDP, and over TCP it {why}")
            }
            Self::Unreadable => f.write_str("gives an answer that cannot be read"),
            Self::Https(why) => f.write_str(why),
        }
    }
}
