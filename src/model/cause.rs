//! Why a challenge does not go on, as a machine knows it: what a look at its answer showed, or who refused what. The words
//! for people stand in `status.reason`; this is kept beside them, for whoever judges (`model::memory`).

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use super::Problem;
use super::guard::Guard;
use super::provider_refusal::ProviderRefusal;
use super::text::hex;

/// Why a challenge does not go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Its answer is not where the CA looks.
    Seen(Sighting),
    /// The CA has refused a request about it, for a time or for good.
    Refused(Box<Problem>),
    /// The CA has looked for its answer: its error, whether or not it goes on looking.
    Validation(Box<Problem>),
    /// The Ingress is not there in which the answer was to be put.
    NoIngress,
    /// A guard of the cluster keeps the solver's objects out.
    Denied(Guard),
    /// A DNS provider does not take the record, or does not let go of it.
    Provider(Box<ProviderRefusal>),
}

/// What a look showed in place of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sighting {
    /// What it is.
    pub symptom: Symptom,
    /// Whether the server was asked over IPv6, which a CA prefers and which may lead to another server.
    #[serde(default, rename = "overIPv6", skip_serializing_if = "std::ops::Not::not")]
    pub over_ipv6: bool,
}

impl From<Symptom> for Sighting {
    fn from(symptom: Symptom) -> Self {
        Self { symptom, over_ipv6: false }
    }
}

/// What is wrong with an answer, as far as a look can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Symptom {
    /// A redirect that no CA follows.
    RedirectNotFollowed,
    /// The answer to the same token by another account's key.
    OtherAccount,
    /// Port 443 speaks no TLS, or shows nothing that ends the handshake.
    NoTls,
    /// Port 443, where a redirect leads, takes no connection or does not answer.
    TlsPortSilent,
    /// A redirect leads to a server that does not have the answer.
    RedirectedAway,
    /// Status 404.
    NotFound,
    /// Status 404 from a listener of this program, which does not have the answer.
    Declined,
    /// The request reaches this program's listener under another path.
    PathChanged,
    /// This program's listener gave the answer, and something else came back.
    AnswerAltered,
    /// A TLS handshake reaches this program's listener, which speaks HTTP.
    TlsForwarded,
    /// Status 401 or 403.
    Forbidden,
    /// A status of 500 or more.
    ServerError,
    /// Status 400.
    BadRequest,
    /// Another status of 400 to 499, such as 429.
    RequestRefused,
    /// Another status, or another body.
    WrongAnswer,
    /// Nothing listens at the port.
    ConnectionRefused,
    /// The connection was taken, and nothing came.
    NoReply,
    /// No connection came about.
    Unreachable,
    /// What came is no HTTP.
    NotHttp,
    /// The connection ended before the answer did.
    HungUp,
    /// The name has no address.
    NoAddress,
    /// Aliases lead in a circle (CNAME, RFC 1034 §3.6.2).
    AliasLoop,
    /// An alias leads to a name that is not there.
    DanglingAlias,
    /// The resolver of whoever looked does not answer, or with nonsense.
    ResolverSilent,
    /// The name servers answer with an error, such as SERVFAIL.
    NameServersFail,
    /// The record is looked for where an alias leads, and is not written there.
    AliasNotFollowed,
    /// The name's zone, or its servers, cannot be found.
    NotDelegated,
    /// A name server of the zone does not serve it.
    LameServer,
    /// Name servers of the zone do not answer.
    ServersSilent,
    /// What a name server of the zone answers cannot be read.
    ServerUnreadable,
    /// Whoever looked has no way to name servers of the zone.
    NoRoute,
}

impl Symptom {
    /// Tells whether it is what came to this program's own listener, which another process sees only by what was noted of it.
    pub fn is_of_listener(self) -> bool {
        matches!(self, Self::PathChanged | Self::AnswerAltered | Self::TlsForwarded)
    }
}

/// Why an Order stands still that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderWait {
    /// The CA did not answer, or refused for a time.
    Authority,
    /// No solver fits one of its names.
    Solver,
    /// The challenge type that was asked for by annotation is not to be had.
    ChallengeType,
    /// Another Order was given the same order by the CA, and goes first.
    OtherOrder,
    /// As many orders are under way as challenges can follow.
    Turn,
}

/// A fact about the text in `status.reason`. Reason and fact are written one after the other, and others write reasons, too: it is
/// about that very text and no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About<T> {
    /// The beginning of the text's SHA-256, in hexadecimal digits.
    of: String,
    fact: T,
}

impl<T> About<T> {
    /// That fact about a reason.
    pub fn new(reason: &str, fact: T) -> Self {
        Self { of: fingerprint(reason), fact }
    }

    /// The fact, if that is the reason it is about.
    pub fn of(&self, reason: &str) -> Option<&T> {
        (!reason.is_empty() && self.of == fingerprint(reason)).then_some(&self.fact)
    }
}

impl About<Cause> {
    /// Tells whether it is what a DNS provider refuses, whatever the reason says now.
    pub fn is_of_provider(&self) -> bool {
        matches!(self.fact, Cause::Provider(_))
    }
}

fn fingerprint(reason: &str) -> String {
    let digest = digest::digest(&digest::SHA256, reason.as_bytes());
    hex(&digest.as_ref()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_about_one_reason_and_is_read_back() {
        let sighting = Sighting { symptom: Symptom::NotFound, over_ipv6: true };
        let about = About::new("wrong status code '404'", Cause::Seen(sighting));
        let text = serde_json::to_string(&about).unwrap();
        assert_eq!(
            text,
            r#"{"of":"252d7bc963653c4e","fact":{"seen":{"symptom":"not-found","overIPv6":true}}}"#
        );
        let read: About<Cause> = serde_json::from_str(&text).unwrap();
        assert_eq!(read.of("wrong status code '404'"), Some(&Cause::Seen(sighting)));
        assert_eq!(read.of("another reason"), None);
        assert_eq!(About::new("", OrderWait::Authority).of(""), None);
    }
}
