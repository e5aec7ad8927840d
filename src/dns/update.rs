//! Dynamic updates (RFC 2136) that add or remove one TXT record, signed if there is a key; and a question that is
//! signed in the same way, for users who may change nothing.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_resolver::proto::op::{Message, OpCode, Query, UpdateMessage as _};
use hickory_resolver::proto::rr::rdata::TXT;
use hickory_resolver::proto::rr::{DNSClass, Name, RData, Record, RecordType};
use hickory_resolver::proto::serialize::binary::BinEncodable as _;
use tokio::time::{sleep, timeout};

use super::reply::mnemonic;
use super::tsig::{Key, Signed, Verdict, canonical};
use super::wire::{self, Packet, SENDINGS, SERVER_TIMEOUT};

/// Transport of messages to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Datagrams; TCP if an answer does not fit.
    #[default]
    Udp,
    /// A connection.
    Tcp,
}

/// Change of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds the text beside all others at its name, for so many seconds in caches.
    Add {
        /// Seconds.
        ttl: u32,
    },
    /// Removes the text; all others stay.
    Remove,
}

/// Longest string in a TXT record, in octets.
const MAX_STRING_OCTETS: usize = 255;
/// Longest text that is written, in octets.
const MAX_TEXT_OCTETS: usize = 4096;

/// One change of one text.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// Absolute name of the zone.
    pub zone: &'a str,
    /// Absolute name of the record.
    pub name: &'a str,
    /// Text; a long text is written in strings of at most 255 octets.
    pub text: &'a str,
    /// Change of the text.
    pub change: Change,
}

/// Reason why an update was not made, or may not have been made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// The update cannot be written.
    #[error("{0}")]
    Unwritable(String),
    /// No answer came; stable text.
    #[error("{server} {why}")]
    Silent {
        /// Server.
        server: SocketAddr,
        /// Reason.
        why: String,
    },
    /// The server refuses.
    #[error("{0}")]
    Refused(UpdateRefusal),
    /// Another server signed the answer, and the answer was changed on its way; the change may be made.
    #[error("{server} passes updates on to another server, and changes the signed answer")]
    Forwarded {
        /// Server.
        server: SocketAddr,
    },
    /// The signature of the answer is missing or does not hold.
    #[error("{server} {why}")]
    Untrusted {
        /// Server.
        server: SocketAddr,
        /// Reason.
        why: &'static str,
    },
}

/// Reason why a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateRefusal {
    /// The server does not know the key (RFC 8945 §5.2.1).
    BadKey,
    /// The server has another secret for the key.
    BadSignature,
    /// The server's clock differs from ours by more than five minutes.
    BadTime,
    /// Any other response code (RFC 1035 §4.1.1, RFC 2136 §2.2).
    Code(u16),
    /// Any other response code in an unsigned answer to a signed update: the server may not have taken the key.
    UnsignedCode(u16),
}

impl UpdateRefusal {
    /// Response code, if it is the whole reason.
    pub fn code(self) -> Option<u16> {
        match self {
            Self::BadKey | Self::BadSignature | Self::BadTime => None,
            Self::Code(code) | Self::UnsignedCode(code) => Some(code),
        }
    }
}

impl std::fmt::Display for UpdateRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = match self {
            Self::BadKey => "NOTAUTH (BADKEY)",
            Self::BadSignature => "NOTAUTH (BADSIG)",
            Self::BadTime => "NOTAUTH (BADTIME)",
            Self::Code(code) | Self::UnsignedCode(code) => {
                return f.write_str(&mnemonic((*code).into()).replace(' ', ""));
            }
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
    /// Time-out for the answer to each sending; over TCP the time-outs of all sendings are waited for at once.
    patience: Duration,
    /// Number of sendings of an update over UDP.
    sendings: u32,
}

impl Updater {
    /// Makes an updater for that server, which signs with the key, if given.
    pub fn new(server: SocketAddr, protocol: Protocol, key: Option<Key>) -> Self {
        Self { server, protocol, key, patience: SERVER_TIMEOUT, sendings: SENDINGS }
    }

    /// Limits the updater to one sending, for a server that is not expected to answer.
    #[must_use]
    pub fn hasty(self) -> Self {
        Self { sendings: 1, ..self }
    }

    /// Address of the server.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Makes one change. Safe to repeat: a text that is already there, or already gone, counts as success.
    ///
    /// # Errors
    /// Fails if the server does not make the change, or if the outcome is unknown.
    pub async fn send(&self, update: &Update<'_>) -> Result<(), UpdateError> {
        self.exchange(update.message()?, UPDATE).await.map(drop)
    }

