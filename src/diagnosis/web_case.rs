//! What was observed of a web server beyond the answer itself: who it says that it is, and what it says to other paths.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most letters of a body that are kept.
const START: usize = 200;
/// Most letters of a header that are kept.
const LONGEST_HEADER: usize = 120;

/// A token that nobody has: what a server says to it is what it says to any.
pub const UNKNOWN_TOKEN: &str = "kubectl-acme-diagnose";

/// Headers that tell who answers, in lower case.
const TELLING: [&str; 27] = [
    "server",
    "via",
    "location",
    "content-type",
    "retry-after",
    "www-authenticate",
    "x-acme-solver",
    "cf-ray",
    "cf-mitigated",
    "cf-cache-status",
    "x-cache",
    "x-served-by",
    "x-fastly-request-id",
    "x-amz-cf-id",
    "x-amz-cf-pop",
    "x-amzn-waf-action",
    "x-akamai-request-id",
    "x-akamai-transformed",
    "x-azure-ref",
    "x-iinfo",
    "x-cdn",
    "x-sucuri-id",
    "x-sucuri-cache",
    "x-vercel-id",
    "x-nf-request-id",
    "cdn-pullzone",
    "x-ddos-protection",
];

/// Marks of pages that mean something by themselves, in lower case, and who sends them.
const MARKS: [(&str, PageMark); 14] = [
    ("slowaes.decrypt", PageMark::Robots),
    ("<title>just a moment...</title>", PageMark::Robots),
    ("_cf_chl_opt", PageMark::Robots),
    ("_incapsula_resource", PageMark::Robots),
    ("sucuri_cloudproxy_js", PageMark::Robots),
    ("awswafintegration", PageMark::Robots),
    ("/.within.website/x/cmd/anubis/", PageMark::Robots),
    ("/_sec/cp_challenge/", PageMark::Robots),
    ("acme-protocol", PageMark::Blocked),
    ("application blocked", PageMark::Blocked),
    ("application has been blocked", PageMark::Blocked),
    ("web page blocked", PageMark::Blocked),
    ("<title>fritz!box</title>", PageMark::Router),
    ("<title>routeros", PageMark::Router),
];

/// What a mark says of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PageMark {
    /// It wants to know whether a person asks.
    Robots,
    /// A firewall says that it blocks.
    Blocked,
    /// A router's own page.
    Router,
}

/// What one address answers to some paths of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebLook {
    /// A token that nobody has, where challenges are.
    pub challenge: WebReply,
    /// A path beside that of challenges, below `/.well-known/`.
    pub beside: WebReply,
    /// The first page.
    pub root: WebReply,
    /// The first path again behind a header of the PROXY protocol, where the server does not take it without.
    #[serde(default)]
    pub proxied: Option<WebReply>,
    /// The path of the answer itself, asked for some times more, one after another: machines behind one address may take turns.
    #[serde(default)]
    pub again: Vec<WebReply>,
}

/// What came for one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WebReply {
    /// An answer of HTTP.
    Reply(PathReply),
    /// A frame of HTTP/2 (RFC 9113 §3.4): the first bytes, in hexadecimal digits.
    Http2(String),
    /// No HTTP at all.
    NotHttp,
    /// The connection was taken, and ended without a byte.
    Ended,
    /// The connection was taken, and nothing came.
    Silent,
    /// No connection.
    NotConnected,
}

/// An answer of HTTP, as far as it tells who gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathReply {
    /// Status.
    pub status: u16,
    /// Headers that tell who answers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The beginning of the body.
    pub start: String,
    /// What the page has in it that means something by itself: the text, and what it says.
    pub marks: Vec<(String, PageMark)>,
}

