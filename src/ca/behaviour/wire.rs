//! Protocols on the CA's connections: HTTP/2 and HTTP/1.1, one of these, or HTTP/2 that ends in the middle.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::serve::{self, ConnectionTimeouts};

/// Life of a connection after its GOAWAY; requests under way are not answered any more.
const GOAWAY_TIMEOUT: Duration = Duration::from_millis(300);

/// HTTP/2 in a TLS handshake (RFC 9113 §3.1).
const HTTP2: &[u8] = b"h2";

/// Way to serve connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ca) enum ConnectionBehaviour {
    /// HTTP/2 with clients that offer it, else HTTP/1.1.
    #[default]
    Negotiated,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
    /// HTTP/2; every connection answers so many requests, takes one more, sends GOAWAY and ends.
    GoAway(u64),
}

impl ConnectionBehaviour {
    /// Returns the protocols that are offered in the TLS handshake (ALPN).
    pub(in crate::ca) fn protocols(self) -> &'static [&'static [u8]] {
        match self {
            Self::Negotiated => &[HTTP2, b"http/1.1"],
            Self::Http1 => &[b"http/1.1"],
            Self::Http2 | Self::GoAway(_) => &[HTTP2],
        }
    }

    /// Serves one connection until the connection ends.
    pub(in crate::ca) async fn serve(
        self,
        stream: TlsStream<TcpStream>,
        router: Router,
        stop: CancellationToken,
    ) {
        let agreed_on_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        match self {
            Self::GoAway(most) => serve_and_leave(stream, router, most, stop).await,
            Self::Http2 => serve::http2(stream, router, ConnectionTimeouts::KEEP_ALIVE, stop).await,
            Self::Negotiated if agreed_on_http2 => {
                serve::http2(stream, router, ConnectionTimeouts::KEEP_ALIVE, stop).await;
            }
            Self::Negotiated | Self::Http1 => {
                serve::http(stream, router, ConnectionTimeouts::KEEP_ALIVE, stop).await;
            }
        }
    }
}

/// Number of requests that a connection still answers, and the notice of the first request beyond.
#[derive(Debug)]
struct Rest {
    most: u64,
    answered: AtomicU64,
    over: Notify,
}

async fn serve_and_leave(
    stream: TlsStream<TcpStream>,
    router: Router,
    most: u64,
    stop: CancellationToken,
) {
    let rest = Arc::new(Rest { most, answered: AtomicU64::new(0), over: Notify::new() });
    let router = router.layer(from_fn_with_state(Arc::clone(&rest), count));
    let mut protocol = http2::Builder::new(TokioExecutor::new());
    protocol.timer(TokioTimer::new());
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(protocol.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = rest.over.notified() => {}
        () = stop.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    timeout(GOAWAY_TIMEOUT, connection).await.ok();
}

/// Passes requests on while some are left to answer; the CA does not get later requests.
async fn count(State(rest): State<Arc<Rest>>, request: Request, next: Next) -> Response {
    if rest.answered.fetch_add(1, Ordering::Relaxed) >= rest.most {
        rest.over.notify_one();
        std::future::pending::<()>().await;
    }
    next.run(request).await
}
