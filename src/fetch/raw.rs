//! One plain GET that returns the answer as received, headers included: shows which server answers. No redirects.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::http::client::USER_AGENT;

/// Most bytes that are read.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// Reason why no byte came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBytes {
    /// No connection came about.
    NotConnected,
    /// The connection ended.
    Ended,
    /// Nothing came in time.
    Silent,
}

/// Requests a path of a host from that address by HTTP/1.1, and returns the first bytes of the answer, headers
/// included, within `longest`. Host and path consist of letters, digits and dots: a DNS name, and a path of ours.
///
/// # Errors
/// Fails if not one byte came.
pub async fn bytes(
    address: SocketAddr,
    host: &str,
    path: &str,
    longest: Duration,
) -> Result<Vec<u8>, NoBytes> {
    bytes_behind("", address, (host, path), longest).await
}

/// Line that a load balancer puts before a connection of unknown origin (the PROXY protocol, version 1, §2.1).
pub const PROXY_HEADER: &str = "PROXY UNKNOWN\r\n";

/// Requests a path like [`bytes()`], with `before` sent ahead of the request.
///
/// # Errors
/// Fails as [`bytes()`] does.
pub async fn bytes_behind(
    before: &str,
    address: SocketAddr,
    (host, path): (&str, &str),
    longest: Duration,
) -> Result<Vec<u8>, NoBytes> {
    let until = Instant::now() + longest;
    let connected = timeout_at(until, TcpStream::connect(address)).await;
    let Ok(Ok(mut stream)) = connected else { return Err(NoBytes::NotConnected) };
    let request = format!(
        "{before}GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    let mut read = Vec::new();
    // A server that closes the connection may have sent the reason before.
    let came = timeout_at(until, exchange(&mut stream, &request, &mut read)).await;
    match (read.is_empty(), came) {
        (false, _) => Ok(read),
        (true, Ok(_)) => Err(NoBytes::Ended),
        (true, Err(_)) => Err(NoBytes::Silent),
    }
}

/// Reads until the answer is whole, if the answer states its length, else to the end of the connection.
async fn exchange(stream: &mut TcpStream, request: &str, read: &mut Vec<u8>) -> io::Result<()> {
    stream.write_all(request.as_bytes()).await?;
    while read.len() < MAX_ANSWER_BYTES && !is_whole(read) {
        if stream.read_buf(read).await? == 0 {
            break;
        }
    }
    read.truncate(MAX_ANSWER_BYTES);
    Ok(())
}

/// Returns whether the announced answer is whole: the headers, and as much of a body as they state. A frame of HTTP/2
/// has no end to wait for.
fn is_whole(read: &[u8]) -> bool {
    let is_http1 = read.len() < 5 || read.starts_with(b"HTTP/");
    if !is_http1 {
        return read.len() >= 9;
    }
    let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|text| text.trim().parse::<usize>().ok());
    length.is_some_and(|length| read.len() - (end + 4) >= length)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    /// Bytes read from a server that answers with these bytes, and closes the connection or keeps it.
    async fn brought(answer: &'static [u8], keeps: bool) -> Result<Vec<u8>, NoBytes> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8(request[..length].to_vec()).unwrap();
            assert!(request.starts_with("GET /x HTTP/1.1\r\nHost: a.example\r\n"), "{request}");
            stream.write_all(answer).await.unwrap();
            if keeps {
                std::future::pending::<()>().await;
            }
        });
        let brought = bytes(address, "a.example", "/x", TEST_TIMEOUT).await;
        server.abort();
        brought
    }

    #[tokio::test]
    async fn an_answer_is_brought_as_it_came() {
        let answer = b"HTTP/1.1 404 Not Found\r\nServer: x\r\nContent-Length: 2\r\n\r\nno";
        assert_eq!(brought(answer, true).await.unwrap(), answer);
        let endless = b"HTTP/1.0 200 OK\r\n\r\nuntil the end";
        assert_eq!(brought(endless, false).await.unwrap(), endless);
        let frame = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00";
        assert_eq!(brought(frame, true).await.unwrap(), frame);
    }

    #[tokio::test]
    async fn no_byte_at_all_is_told_with_the_reason() {
        assert_eq!(brought(b"", false).await, Err(NoBytes::Ended));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let short = Duration::from_millis(50);
        assert_eq!(bytes(address, "a.example", "/", short).await, Err(NoBytes::Silent));
        drop(listener);
        assert_eq!(
            bytes(address, "a.example", "/", TEST_TIMEOUT).await,
            Err(NoBytes::NotConnected)
        );
    }
}
