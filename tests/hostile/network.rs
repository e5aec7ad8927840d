//! A CA and a name server that say what they are told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, StatusCode};
use jiff::Timestamp;
use kubectl_acme::http::exchange::{Reply, Transport, Unanswered};
use reqwest::RequestBuilder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

/// Where the CA says that it is.
pub(crate) const DIRECTORY: &str = "https://ca.example/directory";

const TRUE_DIRECTORY: &str = r#"{"newNonce": "https://ca.example/nonce", "newAccount": "https://ca.example/account",
  "newOrder": "https://ca.example/order", "revokeCert": "https://ca.example/revoke", "keyChange": "https://ca.example/key"}"#;

/// What is said next.
pub(crate) type Words = Arc<Mutex<Vec<u8>>>;

/// Answers every request with those words, but for a directory and for nonces.
pub(crate) struct SaidByCa {
    pub(crate) words: Words,
    /// Whether the directory is true.
    pub(crate) has_directory: bool,
}

#[async_trait]
impl Transport for SaidByCa {
    async fn carry(&self, request: RequestBuilder, limit: usize) -> Result<Reply, Unanswered> {
        let url = request.build()?.url().clone();
        let words = self.words.lock().unwrap().clone();
        let body = match url.path() {
            "/directory" if self.has_directory => TRUE_DIRECTORY.as_bytes().to_vec(),
            "/nonce" => Vec::new(),
            _ => words.clone(),
        };
        if body.len() > limit {
            return Err(Unanswered::TooLarge);
        }
        // One in four is a refusal, by what is said.
        let is_refusal = words.len() % 4 == 3 && !matches!(url.path(), "/directory" | "/nonce");
        let status = if is_refusal { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let mut headers = HeaderMap::new();
        headers.insert("replay-nonce", HeaderValue::from_static("bm9uY2U"));
        headers.insert("location", HeaderValue::from_static("https://ca.example/order/1"));
        let kind = if is_refusal { "application/problem+json" } else { "application/json" };
        headers.insert("content-type", HeaderValue::from_static(kind));
        for name in ["retry-after", "link"] {
            let line = words.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if let Ok(value) = HeaderValue::from_bytes(&line[..line.len().min(500)]) {
                headers.insert(name, value);
            }
        }
        Ok(Reply { status, headers, body, url, came: Timestamp::now() })
    }
}

/// Starts a name server that says by UDP that its answers are too long, and those words by TCP.
pub(crate) async fn name_server(words: Words) -> SocketAddr {
    let (udp, tcp) = loop {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
            break (udp, tcp);
        }
    };
    let address = tcp.local_addr().unwrap();
    tokio::spawn(async move {
        let mut packet = [0; 4096];
        while let Ok((length, from)) = udp.recv_from(&mut packet).await {
            // An answer that is cut short, to this question.
            packet[2] |= 0x82;
            drop(udp.send_to(&packet[..length], from).await);
        }
    });
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = tcp.accept().await {
            let words = Arc::clone(&words);
            tokio::spawn(async move {
                let mut length = [0; 2];
                connection.read_exact(&mut length).await?;
                let mut question = vec![0; u16::from_be_bytes(length).into()];
                connection.read_exact(&mut question).await?;
                let mut said = words.lock().unwrap().clone();
                said.truncate(usize::from(u16::MAX));
                if let (Some(id), Some(asked)) = (said.get_mut(..2), question.get(..2)) {
                    id.copy_from_slice(asked);
                }
                connection.write_all(&u16::try_from(said.len()).unwrap().to_be_bytes()).await?;
                connection.write_all(&said).await
            });
        }
    });
    address
}