    /// Asks for the SOA record of a zone, signed by the same key: shows whether the server takes the signature; returns
    /// whether it is an authority for the zone.
    ///
    /// # Errors
    /// Fails if the server refuses, or if the outcome is unknown.
    pub async fn is_authority(&self, zone: &str) -> Result<bool, UpdateError> {
        let mut message = Message::query();
        message.add_query(Query::query(absolute(zone)?, RecordType::SOA));
        let message = canonical(|encoder| message.emit(encoder));
        let message = message.ok_or_else(|| UpdateError::Unwritable(format!("\"{zone}\"")))?;
        self.exchange(message, QUESTION).await
    }

    /// Sends a message, signed; returns whether the answer is an authority's, and holds records.
    async fn exchange(&self, mut message: Vec<u8>, answers: u8) -> Result<bool, UpdateError> {
        let signed = self.key.as_ref().map(|key| key.sign(&mut message, now()));
        let exchange = Exchange { updater: self, request: &message, answers, signed };
        match self.protocol {
            Protocol::Tcp => exchange.over_tcp().await,
            Protocol::Udp => exchange.over_udp().await,
        }
    }
}

/// The first bits of the answer to an update: QR, and the operation (RFC 1035 §4.1.1).
const UPDATE: u8 = 0xa8;
/// The first bits of the answer to a question.
const QUESTION: u8 = 0x80;
/// AA: the answer is an authority's.
const AUTHORITY: u8 = 0x04;
/// NOTIMP: the server knows no such operation (RFC 1035 §4.1.1).
pub const NOTIMP: u16 = 4;

fn absolute(text: &str) -> Result<Name, UpdateError> {
    let unwritable = |_| UpdateError::Unwritable(format!("\"{text}\" is not a DNS name"));
    Name::from_ascii(text).map_err(unwritable)
}

impl Update<'_> {
    /// The message (RFC 2136 §2), not yet signed.
    fn message(&self) -> Result<Vec<u8>, UpdateError> {
        let (zone, name) = (absolute(self.zone)?, absolute(self.name)?);
        let too_long =
            || UpdateError::Unwritable(format!("the text is longer than {MAX_TEXT_OCTETS} octets"));
        if self.text.len() > MAX_TEXT_OCTETS {
            return Err(too_long());
        }
        // Of an empty text there is one empty string (RFC 1035 §3.3.14).
        let (first, others) = self.text.as_bytes().split_at(self.text.len().min(MAX_STRING_OCTETS));
        let strings = [first].into_iter().chain(others.chunks(MAX_STRING_OCTETS)).collect();
        let (class, ttl) = match self.change {
            Change::Add { ttl } => (DNSClass::IN, ttl),
            Change::Remove => (DNSClass::NONE, 0),
        };
        let mut record = Record::from_rdata(name, ttl, RData::TXT(TXT::from_bytes(strings)));
        record.dns_class = class;
        let mut message = Message::query();
        message.metadata.op_code = OpCode::Update;
        message.add_zone(Query::query(zone, RecordType::SOA));
        message.add_update(record);
        canonical(|encoder| message.emit(encoder)).ok_or_else(too_long)
    }
}

/// One message on its way.
struct Exchange<'a> {
    updater: &'a Updater,
    request: &'a [u8],
    /// First bits of an answer to the request.
    answers: u8,
    signed: Option<Signed<'a>>,
}

/// Contents of an answer.
enum Judgement {
    /// The change is made, or the question answered; whether by an authority, with records in the answer.
    Done(bool),
    /// The answer did not fit; the request is to be repeated over TCP.
    Truncated,
    Refused(UpdateRefusal),
}

