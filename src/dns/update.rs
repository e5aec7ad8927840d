//! Dynamic updates (RFC 2136): one TXT record more, or one less, signed where there is a key.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_resolver::proto::rr::Name;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::tsig::{Key, Signed, Verdict, canonical};

/// How often an update is sent over UDP before the server counts as silent.
const SENDINGS: u32 = 3;
/// How long each of them is waited for; over TCP all of it is waited for at once.
const PATIENCE: Duration = Duration::from_secs(3);
/// Largest datagram that an answer may come in.
const DATAGRAM: usize = 4096;

/// Types and classes (RFC 1035 §3.2, RFC 2136 §2.5.4).
const SOA: u16 = 6;
const TXT: u16 = 16;
const IN: u16 = 1;
const NONE: u16 = 254;

/// How a server is spoken with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Datagrams; TCP where an answer does not fit.
    #[default]
    Udp,
    /// A connection.
    Tcp,
}

/// What is to become of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stands beside all others at its name, for so many seconds in caches.
    Add {
        /// Seconds.
        ttl: u32,
    },
    /// It goes, and all others stay.
    Remove,
}

/// One change of one text.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// Absolute name of the zone.
    pub zone: &'a str,
    /// Absolute name of the record.
    pub name: &'a str,
    /// Text, 255 octets at most.
    pub text: &'a str,
    /// What becomes of it.
    pub change: Change,
}

/// Why an update was not made, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// It cannot be written.
    #[error("{0}")]
    Unwritable(String),
    /// No answer came; stable text.
    #[error("{server} {why}")]
    Silent {
        /// Server.
        server: SocketAddr,
        /// Why.
        why: String,
    },
    /// The server refuses.
    #[error("{0}")]
    Refused(Refusal),
    /// An answer came whose signature is missing or does not hold.
    #[error("{server} {why}")]
    Untrusted {
        /// Server.
        server: SocketAddr,
        /// Why.
        why: &'static str,
    },
}

/// Why a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not know the key (RFC 8945 §5.2.1).
    BadKey,
    /// It has another secret for the key.
    BadSignature,
    /// Its clock differs from ours by more than five minutes.
    BadTime,
    /// Anything else: the response code (RFC 1035 §4.1.1, RFC 2136 §2.2).
    Code(u16),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = match self {
            Self::BadKey => "NOTAUTH (BADKEY)",
            Self::BadSignature => "NOTAUTH (BADSIG)",
            Self::BadTime => "NOTAUTH (BADTIME)",
            Self::Code(1) => "FORMERR",
            Self::Code(2) => "SERVFAIL",
            Self::Code(3) => "NXDOMAIN",
            Self::Code(4) => "NOTIMP",
            Self::Code(5) => "REFUSED",
            Self::Code(6) => "YXDOMAIN",
            Self::Code(7) => "YXRRSET",
            Self::Code(8) => "NXRRSET",
            Self::Code(9) => "NOTAUTH",
            Self::Code(10) => "NOTZONE",
            Self::Code(code) => return write!(f, "RCODE{code}"),
        };
        f.write_str(code)
    }
}

/// One server that takes updates.
#[derive(Clone, Debug)]
pub struct Updater {
    /// Where it is.
    pub server: SocketAddr,
    /// How it is spoken with.
    pub protocol: Protocol,
    /// What updates are signed with.
    pub key: Option<Key>,
}

impl Updater {
    /// Has one change made. Safe to repeat: a text that is there already, or gone already, is as good.
    ///
    /// # Errors
    /// Fails when the server does not make it, or when it cannot be told.
    pub async fn send(&self, update: &Update<'_>) -> Result<(), UpdateError> {
        let mut message = update.message(random_id()?)?;
        let signed = self.key.as_ref().map(|key| key.sign(&mut message, now()));
        let exchange = Exchange { server: self.server, request: &message, signed };
        match self.protocol {
            Protocol::Tcp => exchange.over_tcp().await,
            Protocol::Udp => exchange.over_udp().await,
        }
    }
}

impl Update<'_> {
    /// The message (RFC 2136 §2), not yet signed.
    fn message(&self, id: u16) -> Result<Vec<u8>, UpdateError> {
        let name = |text: &str| {
            Name::from_ascii(text)
                .map_err(|_| UpdateError::Unwritable(format!("\"{text}\" is not a DNS name")))
        };
        let (zone, name) = (canonical(&name(self.zone)?), canonical(&name(self.name)?));
        let too_long = || UpdateError::Unwritable("the text is longer than 255 octets".to_owned());
        let text = self.text.as_bytes();
        let length = u8::try_from(text.len()).map_err(|_| too_long())?;
        let (class, ttl) = match self.change {
            Change::Add { ttl } => (IN, ttl),
            Change::Remove => (NONE, 0),
        };
        let numbers = |numbers: &[u16]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
        };
        // The operation is Update, the counts are those of zones, prerequisites, updates and additional records.
        let header = numbers(&[id, 5 << 11, 1, 0, 1, 0]);
        Ok([
            &header[..],
            &zone,
            &numbers(&[SOA, IN]),
            &name,
            &numbers(&[TXT, class]),
            &ttl.to_be_bytes(),
            &numbers(&[u16::from(length) + 1]),
            &[length],
            text,
        ]
        .concat())
    }
}

