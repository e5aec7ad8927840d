//! How an answer goes over the wire: bodies that stop, dawdle, or never end.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream::{self, StreamExt as _};
use tokio::time::sleep;

/// Pause between two bytes of a slow answer, and before a connection is cut that was begun.
const PAUSE: Duration = Duration::from_millis(200);
/// What comes at a time where there is no end.
const BLANKS: &[u8] = &[b' '; 16_384];

/// How an answer goes over the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// Not at all: the connection ends.
    Nothing,
    /// Without its body.
    HeadAlone,
    /// Half of it, then the connection ends.
    Half,
    /// A byte now and then.
    Slowly,
    /// With blanks behind it that never end.
    Endlessly,
}

impl Sending {
    /// The body that does so. Its errors end the connection, or with HTTP/2 the stream.
    pub(super) fn body(self, whole: Bytes) -> Body {
        match self {
            Self::Nothing => Body::from_stream(stream::once(async { Err::<Bytes, _>(cut()) })),
            Self::HeadAlone => Body::empty(),
            Self::Half => {
                let half = whole.slice(..whole.len() / 2);
                let end = stream::once(async {
                    sleep(PAUSE).await;
                    Err(cut())
                });
                Body::from_stream(stream::iter([Ok(half)]).chain(end))
            }
            Self::Slowly => {
                let bytes = stream::iter(0..whole.len()).then(move |at| {
                    let byte = whole.slice(at..=at);
                    async move {
                        sleep(PAUSE).await;
                        Ok::<_, io::Error>(byte)
                    }
                });
                Body::from_stream(bytes)
            }
            Self::Endlessly => {
                let blanks = stream::repeat(Bytes::from_static(BLANKS));
                let all = stream::iter([whole]).chain(blanks);
                Body::from_stream(all.map(Ok::<_, io::Error>))
            }
        }
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "cut by a behaviour")
}
