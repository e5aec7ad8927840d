//! Ways to send an answer: bodies that stop, are slow, or never end.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream::{self, StreamExt as _};
use tokio::time::sleep;

/// Pause between two bytes of a slow answer, and before a half-sent answer's connection is cut.
const SENDING_PAUSE: Duration = Duration::from_millis(200);
/// Piece of an endless body.
const BLANK_CHUNK: &[u8] = &[b' '; 16_384];

/// Way to send an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// No answer: the connection ends.
    Nothing,
    /// Answer without its body.
    HeadAlone,
    /// Half of the answer, then the connection ends.
    Half,
    /// Single bytes with pauses.
    Slowly,
    /// The answer, followed by endless blanks.
    Endlessly,
}

impl Sending {
    /// Returns the body for this way. An error of the body ends the connection, or with HTTP/2 the stream.
    pub(super) fn body(self, whole: Bytes) -> Body {
        match self {
            Self::Nothing => Body::from_stream(stream::once(async { Err::<Bytes, _>(cut()) })),
            Self::HeadAlone => Body::empty(),
            Self::Half => {
                let half = whole.slice(..whole.len() / 2);
                let end = stream::once(async {
                    sleep(SENDING_PAUSE).await;
                    Err(cut())
                });
                Body::from_stream(stream::iter([Ok(half)]).chain(end))
            }
            Self::Slowly => {
                let bytes = stream::iter(0..whole.len()).then(move |at| {
                    let byte = whole.slice(at..=at);
                    async move {
                        sleep(SENDING_PAUSE).await;
                        Ok::<_, io::Error>(byte)
                    }
                });
                Body::from_stream(bytes)
            }
            Self::Endlessly => {
                let blanks = stream::repeat(Bytes::from_static(BLANK_CHUNK));
                let all = stream::iter([whole]).chain(blanks);
                Body::from_stream(all.map(Ok::<_, io::Error>))
            }
        }
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "cut by a behaviour")
}
