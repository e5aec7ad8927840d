//! One GET of a URL of a CA, and what comes of it as it is: for whoever wants to know who answers there.

use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use serde_json::Value;

use crate::http::exchange::Reply;
use crate::http::headers::{date, text};
use crate::model::plain_answer::PlainAnswer;

/// Most letters of a body that are kept in what is told of it.
const START: usize = 120;
/// Most letters of a header or a URL.
const LONGEST: usize = 300;
/// Most URLs of a JSON object.
const MEMBERS: usize = 12;

/// What came.
#[derive(Clone, Debug)]
pub struct PlainReply {
    /// What is told of it.
    pub answer: PlainAnswer,
    /// The body.
    pub body: Vec<u8>,
}

impl From<Reply> for PlainReply {
    fn from(reply: Reply) -> Self {
        let bounded = |text: &str| text.chars().take(LONGEST).collect::<String>();
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
            start: String::from_utf8_lossy(&reply.body).chars().take(START).collect(),
            members: urls.take(MEMBERS).collect(),
        };
        Self { answer, body: reply.body }
    }
}
