//! A port before our listener whose answers can be spoilt, as long as a test wants.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What comes back through a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Passage {
    /// The listener's answer.
    Open,
    /// 404.
    Missing,
    /// 200 with a wrong body.
    Wrong,
}

/// A port of loopback that leads to another one.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Where it is.
    pub port: u16,
    passage: Arc<AtomicU8>,
}

impl Gate {
    /// Opens a gate to a port; it lives as long as the runtime.
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Self { port, passage: Arc::new(AtomicU8::new(Passage::Open as u8)) };
        let passage = Arc::clone(&gate.passage);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = passage.load(Ordering::SeqCst);
                tokio::spawn(pass(client, target, state));
            }
        });
        gate
    }

    /// Says what comes back from now on.
    pub fn set(&self, passage: Passage) {
        self.passage.store(passage as u8, Ordering::SeqCst);
    }
}

/// A client that goes away early is its own business.
async fn pass(mut client: TcpStream, target: SocketAddr, passage: u8) {
    if passage == Passage::Open as u8 {
        let Ok(mut server) = TcpStream::connect(target).await else { return };
        tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
        return;
    }
    let (status, body) = if passage == Passage::Missing as u8 {
        ("404 Not Found", "")
    } else {
        ("200 OK", "wrong.answer")
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    client.read(&mut [0; 4096]).await.ok();
    client.write_all(answer.as_bytes()).await.ok();
}
