//! Beginning of a connection: plain text, TLS, or a header of the PROXY protocol, versions 1 and 2, before either.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, join};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// First bytes of a header of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// First bytes of a header of version 1.
const TEXT: &[u8] = b"PROXY ";
/// Longest header of version 1 in bytes, with its line end.
const MAX_TEXT_BYTES: usize = 107;
/// Length of a header of version 2 up to its addresses; the last two bytes give the length of the addresses.
const FIXED_BYTES: usize = 16;
/// Record type and major version of a TLS handshake (RFC 8446 §5.1).
const TLS_RECORD: &[u8] = &[22, 3];
/// Bytes read at once.
const CHUNK_BYTES: usize = 1024;

/// Version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// A line of text.
    One,
    /// Binary.
    Two,
}

/// Statement of a proxy about the connection that it passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxied {
    /// Version of the header.
    pub version: ProxyVersion,
    /// Client that connected to the proxy; `None` if the proxy does not name the client, as for its own health checks.
    pub source: Option<SocketAddr>,
}

/// Protocol that follows the header, if there is a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Anything that is not TLS.
    Plain,
    /// The beginning of a TLS handshake.
    Tls,
    /// A header of the PROXY protocol that cannot be read.
    Garbled,
}

/// Beginning of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Statement of a proxy before everything else, if there is one.
    pub proxied: Option<Proxied>,
    /// Protocol that follows.
    pub speech: Protocol,
}

/// PROXY header at the beginning of received bytes.
#[derive(Debug, PartialEq, Eq)]
enum ProxyHeader {
    /// The bytes do not begin with a header.
    Absent,
    /// The end of the header is not there yet.
    Incomplete,
    /// Length of the header in bytes, and its content.
    Complete(usize, Proxied),
    /// The header cannot be read.
    Garbled,
}

/// Reads the beginning of a connection, and returns it with the stream of what follows the header; `None` if the
/// connection ends, or `longest` is over, before the beginning is clear.
pub async fn read(
    stream: TcpStream,
    longest: Duration,
) -> Option<(Opening, impl AsyncRead + AsyncWrite + Unpin + Send + 'static)> {
    let (mut reader, writer) = stream.into_split();
    let mut bytes = Vec::new();
    let opening = timeout(longest, begin(&mut reader, &mut bytes)).await.ok()??;
    Some((opening, join(std::io::Cursor::new(bytes).chain(reader), writer)))
}

/// Reads as many bytes as the decision needs; the bytes left in `bytes` follow the header.
async fn begin(reader: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> Option<Opening> {
    let proxied = loop {
        match header(bytes) {
            ProxyHeader::Absent => break None,
            ProxyHeader::Garbled => {
                return Some(Opening { proxied: None, speech: Protocol::Garbled });
            }
            ProxyHeader::Complete(length, proxied) => {
                bytes.drain(..length);
                break Some(proxied);
            }
            ProxyHeader::Incomplete => more(reader, bytes).await?,
        }
    };
    while bytes.len() < TLS_RECORD.len() && TLS_RECORD.starts_with(bytes) {
        more(reader, bytes).await?;
    }
    let speech = if bytes.starts_with(TLS_RECORD) { Protocol::Tls } else { Protocol::Plain };
    Some(Opening { proxied, speech })
}

/// Reads the next bytes; `None` if no more come.
async fn more(reader: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; CHUNK_BYTES];
    let count = reader.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
    bytes.extend_from_slice(&chunk[..count]);
    Some(())
}

fn header(bytes: &[u8]) -> ProxyHeader {
    let begins = |with: &[u8]| {
        let shorter = with.len().min(bytes.len());
        with[..shorter] == bytes[..shorter]
    };
    if begins(SIGNATURE) {
        binary(bytes)
    } else if begins(TEXT) {
        text(bytes)
    } else {
        ProxyHeader::Absent
    }
}