impl Exchange<'_> {
    async fn over_udp(&self) -> Result<bool, UpdateError> {
        let (server, patience) = (self.updater.server, self.updater.patience);
        let socket = wire::udp_socket(server).await.map_err(|error| self.silent(&error))?;
        let mut fault = self.silence("does not answer over UDP");
        for _ in 0..self.updater.sendings {
            let judge = |packet: &[u8]| {
                self.judge(packet).unwrap_or_else(|untrusted| {
                    fault = untrusted;
                    Packet::Foreign
                })
            };
            match wire::udp(&socket, self.request, patience, judge).await {
                Ok(Judgement::Done(is_authority)) => return Ok(is_authority),
                Ok(Judgement::Truncated) => return self.over_tcp().await,
                Ok(Judgement::Refused(refusal)) => return Err(UpdateError::Refused(refusal)),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                // A port without a listener shows at once; the server may be about to start.
                Err(error) => {
                    fault = self.silent(&error);
                    sleep(patience / 10).await;
                }
            }
        }
        Err(fault)
    }

    async fn over_tcp(&self) -> Result<bool, UpdateError> {
        let patience = self.updater.patience * self.updater.sendings;
        let answered = timeout(patience, wire::tcp(self.updater.server, self.request)).await;
        let Ok(answered) = answered else {
            return Err(self.silence("does not answer over TCP"));
        };
        match self.judge(&answered.map_err(|error| self.silent(&error))?)? {
            Packet::Answer(Judgement::Done(is_authority)) => Ok(is_authority),
            // No other host can answer on a connection.
            Packet::Answer(Judgement::Refused(refusal))
            | Packet::Doubtful(Judgement::Refused(refusal)) => Err(UpdateError::Refused(refusal)),
            _ => Err(self.silence("answers something else over TCP")),
        }
    }

    /// Reads an answer. A refusal without a signature, although there is a key, may be from any host; but a server that
    /// does not know our key cannot sign (RFC 8945 §5.2). Fails if an answer cannot be trusted.
    fn judge(&self, answer: &[u8]) -> Result<Packet<Judgement>, UpdateError> {
        // A response with our id and a whole header.
        let ours = answer.len() >= 12 && answer[..2] == self.request[..2];
        if !ours || answer[2] & 0xf8 != self.answers {
            return Ok(Packet::Foreign);
        }
        let code = u16::from(answer[3] & 0x0f);
        let verdict = self.signed.as_ref().map(|signed| signed.verify(answer, now()));
        let untrusted = |why| UpdateError::Untrusted { server: self.updater.server, why };
        let is_authority = answer[2] & AUTHORITY != 0 && answer[6..8] != [0, 0];
        let refusal = match verdict {
            // A server that knows no updates has read no signature.
            Some(Verdict::Bad | Verdict::Echoed | Verdict::Forwarded | Verdict::Late)
                if code == NOTIMP =>
            {
                UpdateRefusal::UnsignedCode(code)
            }
            Some(Verdict::Good(18) | Verdict::Unsigned(18)) => UpdateRefusal::BadTime,
            Some(Verdict::Unsigned(16)) => UpdateRefusal::BadSignature,
            Some(Verdict::Unsigned(17)) => UpdateRefusal::BadKey,
            Some(Verdict::Forwarded) => {
                return Err(UpdateError::Forwarded { server: self.updater.server });
            }
            Some(Verdict::Bad) => return Err(untrusted("signs its answer with another secret")),
            Some(Verdict::Late) => return Err(untrusted("signs its answer with another time")),
            Some(Verdict::Unsigned(_)) if code == 0 => {
                return Err(untrusted("does not sign its answer"));
            }
            // A resolver answers a question all the same, and is no authority.
            Some(Verdict::Echoed) if code == 0 && self.answers == QUESTION => {
                return Ok(Packet::Doubtful(Judgement::Done(is_authority)));
            }
            Some(Verdict::Echoed) if code == 0 => {
                return Err(untrusted("sends our own signature back, and none of its own"));
            }
            Some(Verdict::Unsigned(_) | Verdict::Echoed) => UpdateRefusal::UnsignedCode(code),
            _ if code != 0 => UpdateRefusal::Code(code),
            _ if answer[2] & 0x02 != 0 => return Ok(Packet::Answer(Judgement::Truncated)),
            _ => return Ok(Packet::Answer(Judgement::Done(is_authority))),
        };
        let refused = Judgement::Refused(refusal);
        Ok(match verdict {
            Some(Verdict::Good(_)) | None => Packet::Answer(refused),
            Some(_) => Packet::Doubtful(refused),
        })
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::UdpSocket;

    use super::*;
    use crate::dns::tsig;

    const CHANGE: Update<'_> = Update {
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
        let message = CHANGE.message().unwrap();
        let name = b"\x0f_acme-challenge\x07example\x03com\0";
        let expected = [
            &b"\x28\0\0\x01\0\0\0\x01\0\0\x07example\x03com\0\0\x06\0\x01"[..],
            name,
            b"\0\x10\0\x01\0\0\0\x3c\0\x05\x04text",
        ];
        assert_eq!(message[2..], expected.concat());
        let removal = Update { change: Change::Remove, ..CHANGE }.message().unwrap();
        assert!(removal.ends_with(b"\0\x10\0\xfe\0\0\0\0\0\x05\x04text"));
    }

    #[test]
    fn a_long_text_is_written_in_several_strings() {
        let long = "x".repeat(256);
        let message = Update { text: &long, ..CHANGE }.message().unwrap();
        let data = [&b"\x01\x02\xff"[..], "x".repeat(255).as_bytes(), b"\x01x"].concat();
        assert!(message.ends_with(&data));
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let long = "x".repeat(4097);
        for (update, why) in [
            (Update { text: &long, ..CHANGE }, "the text is longer than 4096 octets"),
            (Update { zone: "a..b", ..CHANGE }, "\"a..b\" is not a DNS name"),
        ] {
            assert_eq!(update.message(), Err(UpdateError::Unwritable(why.to_owned())));
        }
    }

    /// A server whose answer to a datagram is that of a function; without one it is silent.
    async fn serve(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut packet = vec![0; 4096];
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
        let sent = updater(server, Protocol::Udp, key).send(&CHANGE).await;
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
            let expected = UpdateRefusal::Code(code).to_string();
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
    async fn a_question_shows_whether_a_server_is_an_authority_and_takes_the_key() {
        let answer = |request: &[u8], bits: u8, code: u8, count: u8| {
            vec![request[0], request[1], bits, code, 0, 0, 0, count, 0, 0, 0, 0]
        };
        let authority = serve(move |request| vec![answer(request, 0x84, 0, 1)]).await;
        let recursive = serve(move |request| vec![answer(request, 0x80, 0, 1)]).await;
        let empty = serve(move |request| vec![answer(request, 0x84, 0, 0)]).await;
        for (server, expected) in [(authority, true), (recursive, false), (empty, false)] {
            let asked = updater(server, Protocol::Udp, None).is_authority("example.com.").await;
            assert_eq!(asked, Ok(expected));
        }
        let foreign = serve(|request| {
            vec![header(request, 5), vec![request[0], request[1], 0x80, 5, 0, 0, 0, 0, 0, 0, 0, 0]]
        })
        .await;
        let asked = updater(foreign, Protocol::Udp, Some(key())).is_authority("example.com.").await;
        assert_eq!(asked, Err(UpdateError::Refused(UpdateRefusal::UnsignedCode(5))));
    }

    /// An answer with that code that has the whole request in it, its signature included.
    fn echoed(request: &[u8], code: u8) -> Vec<u8> {
        let mut answer = request.to_vec();
        answer[2] |= 0x80;
        answer[3] = code;
        answer
    }

    #[tokio::test]
    async fn a_server_that_knows_no_updates_is_told_by_its_code_whatever_it_signs() {
        check(|request| vec![echoed(request, 4)], Some(key()), "NOTIMP").await;
        check(|request| vec![header(request, 4)], Some(key()), "NOTIMP").await;
        let forged = |request: &[u8]| {
            let stranger = Key::new("key.", tsig::Algorithm::Md5, "b3RoZXI=").unwrap();
            vec![tsig::tests::signed_answer(&stranger, request, header(request, 4), now())]
        };
        check(forged, Some(key()), "NOTIMP").await;
        let refused = |request: &[u8]| {
            let stranger = Key::new("key.", tsig::Algorithm::Md5, "b3RoZXI=").unwrap();
            vec![tsig::tests::signed_answer(&stranger, request, header(request, 5), now())]
        };
        check(refused, Some(key()), "SERVER signs its answer with another secret").await;
        // dnsmasq passes an update on like a question, and says in the answer that it looks up further.
        let forwarded = |request: &[u8]| {
            let mut answer = tsig::tests::signed_answer(&key(), request, header(request, 0), now());
            answer[3] |= 0x80;
            vec![answer]
        };
        let passed_on = "SERVER passes updates on to another server, and changes the signed answer";
        check(forwarded, Some(key()), passed_on).await;
        check(|request| vec![echoed(request, 5)], Some(key()), "REFUSED").await;
        let consent = "SERVER sends our own signature back, and none of its own";
        check(|request| vec![echoed(request, 0)], Some(key()), consent).await;
        let resolver = serve(|request| vec![echoed(request, 0)]).await;
        let asked =
            updater(resolver, Protocol::Udp, Some(key())).is_authority("example.com.").await;
        assert_eq!(asked, Ok(false));
    }

    #[tokio::test]
    async fn a_refusal_tells_whether_it_is_signed() {
        let server = serve(|request| vec![header(request, 5)]).await;
        for (key, expected) in
            [(Some(key()), UpdateRefusal::UnsignedCode(5)), (None, UpdateRefusal::Code(5))]
        {
            let sent = updater(server, Protocol::Udp, key).send(&CHANGE).await;
            assert_eq!(sent, Err(UpdateError::Refused(expected)));
        }
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
            let sent = updater(server, protocol, None).send(&CHANGE).await;
            assert_eq!(sent.unwrap_err().to_string(), format!("{server} {why}"));
        }
    }
}
