//! Machine-readable causes of a stalled challenge: the finding of a check of its answer, or a refusal and who refused.
//! The words for people stand in `status.reason`; the cause is kept beside them for rules such as `model::memory`.

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use super::Problem;
use super::provider_refusal::ProviderRefusal;
use super::text::hex;

/// Reasons why a challenge makes no progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The answer is not where the CA looks for the answer.
    Seen(CheckFinding),
    /// The CA has refused a request about the challenge, for a time or for good.
    Refused(Box<Problem>),
    /// The CA has validated the answer in vain: its error, whether or not the CA goes on trying.
    Validation(Box<Problem>),
    /// The Ingress into which the answer was to be put does not exist.
    NoIngress,
    /// A guard of the cluster keeps the solver's objects out.
    Denied(Guard),
    /// A DNS provider refuses to write the record, or to delete the record.
    Provider(Box<ProviderRefusal>),
}

/// Finding of a check in place of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckFinding {
    /// Kind of finding.
    pub symptom: Symptom,
    /// Whether the server was asked over IPv6, which a CA prefers and which may lead to another server.
    #[serde(default, rename = "overIPv6", skip_serializing_if = "std::ops::Not::not")]
    pub over_ipv6: bool,
}

impl From<Symptom> for CheckFinding {
    fn from(symptom: Symptom) -> Self {
        Self { symptom, over_ipv6: false }
    }
}

/// Faults of an answer, as far as a check can find them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Symptom {
    /// A redirect that no CA follows.
    RedirectNotFollowed,
    /// The answer to the same token by another account's key.
    OtherAccount,
    /// Port 443 offers no TLS, or shows nothing that ends the handshake.
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
    /// A TLS handshake reaches this program's listener, which expects HTTP.
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
    /// The reply is not HTTP.
    NotHttp,
    /// The connection ended before the answer did.
    HungUp,
    /// The name has no address.
    NoAddress,
    /// Aliases lead in a circle (CNAME, RFC 1034 §3.6.2).
    AliasLoop,
    /// An alias leads to a name that is not there.
    DanglingAlias,
    /// The resolver of the checking host does not answer, or answers with nonsense.
    ResolverSilent,
    /// The name servers answer with an error, such as SERVFAIL.
    NameServersFail,
    /// The record is looked for at the target of an alias, and is not written there.
    AliasNotFollowed,
    /// The name's zone, or its servers, cannot be found.
    NotDelegated,
    /// A name server of the zone does not serve the zone.
    LameServer,
    /// Name servers of the zone do not answer.
    ServersSilent,
    /// The answer of a name server of the zone cannot be read.
    ServerUnreadable,
    /// The checking host has no route to name servers of the zone.
    NoRoute,
}

impl Symptom {
    /// Reports whether this program's own listener observed the symptom; other processes know of it only from notes.
    pub fn is_of_listener(self) -> bool {
        matches!(self, Self::PathChanged | Self::AnswerAltered | Self::TlsForwarded)
    }
}

/// Reasons why an Order that has not ended makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderWait {
    /// The CA did not answer, or refused for a time.
    Authority,
    /// No solver fits one of the Order's names.
    Solver,
    /// The challenge type that an annotation asks for is not available.
    ChallengeType,
    /// The CA gave the same order to another Order, which goes first.
    OtherOrder,
    /// The Order waits for its turn: as many orders are under way as challenges can follow.
    Turn,
}

/// Fact about the text in `status.reason`. Reason and fact are written one after the other, and others write reasons,
/// too: the fact is about exactly one text and no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About<T> {
    /// The beginning of the text's SHA-256, in hexadecimal digits.
    of: String,
    fact: T,
}

impl<T> About<T> {
    /// Builds a fact about a reason.
    pub fn new(reason: &str, fact: T) -> Self {
        Self { of: fingerprint(reason), fact }
    }

    /// Returns the fact, if it is about the given reason.
    pub fn of(&self, reason: &str) -> Option<&T> {
        (!reason.is_empty() && self.of == fingerprint(reason)).then_some(&self.fact)
    }
}

impl About<Cause> {
    /// Reports whether the fact is a refusal by a DNS provider, whatever the reason says now.
    pub fn is_of_provider(&self) -> bool {
        matches!(self.fact, Cause::Provider(_))
    }
}

fn fingerprint(reason: &str) -> String {
    let digest = digest::digest(&digest::SHA256, reason.as_bytes());
    hex(&digest.as_ref()[..8])
}

/// Guard of a cluster, which keeps an object out although its maker has the permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// A webhook or an admission policy, which answers with a code of its choice.
    Policy,
    /// A quota that is full.
    Quota,
    /// Limits on the resources of a Pod, by a LimitRange or by a quota that requires the Pod to name its resources.
    Limits,
    /// Pod security: limits on what a Pod may do in its namespace.
    PodSecurity,
    /// A guard about which the server's message says no more.
    Unknown,
}

impl Guard {
    /// Reports whether the guard may admit the same object later with no change by anybody: a quota fills and empties.
    pub fn passes(self) -> bool {
        self == Self::Quota
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_about_one_reason_and_is_read_back() {
        let sighting = CheckFinding { symptom: Symptom::NotFound, over_ipv6: true };
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