/// Parses a header of version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 56324 80`, or `PROXY UNKNOWN` and anything after it.
fn text(bytes: &[u8]) -> ProxyHeader {
    let start = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
    let Some(end) = start.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < MAX_TEXT_BYTES {
            ProxyHeader::Incomplete
        } else {
            ProxyHeader::Garbled
        };
    };
    let Ok(line) = std::str::from_utf8(&bytes[..end]) else { return ProxyHeader::Garbled };
    let words: Vec<&str> = line.split(' ').collect();
    let source = match words[..] {
        [_, "UNKNOWN", ..] => None,
        [_, family @ ("TCP4" | "TCP6"), source, destination, port, to_port] => {
            let address = |text: &str| {
                let address: IpAddr = text.parse().ok()?;
                (address.is_ipv4() == (family == "TCP4")).then_some(address)
            };
            let read =
                (address(source), address(destination), port.parse(), to_port.parse::<u16>());
            let (Some(source), Some(_), Ok(port), Ok(_)) = read else {
                return ProxyHeader::Garbled;
            };
            Some(SocketAddr::new(source, port))
        }
        _ => return ProxyHeader::Garbled,
    };
    ProxyHeader::Complete(end + 2, Proxied { version: ProxyVersion::One, source })
}

/// Parses a header of version 2: signature, version and command, family, length, addresses, and a proxy's additions (TLVs).
fn binary(bytes: &[u8]) -> ProxyHeader {
    let Some((&[.., command, family, high, low], rest)) = bytes.split_first_chunk::<FIXED_BYTES>()
    else {
        return ProxyHeader::Incomplete;
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    // Version 2; LOCAL or PROXY.
    if !matches!(command, 0x20 | 0x21) {
        return ProxyHeader::Garbled;
    }
    let Some(body) = rest.get(..length) else { return ProxyHeader::Incomplete };
    let source = match (command, family >> 4) {
        (0x21, 1) => match *body {
            [a, b, c, d, _, _, _, _, high, low, _, _, ..] => {
                Some(SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), port(high, low)))
            }
            _ => return ProxyHeader::Garbled,
        },
        (0x21, 2) => match (body.first_chunk::<16>(), body.get(32..36)) {
            (Some(address), Some(&[high, low, _, _])) => {
                Some(SocketAddr::new(Ipv6Addr::from(*address).into(), port(high, low)))
            }
            _ => return ProxyHeader::Garbled,
        },
        // No family, UNIX sockets, or the proxy's own connection, whose addresses do not count.
        _ => None,
    };
    let proxied = Proxied { version: ProxyVersion::Two, source };
    ProxyHeader::Complete(FIXED_BYTES + length, proxied)
}

