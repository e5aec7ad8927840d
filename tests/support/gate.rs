//! A port before our listener whose answers can be spoilt, as long as a test wants.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What comes back through a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The listener's answer.
    Open,
    /// Nothing, until another answer is chosen.
    Held,
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
    passage: watch::Sender<Passage>,
}

impl Gate {
    /// Opens a gate to a port; it lives as long as the runtime.
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (passage, chosen) = watch::channel(Passage::Open);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, target, chosen.clone()));
            }
        });
        Self { port, passage }
    }

    /// Says what comes back from now on.
    pub fn set(&self, passage: Passage) {
        self.passage.send_replace(passage);
    }
}

/// A client that goes away early is its own business.
async fn pass(mut client: TcpStream, target: SocketAddr, mut chosen: watch::Receiver<Passage>) {
    let Ok(passage) = chosen.wait_for(|passage| *passage != Passage::Held).await.map(|p| *p) else {
        return;
    };
    let (status, body) = match passage {
        Passage::Open | Passage::Held => {
            let Ok(mut server) = TcpStream::connect(target).await else { return };
            tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
            return;
        }
        Passage::Missing => ("404 Not Found", ""),
        Passage::Wrong => ("200 OK", "wrong.answer"),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let asked = client.read(&mut [0; 4096]).await;
    if asked.is_ok_and(|length| length > 0) {
        client.write_all(answer.as_bytes()).await.ok();
    }
}