impl WebReply {
    /// Reads the bytes of an answer.
    pub fn read(bytes: &[u8]) -> Self {
        // A frame's length is three bytes, its type the fourth: SETTINGS is 4, GOAWAY 7.
        if bytes.len() >= 9 && bytes[0] == 0 && matches!(bytes[3], 4 | 7) {
            let digits: Vec<String> = bytes.iter().take(24).map(|b| format!("{b:02x}")).collect();
            return Self::Http2(digits.concat());
        }
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().filter(|line| line.starts_with("HTTP/"));
        let status = status.and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let Some(status) = status else { return Self::NotHttp };
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let name = name.trim().to_ascii_lowercase();
            let is_telling = TELLING.contains(&name.as_str());
            is_telling.then(|| (name, value.trim().chars().take(LONGEST_HEADER).collect()))
        });
        let page = body.to_ascii_lowercase();
        let marks = MARKS.iter().filter(|(mark, _)| page.contains(mark));
        Self::Reply(PathReply {
            status,
            headers: headers.collect(),
            start: body.chars().take(START).collect(),
            marks: marks.map(|(mark, what)| ((*mark).to_owned(), *what)).collect(),
        })
    }

    /// The answer, where it is one of HTTP.
    pub fn reply(&self) -> Option<&PathReply> {
        match self {
            Self::Reply(reply) => Some(reply),
            _ => None,
        }
    }
}

impl fmt::Display for WebReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(reply) => {
                write!(f, "status {}", reply.status)?;
                for (name, value) in &reply.headers {
                    write!(f, ", {name}: {value}")?;
                }
                Ok(())
            }
            Self::Http2(bytes) => write!(f, "a frame of HTTP/2: {bytes}"),
            Self::NotHttp => f.write_str("no HTTP"),
            Self::Ended => f.write_str("the connection ended without an answer"),
            Self::Silent => f.write_str("the connection was taken, and nothing came"),
            Self::NotConnected => f.write_str("no connection"),
        }
    }
}

impl PathReply {
    /// The CDN that an answer comes from, by its headers; `None` if they name none.
    pub fn edge(&self) -> Option<&'static str> {
        let has = |name: &str| self.header(name).is_some();
        let says = |name: &str, start: &str| {
            let value = self.header(name).unwrap_or_default().to_ascii_lowercase();
            value.contains(start)
        };
        [
            ("Cloudflare", has("cf-ray") || says("server", "cloudflare")),
            ("Amazon CloudFront", has("x-amz-cf-id") || says("via", "cloudfront")),
            ("Akamai", has("x-akamai-request-id") || says("server", "akamaighost")),
            ("Fastly", has("x-fastly-request-id") || says("x-served-by", "cache-")),
            ("Azure Front Door", has("x-azure-ref")),
            ("Imperva", has("x-iinfo") || says("x-cdn", "im")),
            ("Sucuri", has("x-sucuri-id") || says("server", "sucuri")),
            ("bunny.net", has("cdn-pullzone") || says("server", "bunnycdn")),
            ("DDoS-Guard", says("server", "ddos-guard")),
            ("Vercel", has("x-vercel-id")),
            ("Netlify", has("x-nf-request-id")),
        ]
        .iter()
        .find(|(_, is)| *is)
        .map(|(name, _)| *name)
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A folder from which a web server of this machine is to show answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebrootCase {
    /// The document root.
    pub folder: String,
    /// Whether the file of the answer is in it, with the answer as its content.
    pub has_answer: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_for_who_gave_it() {
        let bytes = b"HTTP/1.1 403 Forbidden\r\nServer: cloudflare\r\nSet-Cookie: a=secret\r\nCF-Ray: 1-FRA\r\n\r\n<title>Just a moment...</title>";
        let WebReply::Reply(reply) = WebReply::read(bytes) else { panic!("it is HTTP") };
        assert_eq!((reply.status, reply.header("cf-ray")), (403, Some("1-FRA")));
        assert_eq!(reply.header("set-cookie"), None, "nothing that only its owner should see");
        assert_eq!(reply.marks[0].1, PageMark::Robots);
        assert_eq!(
            WebReply::read(bytes).to_string(),
            "status 403, server: cloudflare, cf-ray: 1-FRA"
        );
    }

    #[test]
    fn what_is_no_http_1_is_told_apart() {
        let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 128];
        assert_eq!(
            WebReply::read(&settings),
            WebReply::Http2("000006040000000000000300000080".into())
        );
        for bytes in
            [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"", b"HTTP/1.1", b"\x15\x03\x03\x00\x02\x02\x28"]
        {
            assert_eq!(WebReply::read(bytes), WebReply::NotHttp, "{bytes:?}");
        }
    }
}