fn port(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";
    const HELLO: &[u8] = &[22, 3, 1, 0, 200, 1];

    /// A header of version 2 with that command, family and protocol, and addresses.
    fn two(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, body].concat()
    }

    const FOUR: &[u8] = &[192, 0, 2, 1, 192, 0, 2, 2, 220, 4, 0, 80];

    fn six() -> Vec<u8> {
        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        [&address("2001:db8::1")[..], &address("2001:db8::2"), &[220, 4, 0, 80]].concat()
    }

    /// A header that names no source.
    const UNKNOWN: &str = "unknown";

    /// Reads these bytes, whole and byte by byte, and compares what is said and what is left.
    async fn check(bytes: &[u8], expected: Option<(Option<&str>, Protocol)>, left: &[u8]) {
        for size in [1, 7, bytes.len().max(1)] {
            let (mut from, mut to) = tokio::io::duplex(size);
            let sent = bytes.to_vec();
            let sender = tokio::spawn(async move {
                use tokio::io::AsyncWriteExt as _;
                to.write_all(&sent).await.unwrap();
            });
            let mut read = Vec::new();
            let opening = begin(&mut from, &mut read).await;
            let said = opening.map(|opening| {
                let source = opening.proxied.map(|it| match it.source {
                    Some(source) => source.to_string(),
                    None => UNKNOWN.to_owned(),
                });
                (source, opening.speech)
            });
            let expected = expected.map(|(proxied, speech)| (proxied.map(str::to_owned), speech));
            assert_eq!(said, expected, "{bytes:?}");
            from.read_to_end(&mut read).await.unwrap();
            sender.await.unwrap();
            if expected.is_some_and(|(_, speech)| speech != Protocol::Garbled) {
                assert_eq!(read, left, "{bytes:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_begins_without_a_header_is_left_as_it_came() {
        check(REQUEST, Some((None, Protocol::Plain)), REQUEST).await;
        // Another method of HTTP begins the same way, and so does an empty line.
        for request in [&b"PROPFIND / HTTP/1.1\r\n\r\n"[..], b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"] {
            check(request, Some((None, Protocol::Plain)), request).await;
        }
        check(HELLO, Some((None, Protocol::Tls)), HELLO).await;
        for silence in [&b""[..], b"PROXY", b"\r\n\r\n\0", &[22]] {
            check(silence, None, b"").await;
        }
    }

    #[tokio::test]
    async fn headers_of_version_1_are_read() {
        for (line, source) in [
            ("PROXY TCP4 192.0.2.1 192.0.2.2 56324 80", Some("192.0.2.1:56324")),
            ("PROXY TCP6 2001:db8::1 2001:db8::2 1 80", Some("[2001:db8::1]:1")),
            ("PROXY UNKNOWN", None),
            ("PROXY UNKNOWN 2001:db8::1 2001:db8::2 1 80", None),
        ] {
            let header = format!("{line}\r\n");
            let whole = [header.as_bytes(), REQUEST].concat();
            check(&whole, Some((Some(source.unwrap_or(UNKNOWN)), Protocol::Plain)), REQUEST).await;
            let whole = [header.as_bytes(), HELLO].concat();
            check(&whole, Some((Some(source.unwrap_or(UNKNOWN)), Protocol::Tls)), HELLO).await;
            // The proxy hangs up after its header.
            check(header.as_bytes(), None, b"").await;
        }
        for garbled in [
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324\r\n",
            "PROXY TCP4 2001:db8::1 2001:db8::2 1 80\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 70000 80\r\n",
            "PROXY TCP5 a b c d\r\n",
            "PROXY \r\n",
            &format!("PROXY UNKNOWN {}", "x".repeat(200)),
        ] {
            check(garbled.as_bytes(), Some((None, Protocol::Garbled)), b"").await;
        }
    }

    #[tokio::test]
    async fn headers_of_version_2_are_read() {
        let tlvs = [&[4, 0, 3, 1, 2, 3][..], &[0x20, 0, 1, 7]].concat();
        for (header, source) in [
            (two(0x21, 0x11, FOUR), Some("192.0.2.1:56324")),
            (two(0x21, 0x11, &[FOUR, &tlvs].concat()), Some("192.0.2.1:56324")),
            (two(0x21, 0x21, &six()), Some("[2001:db8::1]:56324")),
            (
                two(0x21, 0x21, &[&six()[..], &vec![0; 40_000]].concat()),
                Some("[2001:db8::1]:56324"),
            ),
            // LOCAL: a health check; addresses, if there are any, count for nothing.
            (two(0x20, 0x00, &[]), None),
            (two(0x20, 0x11, FOUR), None),
            // UNIX, and no family.
            (two(0x21, 0x31, &[47; 216]), None),
            (two(0x21, 0x00, &tlvs), None),
        ] {
            let whole = [&header[..], REQUEST].concat();
            check(&whole, Some((Some(source.unwrap_or(UNKNOWN)), Protocol::Plain)), REQUEST).await;
            let whole = [&header[..], HELLO].concat();
            check(&whole, Some((Some(source.unwrap_or(UNKNOWN)), Protocol::Tls)), HELLO).await;
            for cut in [5, 12, 15, header.len() - 1] {
                check(&header[..cut], None, b"").await;
            }
        }
        for garbled in [
            two(0x11, 0x11, FOUR),
            two(0x22, 0x11, FOUR),
            two(0x21, 0x11, &FOUR[..11]),
            two(0x21, 0x21, FOUR),
        ] {
            check(&garbled, Some((None, Protocol::Garbled)), b"").await;
        }
    }
}
