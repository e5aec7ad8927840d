//! Redirects that a CA follows (CA/Browser Forum Baseline Requirements 3.2.2.4.19, and Boulder's own rules).

use std::net::IpAddr;

use url::{Host, Url};

use super::connection::FetchAnswer;
use super::outcome::FetchError;
use crate::model::reserved;

/// The most requests in a chain, the first one included.
const MAX_REQUESTS: usize = 10;
/// The longest path that is followed, in bytes.
const LONGEST_PATH: usize = 2000;

/// Returns the target of a redirect, as it was written; `None` if the answer is no redirect.
pub(super) fn location(answer: &FetchAnswer) -> Option<String> {
    match answer.reply.status {
        301 | 302 | 303 | 307 | 308 => answer.location.clone(),
        _ => None,
    }
}

/// Returns the URL to request next, or why no CA would request it.
pub(super) fn target(
    from: &Url,
    status: u16,
    location: &str,
    asked: &[&str],
) -> Result<Url, FetchError> {
    let refuse = |to: &str, why: String| FetchError::Redirect { to: to.to_owned(), why };
    let mut to = from
        .join(location)
        .map_err(|_| refuse(location, format!("Invalid Location header in {status} redirect")))?;
    to.set_fragment(None);
    let rules = [
        disallowed_status(status),
        wrong_scheme(&to),
        wrong_port(&to),
        wrong_host(from, &to),
        too_long(&to),
        too_many(asked),
        looping(&to, asked),
    ];
    match rules.into_iter().flatten().next() {
        Some(why) => Err(refuse(to.as_str(), why)),
        None => Ok(to),
    }
}

fn disallowed_status(status: u16) -> Option<String> {
    (status == 303).then(|| format!("Received disallowed redirect status code {status}"))
}

fn wrong_scheme(to: &Url) -> Option<String> {
    (!matches!(to.scheme(), "http" | "https")).then(|| {
        format!(
            "invalid protocol scheme: only \"http\" and \"https\" are supported, not {:?}",
            to.scheme()
        )
    })
}

fn wrong_port(to: &Url) -> Option<String> {
    let port = to.port_or_known_default()?;
    (!matches!(port, 80 | 443)).then(|| format!("invalid port {port}: must be 80 or 443"))
}

fn wrong_host(from: &Url, to: &Url) -> Option<String> {
    let name = match to.host() {
        None => return Some("invalid host: host must be non-empty".to_owned()),
        Some(Host::Ipv4(address)) => return reserved_address(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => return reserved_address(IpAddr::V6(address)),
        Some(Host::Domain(name)) => name,
    };
    if name.ends_with(".well-known") {
        return Some(format!(
            "Invalid host in redirect target {name:?}. Check webserver config for missing '/' in redirect target."
        ));
    }
    // We have no list of top-level domains; a bare word is none. A rehearsal may well name `localhost`, though.
    let bare_word = !name.trim_end_matches('.').contains('.');
    (bare_word && from.host_str() != Some(name))
        .then(|| "invalid host: must end in IANA registered TLD".to_owned())
}

fn reserved_address(address: IpAddr) -> Option<String> {
    let block = reserved::block(address)?;
    Some(format!("invalid host: IP address is in a reserved address block: {block}"))
}

fn too_long(to: &Url) -> Option<String> {
    (to.path().len() > LONGEST_PATH).then(|| "invalid url: path component too long".to_owned())
}

fn too_many(asked: &[&str]) -> Option<String> {
    (asked.len() >= MAX_REQUESTS).then(|| "Too many hops".to_owned())
}

fn looping(to: &Url, asked: &[&str]) -> Option<String> {
    asked.contains(&to.as_str()).then(|| "redirect loop detected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: &str = "http://www.example.com/.well-known/acme-challenge/t";

    fn follow(status: u16, location: &str, asked: &[&str]) -> Result<String, String> {
        match target(&Url::parse(FROM).unwrap(), status, location, asked) {
            Ok(url) => Ok(url.to_string()),
            Err(FetchError::Redirect { why, .. }) => Err(why),
            Err(other) => panic!("{other}"),
        }
    }

    #[track_caller]
    fn check(location: &str, expected: Result<&str, &str>) {
        let seen = follow(302, location, &[FROM]);
        assert_eq!(seen.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn ports_80_and_443_are_followed_whatever_the_scheme() {
        check("https://www.example.com/x", Ok("https://www.example.com/x"));
        check("http://other.example.net/x#part", Ok("http://other.example.net/x"));
        check("http://www.example.com:443/x", Ok("http://www.example.com:443/x"));
        check("http://1.1.1.1/x", Ok("http://1.1.1.1/x"));
    }

    #[test]
    fn a_relative_target_stays_on_the_host() {
        check("/x?y=z", Ok("http://www.example.com/x?y=z"));
        check("u", Ok("http://www.example.com/.well-known/acme-challenge/u"));
    }

    #[test]
    fn what_boulder_refuses_is_refused_in_its_words() {
        check("http://www.example.com:8080/x", Err("invalid port 8080: must be 80 or 443"));
        check(
            "ftp://www.example.com/x",
            Err("invalid protocol scheme: only \"http\" and \"https\" are supported, not \"ftp\""),
        );
        check(
            "https://www.example.com.well-known/acme-challenge/t",
            Err(
                "Invalid host in redirect target \"www.example.com.well-known\". Check webserver config for missing '/' in redirect target.",
            ),
        );
        check(
            "http://10.0.0.1/x",
            Err("invalid host: IP address is in a reserved address block: [RFC1918]: Private-Use"),
        );
        check(
            "http://[fd00::1]/x",
            Err(
                "invalid host: IP address is in a reserved address block: [RFC4193] [RFC8190]: Unique-Local",
            ),
        );
        check("http://intranet/x", Err("invalid host: must end in IANA registered TLD"));
        check(FROM, Err("redirect loop detected"));
        check("http://[::1/x", Err("Invalid Location header in 302 redirect"));
    }

    #[test]
    fn see_other_is_not_followed() {
        assert_eq!(
            follow(303, "/x", &[FROM]),
            Err("Received disallowed redirect status code 303".to_owned())
        );
    }

    #[test]
    fn a_path_may_have_2000_bytes() {
        let longest = format!("/{}", "a".repeat(1999));
        assert!(follow(302, &longest, &[FROM]).is_ok());
        assert_eq!(
            follow(302, &format!("{longest}a"), &[FROM]),
            Err("invalid url: path component too long".to_owned())
        );
    }

    #[test]
    fn the_eleventh_request_is_one_too_many() {
        assert!(follow(302, "/x", &[FROM; 9]).is_ok());
        assert_eq!(follow(302, "/x", &[FROM; 10]), Err("Too many hops".to_owned()));
    }
}