/// One update on its way.
struct Exchange<'a> {
    server: SocketAddr,
    request: &'a [u8],
    signed: Option<Signed<'a>>,
}

/// What is to be done about an answer.
enum Answer {
    /// The change is made.
    Done,
    /// It did not fit; ask over TCP.
    Truncated,
    /// It is not the one we wait for.
    Foreign,
}

impl Exchange<'_> {
    async fn over_udp(&self) -> Result<(), UpdateError> {
        let socket = self.socket().await.map_err(|error| self.silent(&error))?;
        let mut fault = self.silence("does not answer over UDP");
        let mut packet = vec![0; DATAGRAM];
        for _ in 0..SENDINGS {
            // A port that nobody listens on shows at the next call; the server may be about to start.
            if let Err(error) = socket.send(self.request).await {
                fault = self.silent(&error);
            }
            let waited = timeout(PATIENCE, async {
                loop {
                    let length = socket.recv(&mut packet).await.map_err(|e| self.silent(&e))?;
                    match self.judge(&packet[..length]) {
                        Ok(Answer::Foreign) => {}
                        // Anybody can send datagrams: the right one may yet come (RFC 8945 §5.3).
                        Err(error @ UpdateError::Untrusted { .. }) => fault = error,
                        judged => return judged,
                    }
                }
            });
            match waited.await {
                Ok(Ok(Answer::Truncated)) => return self.over_tcp().await,
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error @ UpdateError::Silent { .. })) => {
                    fault = error;
                    tokio::time::sleep(PATIENCE / 10).await;
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => {}
            }
        }
        Err(fault)
    }

    async fn over_tcp(&self) -> Result<(), UpdateError> {
        let answered = timeout(PATIENCE * SENDINGS, async {
            let mut stream = TcpStream::connect(self.server).await?;
            let length = u16::try_from(self.request.len()).map_err(io::Error::other)?;
            stream.write_all(&[&length.to_be_bytes(), self.request].concat()).await?;
            let length = stream.read_u16().await?;
            let mut answer = vec![0; length.into()];
            stream.read_exact(&mut answer).await?;
            Ok(answer)
        });
        match answered.await {
            Ok(Ok(answer)) => match self.judge(&answer)? {
                Answer::Done => Ok(()),
                Answer::Truncated | Answer::Foreign => {
                    Err(self.silence("answers something else over TCP"))
                }
            },
            Ok(Err(error)) => Err(self.silent(&error)),
            Err(_) => Err(self.silence("does not answer over TCP")),
        }
    }

    async fn socket(&self) -> io::Result<UdpSocket> {
        let from: SocketAddr = match self.server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(from).await?;
        socket.connect(self.server).await?;
        Ok(socket)
    }

    fn judge(&self, answer: &[u8]) -> Result<Answer, UpdateError> {
        // Of a response to an update with our id, whose header is whole.
        let ours = answer.len() >= 12 && answer[..2] == self.request[..2];
        if !ours || answer[2] & 0xf8 != 0xa8 {
            return Ok(Answer::Foreign);
        }
        let code = u16::from(answer[3] & 0x0f);
        let verdict = self.signed.as_ref().map(|signed| signed.verify(answer, now()));
        let untrusted = |why| UpdateError::Untrusted { server: self.server, why };
        let refusal = match verdict {
            Some(Verdict::Good(18) | Verdict::Unsigned(18)) => Refusal::BadTime,
            Some(Verdict::Unsigned(16)) => Refusal::BadSignature,
            Some(Verdict::Unsigned(17)) => Refusal::BadKey,
            Some(Verdict::Bad) => return Err(untrusted("signs its answer with another secret")),
            Some(Verdict::Late) => return Err(untrusted("signs its answer with another time")),
            Some(Verdict::Unsigned(_)) if code == 0 => {
                return Err(untrusted("does not sign its answer"));
            }
            Some(Verdict::Good(_) | Verdict::Unsigned(_)) | None if code != 0 => {
                Refusal::Code(code)
            }
            _ if answer[2] & 0x02 != 0 => return Ok(Answer::Truncated),
            _ => return Ok(Answer::Done),
        };
        Err(UpdateError::Refused(refusal))
    }

    fn silence(&self, why: &str) -> UpdateError {
        UpdateError::Silent { server: self.server, why: why.to_owned() }
    }

    fn silent(&self, error: &io::Error) -> UpdateError {
        self.silence(match error.kind() {
            io::ErrorKind::ConnectionRefused => "has nobody listening",
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                "cannot be reached from here"
            }
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                "closes the connection without an answer"
            }
            _ => "cannot be spoken with",
        })
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn random_id() -> Result<u16, UpdateError> {
    let mut id = [0; 2];
    aws_lc_rs::rand::fill(&mut id)
        .map_err(|_| UpdateError::Unwritable("this system has no randomness".to_owned()))?;
    Ok(u16::from_be_bytes(id))
}
