//! One GET of a URL of a CA, and what comes of it as it is: for whoever wants to know who answers there.

use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use jiff::Timestamp;

use crate::http::exchange::Reply;
use crate::http::headers::{date, text};

/// What came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainAnswer {
    /// HTTP status.
    pub status: u16,
    /// The server's clock.
    pub date: Option<Timestamp>,
    /// Our own when it came.
    pub came: Timestamp,
    /// Type of the body; empty where it says none.
    pub content_type: String,
    /// Where it redirects; empty where it does not.
    pub location: String,
    /// When it wants to be asked again, in its words; empty where it does not say.
    pub retry_after: String,
    /// The body.
    pub body: Vec<u8>,
}

impl From<Reply> for PlainAnswer {
    fn from(reply: Reply) -> Self {
        let header = |name| text(&reply.headers, &name).unwrap_or_default().to_owned();
        Self {
            status: reply.status.as_u16(),
            date: date(&reply.headers),
            came: Timestamp::now(),
            content_type: header(CONTENT_TYPE),
            location: header(LOCATION),
            retry_after: header(RETRY_AFTER),
            body: reply.body,
        }
    }
}
