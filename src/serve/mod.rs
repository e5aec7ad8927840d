//! Server connections, each for a bounded time and all together bounded in number, so that no client keeps others from
//! being served.

mod connection_slots;
pub mod opening;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub use self::connection_slots::ConnectionSlots;

/// Longest a client may take for its TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest that an answer under way may take once its connection is to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed accept, such as when the process is out of file descriptors.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Time limits of one connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTimeouts {
    /// Longest wait for a request's header; also between two requests.
    pub header: Duration,
    /// Longest time in all; an answer under way is finished, for 5 s at most.
    pub connection: Duration,
}

impl ConnectionTimeouts {
    /// Limits for clients that ask once: a CA that validates, a browser, a load balancer's health check.
    pub const ONE_REQUEST: Self =
        Self { header: Duration::from_secs(10), connection: Duration::from_mins(1) };
    /// Limits for clients that reuse their connection; most keep an idle connection for 90 s.
    pub const KEEP_ALIVE: Self =
        Self { header: Duration::from_mins(2), connection: Duration::from_mins(10) };
}

/// Accepts connections until `stop`, then waits for those under way; all connections end with this future.
///
/// If all places are taken, a new connection gets the place of the one that [`ConnectionSlots`] chooses, which is aborted.
pub async fn accept_all<F, Served>(
    socket: TcpListener,
    places: ConnectionSlots,
    stop: CancellationToken,
    serve: F,
) where
    F: Fn(TcpStream) -> Served,
    Served: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    while let Some(accepted) = stop.run_until_cancelled(socket.accept()).await {
        match accepted {
            Ok((stream, address)) => {
                // Answers are small and may come in two writes: Nagle's algorithm would hold back the second.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%address, %error, "cannot send small packets at once");
                }
                places.take(address.ip(), connections.spawn(serve(stream)));
            }
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_RETRY_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(socket);
    while connections.join_next().await.is_some() {}
}

/// Serves HTTP/1 on one connection until the connection ends, its time is up, or the server stops.
pub async fn http<S>(
    stream: S,
    router: Router,
    patience: ConnectionTimeouts,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(patience.header);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(protocol.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Ok(ended),
        () = sleep(patience.connection) => Err("its time is up"),
        () = stop.cancelled() => Err("the server stops"),
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection broke off"),
        Err(why) => {
            connection.as_mut().graceful_shutdown();
            let in_time = timeout(SHUTDOWN_TIMEOUT, connection).await.is_ok();
            debug!(why, in_time, "a connection was ended");
        }
    }
}

/// Serves HTTP/2 on one connection until the connection ends, its time is up, or the server stops.
pub async fn http2<S>(
    stream: S,
    router: Router,
    patience: ConnectionTimeouts,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut protocol = http2::Builder::new(TokioExecutor::new());
    protocol.timer(TokioTimer::new()).keep_alive_interval(patience.header);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(protocol.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Ok(ended),
        () = sleep(patience.connection) => Err("its time is up"),
        () = stop.cancelled() => Err("the server stops"),
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection broke off"),
        Err(why) => {
            connection.as_mut().graceful_shutdown();
            let in_time = timeout(SHUTDOWN_TIMEOUT, connection).await.is_ok();
            debug!(why, in_time, "a connection was ended");
        }
    }
}

/// Performs the server's side of a TLS handshake, for at most 10 s; `None` if the handshake fails.
pub async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    acceptor: &TlsAcceptor,
) -> Option<TlsStream<S>> {
    match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => debug!(%error, "no TLS handshake"),
        Err(_) => debug!("a TLS handshake took too long"),
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;

    use super::*;

    const SHORT_WAIT: Duration = Duration::from_millis(50);
    /// Far longer than any test takes.
    const NEVER: Duration = Duration::from_hours(1);
    const BEGUN: &[u8] = b"GET / HTTP/1.1\r\nHost:";

    /// Serves "hello" to everybody; the server ends with the test.
    async fn start(most: usize, patience: ConnectionTimeouts) -> (SocketAddr, CancellationToken) {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), CancellationToken::new());
        let (router, stopped) = (Router::new().fallback(async || "hello"), stop.clone());
        let serve = move |stream| http(stream, router.clone(), patience, stopped.clone());
        tokio::spawn(accept_all(socket, ConnectionSlots::of(most), stop.clone(), serve));
        (address, stop)
    }

    /// Connects from that address of loopback and begins a request.
    async fn begin(from: u8, to: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, from), 0).into()).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        stream.write_all(BEGUN).await.unwrap();
        stream
    }

    /// Ends the request and reads until the server hangs up.
    async fn finish(stream: &mut TcpStream) -> String {
        stream.write_all(b" a\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    /// Waits until the server hangs up without a word.
    async fn is_cut_off(stream: &mut TcpStream) {
        let mut byte = [0];
        let read = timeout(Duration::from_mins(1), stream.read(&mut byte)).await;
        assert!(matches!(read.expect("the server waits still"), Ok(0) | Err(_)));
    }

    #[tokio::test]
    async fn a_request_that_does_not_come_is_not_waited_for() {
        let (address, _stop) =
            start(9, ConnectionTimeouts { header: SHORT_WAIT, connection: NEVER }).await;
        is_cut_off(&mut begin(1, address).await).await;
        // Nor is one that does not even begin.
        is_cut_off(&mut TcpStream::connect(address).await.unwrap()).await;
    }

    #[tokio::test]
    async fn no_connection_lasts_for_ever() {
        let (address, _stop) =
            start(9, ConnectionTimeouts { header: NEVER, connection: SHORT_WAIT }).await;
        is_cut_off(&mut begin(1, address).await).await;
    }

    #[tokio::test]
    async fn the_oldest_makes_room_for_a_newcomer() {
        let (address, _stop) =
            start(3, ConnectionTimeouts { header: NEVER, connection: NEVER }).await;
        let mut first = begin(1, address).await;
        let mut second = begin(1, address).await;
        let _third = begin(1, address).await;
        let mut newcomer = begin(1, address).await;
        is_cut_off(&mut first).await;
        assert!(finish(&mut newcomer).await.ends_with("hello"));
        assert!(finish(&mut second).await.ends_with("hello"));
    }

    #[tokio::test]
    async fn whoever_has_most_places_makes_room() {
        let (address, _stop) =
            start(3, ConnectionTimeouts { header: NEVER, connection: NEVER }).await;
        let mut first = begin(1, address).await;
        let mut greedy = begin(2, address).await;
        let _greedy_again = begin(2, address).await;
        let mut newcomer = begin(3, address).await;
        is_cut_off(&mut greedy).await;
        for stream in [&mut first, &mut newcomer] {
            assert!(finish(stream).await.ends_with("hello"));
        }
    }

    #[tokio::test]
    async fn a_server_that_stops_lets_nobody_in_and_everybody_go() {
        let (address, stop) =
            start(3, ConnectionTimeouts { header: NEVER, connection: NEVER }).await;
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut first = [0; 15];
        idle.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        stop.cancel();
        let mut rest = String::new();
        idle.read_to_string(&mut rest).await.unwrap();
        assert!(rest.ends_with("hello"), "{rest}");
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}
