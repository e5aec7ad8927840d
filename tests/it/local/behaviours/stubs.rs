//! What names lead to in rows that are not the CA's: web servers and name servers of a few lines.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::thread;

/// A web server that every name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Web {
    /// Redirects every page to itself.
    Loop,
    /// Never ends a page.
    Endless,
    /// Says nothing.
    Silent,
}

/// A name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dns {
    /// No name exists (NXDOMAIN).
    NoSuchName,
    /// Fails (SERVFAIL).
    Fails,
    /// Every name is an alias of itself.
    Loop,
    /// Says nothing.
    Silent,
}

impl Web {
    /// Starts it; it lives as long as the tests. Its port.
    pub(super) fn start(self) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || self.serve(stream));
            }
        });
        port
    }

    fn serve(self, mut stream: TcpStream) -> Option<()> {
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).ok()?;
        let request = String::from_utf8_lossy(&request[..length]).into_owned();
        let path = request.split(' ').nth(1)?;
        match self {
            Self::Loop => write!(
                stream,
                "HTTP/1.1 302 Found\r\nLocation: http://www.example.com{path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            .ok(),
            Self::Endless => {
                write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").ok()?;
                while stream.write_all(&[b'x'; 4096]).is_ok() {}
                None
            }
            // Until the other side goes.
            Self::Silent => stream.read(&mut [0]).ok().map(drop),
        }
    }
}

impl Dns {
    /// Starts it; it lives as long as the tests. Its port.
    pub(super) fn start(self) -> u16 {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, asker)) = socket.recv_from(&mut query) {
                if let Some(answer) = self.answer(&query[..length]) {
                    socket.send_to(&answer, asker).ok();
                }
            }
        });
        port
    }

    /// The answer to a query of one question (RFC 1035 §4.1).
    fn answer(self, query: &[u8]) -> Option<Vec<u8>> {
        let name = query.get(12..)?.iter().position(|octet| *octet == 0)?;
        // Its header, then the name, its end, type and class.
        let mut answer = query.get(..12 + name + 1 + 4)?.to_vec();
        answer[2] = 0x81;
        answer[6..12].fill(0);
        let code = match self {
            Self::Silent => return None,
            Self::NoSuchName => 3,
            Self::Fails => 2,
            Self::Loop => {
                answer[7] = 1;
                // The name in question, CNAME, IN, a minute, two octets: the name in question.
                answer.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12]);
                0
            }
        };
        answer[3] = 0x80 | code;
        Some(answer)
    }
}
