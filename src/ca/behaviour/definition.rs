//! A behaviour of the kit: its name, what it shows, and the value it takes.

use super::rule::Trigger;

/// One thing that a server or the network may do.
#[derive(Debug)]
pub struct Behaviour {
    /// Its row; several ways of the same thing share one.
    pub row: u8,
    /// What it is asked for by.
    pub name: &'static str,
    /// What a value behind the name says.
    pub value: Value,
    /// What the server or the network does.
    pub does: &'static str,
    /// What a client should do then.
    pub reaction: &'static str,
    pub(super) rules: &'static [Trigger],
}

/// What a value behind a behaviour's name says, and what it is when none is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// There is none.
    None,
    /// How often it is done.
    Times(u64),
    /// How many seconds.
    Seconds(u64),
    /// How many of whatever the behaviour is about.
    Number(u64),
    /// The HTTP status.
    Status(u64),
}

impl Value {
    /// What counts when no value is given.
    pub fn default_value(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Times(value)
            | Self::Seconds(value)
            | Self::Number(value)
            | Self::Status(value) => Some(value),
        }
    }

    /// The word for people.
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
