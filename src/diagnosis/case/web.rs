//! Observations of a web server beyond the answer itself: how the server identifies itself, and its replies for other paths.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum number of letters of a body that are kept.
const MAX_BODY_LETTERS: usize = 200;
/// Maximum number of letters of a header that are kept.
const MAX_HEADER_LETTERS: usize = 120;

/// Token that does not exist: a server's reply for it is the reply for any unknown token.
pub const UNKNOWN_TOKEN: &str = "kubectl-acme-diagnose";

/// Headers that identify a server or a CDN, in lower case.
const IDENTIFYING_HEADERS: [&str; 27] = [
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

/// Marks of pages, in lower case, each with its meaning.
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

/// Meaning of a mark in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PageMark {
    /// The page checks whether the client is a person.
    Robots,
    /// A firewall says that it blocks the request.
    Blocked,
    /// A router's own page.
    Router,
}

/// Replies of one address for some paths of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebProbe {
    /// Reply for an unknown token, below the path of challenges.
    pub challenge: WebReply,
    /// Reply for a path beside the path of challenges, below `/.well-known/`.
    pub beside: WebReply,
    /// Reply for the first page.
    pub root: WebReply,
    /// Reply for the first path behind a header of the PROXY protocol, if the server takes no request without one.
    #[serde(default)]
    pub proxied: Option<WebReply>,
    /// Replies for the path of the answer itself, asked for a few more times: machines behind one address may take turns.
    #[serde(default)]
    pub again: Vec<WebReply>,
}

/// Reply for one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WebReply {
    /// HTTP response.
    Reply(PathReply),
    /// A frame of HTTP/2 (RFC 9113 §3.4): the first bytes, in hexadecimal digits.
    Http2(String),
    /// No HTTP at all.
    NotHttp,
    /// The connection was accepted, and ended without a byte.
    Ended,
    /// The connection was accepted, and nothing came.
    Silent,
    /// No connection.
    NotConnected,
}

/// HTTP response, as far as it identifies the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathReply {
    /// Status.
    pub status: u16,
    /// Headers that identify a server or a CDN, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The beginning of the body.
    pub start: String,
    /// Marks in the page: each text, and its meaning.
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
            let is_telling = IDENTIFYING_HEADERS.contains(&name.as_str());
            is_telling.then(|| (name, value.trim().chars().take(MAX_HEADER_LETTERS).collect()))
        });
        let page = body.to_ascii_lowercase();
        let marks = MARKS.iter().filter(|(mark, _)| page.contains(mark));
        Self::Reply(PathReply {
            status,
            headers: headers.collect(),
            start: body.chars().take(MAX_BODY_LETTERS).collect(),
            marks: marks.map(|(mark, what)| ((*mark).to_owned(), *what)).collect(),
        })
    }

    /// Returns the HTTP response, if there is one.
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
            Self::Silent => f.write_str("the connection was accepted, and no answer came"),
            Self::NotConnected => f.write_str("no connection"),
        }
    }
}

impl PathReply {
    /// Returns the CDN that an answer comes from, by the answer's headers; `None` if the headers name none.
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

    /// Returns the value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Folder from which a web server of this machine has to show answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebrootCase {
    /// The document root.
    pub folder: String,
    /// Whether the folder has the file of the answer, with the answer as its content.
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
