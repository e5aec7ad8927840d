//! Why a name server that was asked gives no answer.

use std::fmt;

use crate::model::cause::Symptom;

/// Why there is no answer; the texts are stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nothing came in time.
    TimedOut,
    /// Nobody listens there.
    Refused,
    /// This machine has no way there, such as one without IPv6.
    NoRoute,
    /// The answer was too large for UDP, and over TCP there was none.
    Truncated(Box<Self>),
    /// What came is no answer to the question.
    Unreadable,
    /// The HTTPS server said something else.
    Https(String),
}

impl Silence {
    /// What it is as data, if it is of a known sort; HTTPS is spoken by resolvers alone.
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
