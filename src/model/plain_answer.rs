//! Answer of a server to one GET, whatever it is, which helps to find out who answers at a URL.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Answer, as far as it shows who gives the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlainAnswer {
    /// HTTP status.
    pub status: u16,
    /// The server's clock.
    pub date: Option<Timestamp>,
    /// Time by this machine's clock when the answer came, whatever moment the verdict uses.
    pub came: Timestamp,
    /// Type of the body; empty if the answer names none.
    pub content_type: String,
    /// Target of the redirect; empty if there is none.
    pub location: String,
    /// Time at which the server wants the next request, in its own words; empty if it names none.
    pub retry_after: String,
    /// The beginning of the body.
    pub start: String,
    /// URLs in the body, each with its name, if the body is a JSON object.
    pub members: Vec<(String, String)>,
}
