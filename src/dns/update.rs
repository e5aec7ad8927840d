//! Dynamic updates (RFC 2136): one TXT record more, or one less, signed where there is a key.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_resolver::proto::rr::Name;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout, timeout_at};

use super::tsig::{Key, Signed, Verdict, canonical};

/// How often an update is sent over UDP before the server counts as silent.
const SENDINGS: u32 = 3;
/// How long each of them is waited for; over TCP all of it is waited for at once.
const SERVER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long after a refusal that is not signed a signed answer is waited for: anybody can send datagrams (RFC 8945 §5.3).
const GRACE: Duration = Duration::from_millis(300);
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

/// Longest string in a TXT record, in octets.
const STRING: usize = 255;
/// Longest text that is written, in octets.
const LONGEST: usize = 4096;

/// One change of one text.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// Absolute name of the zone.
    pub zone: &'a str,
    /// Absolute name of the record.
    pub name: &'a str,
    /// Text; a long one is written in strings of at most 255 octets.
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
    server: SocketAddr,
    protocol: Protocol,
    key: Option<Key>,
    patience: Duration,
    /// How often an update is sent over UDP.
    sendings: u32,
}

impl Updater {
    /// Speaks with that server, and signs with the key.
    pub fn new(server: SocketAddr, protocol: Protocol, key: Option<Key>) -> Self {
        Self { server, protocol, key, patience: SERVER_TIMEOUT, sendings: SENDINGS }
    }

    /// The same for a server that is not expected to answer: it has one chance.
    #[must_use]
    pub fn hasty(self) -> Self {
        Self { sendings: 1, ..self }
    }

    /// Where it is.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Has one change made. Safe to repeat: a text that is there already, or gone already, is as good.
    ///
    /// # Errors
    /// Fails when the server does not make it, or when it cannot be told.
    pub async fn send(&self, update: &Update<'_>) -> Result<(), UpdateError> {
        let mut message = update.message(random_id()?)?;
        let signed = self.key.as_ref().map(|key| key.sign(&mut message, now()));
        let exchange = Exchange { updater: self, request: &message, signed };
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
        let data = strings(self.text.as_bytes());
        let length =
            u16::try_from(data.len()).ok().filter(|_| self.text.len() <= LONGEST).ok_or_else(
                || UpdateError::Unwritable(format!("the text is longer than {LONGEST} octets")),
            )?;
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
            &numbers(&[length]),
            &data,
        ]
        .concat())
    }
}

/// The data of a TXT record (RFC 1035 §3.3.14): strings, each behind its length; of an empty text, an empty string.
fn strings(text: &[u8]) -> Vec<u8> {
    if text.is_empty() {
        return vec![0];
    }
    let string = |part: &[u8]| [&[u8::try_from(part.len()).unwrap_or(u8::MAX)], part].concat();
    text.chunks(STRING).flat_map(string).collect()
}

/// One update on its way.
struct Exchange<'a> {
    updater: &'a Updater,
    request: &'a [u8],
    signed: Option<Signed<'a>>,
}

/// What is to be done about an answer.
enum Answer {
    /// The change is made.
    Done,
    /// It did not fit; ask over TCP.
    Truncated,
    /// It refuses without a signature, although there is a key; a server that does not know ours cannot sign (RFC 8945 §5.2).
    Unsigned(Refusal),
    /// It is not the one we wait for.
    Foreign,
}

