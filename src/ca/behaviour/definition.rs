//! A behaviour of the kit: its name, its effect, and the value that it takes.

use super::rule::Trigger;

/// One deviation of a server or the network, which a client has to survive.
#[derive(Debug)]
pub struct Behaviour {
    /// Row of the behaviour; variants of one deviation share a row.
    pub row: u8,
    /// Name by which the behaviour is requested.
    pub name: &'static str,
    /// Meaning of the value behind the name.
    pub value: Value,
    /// Effect on the server or the network.
    pub does: &'static str,
    /// Right reaction of a client.
    pub reaction: &'static str,
    pub(super) rules: &'static [Trigger],
}

/// Meaning of the value behind a behaviour's name, with the default value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The behaviour takes no value.
    None,
    /// Number of repetitions.
    Times(u64),
    /// Number of seconds.
    Seconds(u64),
    /// Number of the objects that the behaviour concerns.
    Number(u64),
    /// The HTTP status.
    Status(u64),
}

impl Value {
    /// Returns the value that counts if no value is given; `None` if the behaviour takes no value.
    pub fn default_value(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Times(value)
            | Self::Seconds(value)
            | Self::Number(value)
            | Self::Status(value) => Some(value),
        }
    }

    /// Returns the word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Times(_) => "times",
            Self::Seconds(_) => "seconds",
            Self::Number(_) => "number",
            Self::Status(_) => "status",
        }
    }
}
