//! What a server says to one GET, whatever it is: for whoever wants to know who answers at a URL.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An answer, as far as it tells who gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlainAnswer {
    /// HTTP status.
    pub status: u16,
    /// The server's clock.
    pub date: Option<Timestamp>,
    /// This machine's when the answer came, whatever moment is judged by.
    pub came: Timestamp,
    /// Type of the body; empty where it says none.
    pub content_type: String,
    /// Where it redirects; empty where it does not.
    pub location: String,
    /// When it wants to be asked again, in its words; empty where it does not say.
    pub retry_after: String,
    /// The beginning of the body.
    pub start: String,
    /// The URLs in it, by the name of each, where it is a JSON object.
    pub members: Vec<(String, String)>,
}