impl Exchange<'_> {
    async fn over_udp(&self) -> Result<(), UpdateError> {
        let socket = self.socket().await.map_err(|error| self.silent(&error))?;
        let mut fault = self.silence("does not answer over UDP");
        for _ in 0..self.updater.sendings {
            // A port that nobody listens on shows at the next call; the server may be about to start.
            if let Err(error) = socket.send(self.request).await {
                fault = self.silent(&error);
            }
            match self.listen(&socket, &mut fault).await {
                Ok(Some(Answer::Truncated)) => return self.over_tcp().await,
                Ok(Some(Answer::Unsigned(refusal))) => return Err(UpdateError::Refused(refusal)),
                Ok(Some(_)) => return Ok(()),
                Err(error @ UpdateError::Silent { .. }) => {
                    fault = error;
                    tokio::time::sleep(self.updater.patience / 10).await;
                }
                Err(error) => return Err(error),
                Ok(None) => {}
            }
        }
        Err(fault)
    }

    /// Waits for the answer to a datagram: none when it does not come. The first refusal without a signature counts when no
    /// better answer comes soon; of an answer that cannot be trusted `fault` tells.
    async fn listen(
        &self,
        socket: &UdpSocket,
        fault: &mut UpdateError,
    ) -> Result<Option<Answer>, UpdateError> {
        let mut packet = vec![0; DATAGRAM];
        let mut until = Instant::now() + self.updater.patience;
        let mut refused = None;
        while let Ok(received) = timeout_at(until, socket.recv(&mut packet)).await {
            let length = received.map_err(|error| self.silent(&error))?;
            match self.judge(&packet[..length]) {
                Ok(answer @ Answer::Unsigned(_)) if refused.is_none() => {
                    refused = Some(answer);
                    until = until.min(Instant::now() + GRACE);
                }
                Ok(Answer::Foreign | Answer::Unsigned(_)) => {}
                Err(error @ UpdateError::Untrusted { .. }) => *fault = error,
                judged => return judged.map(Some),
            }
        }
        Ok(refused)
    }

    async fn over_tcp(&self) -> Result<(), UpdateError> {
        let answered = timeout(self.updater.patience * self.updater.sendings, async {
            let mut stream = TcpStream::connect(self.updater.server).await?;
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
                // Nobody else speaks on a connection.
                Answer::Unsigned(refusal) => Err(UpdateError::Refused(refusal)),
                Answer::Truncated | Answer::Foreign => {
                    Err(self.silence("answers something else over TCP"))
                }
            },
            Ok(Err(error)) => Err(self.silent(&error)),
            Err(_) => Err(self.silence("does not answer over TCP")),
        }
    }

    async fn socket(&self) -> io::Result<UdpSocket> {
        let from: SocketAddr = match self.updater.server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(from).await?;
        socket.connect(self.updater.server).await?;
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
        let untrusted = |why| UpdateError::Untrusted { server: self.updater.server, why };
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
        match verdict {
            Some(Verdict::Unsigned(_)) => Ok(Answer::Unsigned(refusal)),
            _ => Err(UpdateError::Refused(refusal)),
        }
    }

    fn silence(&self, why: &str) -> UpdateError {
        UpdateError::Silent { server: self.updater.server, why: why.to_owned() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::tsig;

    const UPDATE: Update<'_> = Update {
        zone: "example.com.",
        name: "_acme-challenge.Example.com.",
        text: "text",
        change: Change::Add { ttl: 60 },
    };

    fn updater(server: SocketAddr, protocol: Protocol, key: Option<Key>) -> Updater {
        Updater { patience: Duration::from_millis(100), ..Updater::new(server, protocol, key) }
    }

    #[test]
    fn an_update_names_its_zone_and_one_record() {
        let message = UPDATE.message(0x0102).unwrap();
        let name = b"\x0f_acme-challenge\x07example\x03com\0";
        let expected = [
            &b"\x01\x02\x28\0\0\x01\0\0\0\x01\0\0\x07example\x03com\0\0\x06\0\x01"[..],
            name,
            b"\0\x10\0\x01\0\0\0\x3c\0\x05\x04text",
        ];
        assert_eq!(message, expected.concat());
        let removal = Update { change: Change::Remove, ..UPDATE }.message(0x0102).unwrap();
        assert!(removal.ends_with(b"\0\x10\0\xfe\0\0\0\0\0\x05\x04text"));
    }

    #[test]
    fn a_long_text_is_written_in_several_strings() {
        let long = "x".repeat(256);
        let message = Update { text: &long, ..UPDATE }.message(1).unwrap();
        let data = [&b"\x01\x02\xff"[..], "x".repeat(255).as_bytes(), b"\x01x"].concat();
        assert!(message.ends_with(&data));
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let long = "x".repeat(4097);
        for (update, why) in [
            (Update { text: &long, ..UPDATE }, "the text is longer than 4096 octets"),
            (Update { zone: "a..b", ..UPDATE }, "\"a..b\" is not a DNS name"),
        ] {
            assert_eq!(update.message(1), Err(UpdateError::Unwritable(why.to_owned())));
        }
    }

    /// A server whose answer to a datagram is that of a function; without one it is silent.
    async fn serve(answer: fn(&[u8]) -> Vec<Vec<u8>>) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut packet = vec![0; DATAGRAM];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                for answer in answer(&packet[..length]) {
                    socket.send_to(&answer, from).await.unwrap();
                }
            }
        });
        address
    }

    /// The header of an answer with a code.
    fn header(request: &[u8], code: u8) -> Vec<u8> {
        vec![request[0], request[1], 0xa8, code, 0, 0, 0, 0, 0, 0, 0, 0]
    }

    async fn check(answer: fn(&[u8]) -> Vec<Vec<u8>>, key: Option<Key>, expected: &str) {
        let server = serve(answer).await;
        let sent = updater(server, Protocol::Udp, key).send(&UPDATE).await;
        let seen = sent.map_or_else(|error| error.to_string(), |()| "done".to_owned());
        assert_eq!(seen.replace(&server.to_string(), "SERVER"), expected);
    }

    fn key() -> Key {
        Key::new("key.", tsig::Algorithm::Md5, "c2VjcmV0").unwrap()
    }

    #[tokio::test]
    async fn only_the_answer_to_the_update_counts() {
        let answers = |request: &[u8]| {
            let foreign = [request[0] ^ 1, request[1], 0xa8, 5, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
            let query = [request[0], request[1], 0x80, 5, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
            vec![vec![0; 3], foreign, query, request.to_vec(), header(request, 0)]
        };
        check(answers, None, "done").await;
    }

    #[tokio::test]
    async fn a_refusal_has_the_name_of_its_code() {
        for code in 1..16 {
            let expected = Refusal::Code(code).to_string();
            assert_ne!(expected, "", "{code}");
        }
        check(|request| vec![header(request, 5)], None, "REFUSED").await;
        check(|request| vec![header(request, 9)], Some(key()), "NOTAUTH").await;
        check(|request| vec![header(request, 11)], None, "RCODE11").await;
    }

    #[tokio::test]
    async fn a_refusal_that_is_not_signed_does_not_hide_a_signed_answer() {
        let answers = |request: &[u8]| {
            let consent = tsig::tests::signed_answer(&key(), request, header(request, 0), now());
            vec![header(request, 5), header(request, 9), consent]
        };
        check(answers, Some(key()), "done").await;
        let refusals = |request: &[u8]| {
            let refusal = tsig::tests::signed_answer(&key(), request, header(request, 10), now());
            vec![header(request, 5), refusal]
        };
        check(refusals, Some(key()), "NOTZONE").await;
        let nobody_signs = |request: &[u8]| vec![header(request, 5), header(request, 9)];
        check(nobody_signs, Some(key()), "REFUSED").await;
    }

    #[tokio::test]
    async fn consent_that_is_not_signed_does_not_count() {
        check(|request| vec![header(request, 0)], Some(key()), "SERVER does not sign its answer")
            .await;
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_named() {
        check(|_| Vec::new(), None, "SERVER does not answer over UDP").await;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (gone, silent) = (socket.local_addr().unwrap(), listener.local_addr().unwrap());
        drop(socket);
        for (server, protocol, why) in [
            (gone, Protocol::Udp, "has nobody listening"),
            (silent, Protocol::Tcp, "does not answer over TCP"),
        ] {
            let sent = updater(server, protocol, None).send(&UPDATE).await;
            assert_eq!(sent.unwrap_err().to_string(), format!("{server} {why}"));
        }
    }
}
