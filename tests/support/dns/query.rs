//! Questions of the tests themselves.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use hickory_resolver::proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::TXT;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};

use super::PATIENCE;

/// Asks a server by UDP, again by TCP when the answer was cut off; panics when it never answers.
pub fn ask(server: SocketAddr, name: &str, kind: RecordType) -> Message {
    try_ask(server, name, kind, PATIENCE)
        .unwrap_or_else(|error| panic!("{server} does not answer: {error}"))
}

/// Asks a server once, by UDP, and again by TCP when the answer was cut off.
pub fn try_ask(
    server: SocketAddr,
    name: &str,
    kind: RecordType,
    patience: Duration,
) -> io::Result<Message> {
    let mut question = Message::new(4711, MessageType::Query, OpCode::Query);
    question.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    question.metadata.recursion_desired = true;
    exchange(server, &question, patience)
}

/// The texts at a name as that server has them, sorted.
pub fn texts_at(server: SocketAddr, name: &str) -> Vec<String> {
    let mut texts: Vec<String> = ask(server, name, RecordType::TXT)
        .answers
        .iter()
        .filter_map(|record| match &record.data {
            RData::TXT(text) => Some(text.txt_data.concat()),
            _ => None,
        })
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect();
    texts.sort_unstable();
    texts
}

/// Adds a text at a name of a zone of that server, which everybody may change (RFC 2136).
pub fn publish_at(server: SocketAddr, zone: &str, name: &str, text: &str) {
    let mut update = Message::new(4712, MessageType::Query, OpCode::Update);
    update.add_query(Query::query(Name::from_ascii(zone).unwrap(), RecordType::SOA));
    let data = RData::TXT(TXT::new(vec![text.to_owned()]));
    update.add_authority(Record::from_rdata(Name::from_ascii(name).unwrap(), 2, data));
    let reply = exchange(server, &update, PATIENCE).unwrap();
    assert_eq!(reply.metadata.response_code, ResponseCode::NoError, "{reply:?}");
}

pub(super) fn exchange(
    server: SocketAddr,
    question: &Message,
    patience: Duration,
) -> io::Result<Message> {
    let question = question.to_vec().map_err(io::Error::other)?;
    let from: IpAddr =
        if server.is_ipv4() { [127, 0, 0, 1].into() } else { "::1".parse().unwrap() };
    let socket = UdpSocket::bind((from, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(patience))?;
    socket.send(&question)?;
    let mut packet = [0; 4096];
    let length = socket.recv(&mut packet)?;
    let reply = Message::from_vec(&packet[..length]).map_err(io::Error::other)?;
    if !reply.metadata.truncation {
        return Ok(reply);
    }
    let mut stream = TcpStream::connect_timeout(&server, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&u16::try_from(question.len()).unwrap().to_be_bytes())?;
    stream.write_all(&question)?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut packet = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut packet)?;
    Message::from_vec(&packet).map_err(io::Error::other)
}
