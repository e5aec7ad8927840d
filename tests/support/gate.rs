//! A port before our listener whose answers can be spoilt, as long as a test wants.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How long a patient gate waits for a good answer, and between two looks: a client gives up after ten seconds.
const LONGEST: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(50);

/// What a patient gate says at last.
const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What comes back through a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The listener's answer.
    Open,
    /// The listener's answer, as soon as that is a good one: as if solver Pods started at once.
    Patient,
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
    target: watch::Sender<SocketAddr>,
}

impl Gate {
    /// Opens a gate to a port; it lives as long as the runtime.
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (passage, chosen) = watch::channel(Passage::Open);
        let (target, there) = watch::channel(target);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let target = *there.borrow();
                tokio::spawn(pass(client, target, chosen.clone()));
            }
        });
        Self { port, passage, target }
    }

    /// Says what comes back from now on.
    pub fn set(&self, passage: Passage) {
        self.passage.send_replace(passage);
    }

    /// Says where new connections lead from now on.
    pub fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
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
        Passage::Patient => {
            wait_for_good(&mut client, target).await.ok();
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

/// Asks until the answer is good; after as long as a client may wait, the answer is that of a Service without Pods.
async fn wait_for_good(client: &mut TcpStream, target: SocketAddr) -> io::Result<()> {
    let mut request = vec![0; 8192];
    let length = client.read(&mut request).await?;
    request.truncate(length);
    let good = async {
        loop {
            let answer = ask(target, &request).await?;
            if answer.starts_with(b"HTTP/1.1 200 ") {
                return io::Result::Ok(answer);
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(LONGEST, good).await {
        Ok(answer) => client.write_all(&answer?).await,
        Err(_) => client.write_all(UNAVAILABLE).await,
    }
}

/// Asks once.
async fn ask(target: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(target).await?;
    server.write_all(request).await?;
    one_answer(&mut server).await
}

/// Reads an answer of a connection that may stay open: its head, and as much body as that says.
async fn one_answer(server: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    loop {
        let read = server.read_buf(&mut answer).await?;
        let text = String::from_utf8_lossy(&answer);
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let length = lines
                .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .find_map(|(_, value)| value.parse::<usize>().ok());
            length.is_some_and(|length| body.len() >= length)
        });
        if whole || read == 0 {
            return Ok(answer);
        }
    }
}
