//! Reply to one GET of a URL of a CA, as it came: shows which server answers there.

use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use serde_json::Value;

use crate::http::exchange::Reply;
use crate::http::headers::{date, text};
use crate::model::observation::PlainAnswer;

/// Most characters of a body that are kept.
const BODY_START_CHARS: usize = 120;
/// Most characters of a header or a URL that are kept.
const MAX_TEXT_CHARS: usize = 300;
/// Most URLs of a JSON object that are kept.
const MAX_URLS: usize = 12;

/// Reply to a plain GET.
#[derive(Clone, Debug)]
pub struct PlainReply {
    /// Facts of the reply.
    pub answer: PlainAnswer,
    /// The body.
    pub body: Vec<u8>,
}

impl From<Reply> for PlainReply {
    fn from(reply: Reply) -> Self {
        let bounded = |text: &str| text.chars().take(MAX_TEXT_CHARS).collect::<String>();
        let header = |name| bounded(text(&reply.headers, &name).unwrap_or_default());
        let members = match serde_json::from_slice(&reply.body) {
            Ok(Value::Object(members)) => members,
            _ => serde_json::Map::new(),
        };
        let urls = members.into_iter().filter_map(|(name, value)| match value {
            Value::String(url) if url.contains("://") => Some((bounded(&name), bounded(&url))),
            _ => None,
        });
        let answer = PlainAnswer {
            status: reply.status.as_u16(),
            date: date(&reply.headers),
            came: reply.came,
            content_type: header(CONTENT_TYPE),
            location: header(LOCATION),
            retry_after: header(RETRY_AFTER),
            start: String::from_utf8_lossy(&reply.body).chars().take(BODY_START_CHARS).collect(),
            members: urls.take(MAX_URLS).collect(),
        };
        Self { answer, body: reply.body }
    }
}
