//! How the CA speaks on its connections: HTTP/1.1, or HTTP/2 that leaves in the middle.

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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::serve::{self, Patience};

/// How long a connection lives after its GOAWAY; requests under way are not answered any more.
const FAREWELL: Duration = Duration::from_millis(300);

/// How connections are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ca) enum ConnectionBehaviour {
    /// HTTP/1.1, as always.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/2; every connection answers so many requests, takes one more, says GOAWAY and ends.
    GoAway(u64),
}

impl ConnectionBehaviour {
    /// What is offered in the TLS handshake (ALPN).
    pub(in crate::ca) fn protocol(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 | Self::GoAway(_) => b"h2",
        }
    }

    /// Speaks on one connection until it ends.
    pub(in crate::ca) async fn serve<S>(self, stream: S, router: Router, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match self {
            Self::Http1 => serve::http(stream, router, Patience::LONG, stop).await,
            Self::Http2 => serve_http2(stream, router, u64::MAX, stop).await,
            Self::GoAway(most) => serve_http2(stream, router, most, stop).await,
        }
    }
}

/// Requests that a connection answers still, and who is told when one comes that it does not.
#[derive(Debug)]
struct Rest {
    most: u64,
    answered: AtomicU64,
    over: Notify,
}

async fn serve_http2<S>(stream: S, router: Router, most: u64, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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
    timeout(FAREWELL, connection).await.ok();
}

/// Passes requests on as long as there are some to answer; the CA does not hear of those that come later.
async fn count(State(rest): State<Arc<Rest>>, request: Request, next: Next) -> Response {
    if rest.answered.fetch_add(1, Ordering::Relaxed) >= rest.most {
        rest.over.notify_one();
        std::future::pending::<()>().await;
    }
    next.run(request).await
}
