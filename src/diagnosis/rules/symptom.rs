//! Faults of an answer, as probes, this program's own notes and a CA report them: one table from symptom to cause.

use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Grade;
use crate::model::ChallengeType;
use crate::model::cause::Symptom;

/// Returns the cause that a symptom shows, and how sure the cause is.
pub(super) fn cause_of(
    symptom: Symptom,
    kind: ChallengeType,
    in_cluster: bool,
) -> (CauseId, Grade) {
    use CauseId as Id;
    use Grade::{Certain, Likely, Possible};
    use Symptom as S;
    if kind == ChallengeType::TlsAlpn01 {
        return match symptom {
            S::NoAddress | S::DanglingAlias => (Id::Http01, Certain),
            S::NameServersFail => (Id::Dns01, Certain),
            S::NoTls | S::NotHttp => (Id::Tls01, Likely),
            S::ConnectionRefused | S::Unreachable | S::NoReply | S::HungUp | S::TlsPortSilent => {
                (Id::Tls03, Certain)
            }
            _ => (Id::Tls02, Likely),
        };
    }
    match symptom {
        S::RedirectNotFollowed => (Id::Http15, Certain),
        S::OtherAccount => (Id::Acc05, Likely),
        S::NoTls | S::TlsPortSilent => (Id::Http14, Certain),
        S::Declined => (Id::Http11, Certain),
        S::PathChanged => (Id::Http38, Certain),
        S::AnswerAltered => (Id::Http22, Certain),
        S::TlsForwarded => (Id::Http37, Certain),
        // The status alone does not say which server has answered.
        S::NotFound if in_cluster => (Id::Http10, Possible),
        // A listener of this program would have said that it does not have the answer.
        S::RedirectedAway | S::NotFound => (Id::Http03, Likely),
        S::Forbidden => (Id::Http16, Likely),
        S::ServerError if in_cluster => (Id::Ctl15, Possible),
        S::ServerError | S::BadRequest | S::RequestRefused => (Id::Http32, Likely),
        S::WrongAnswer => (Id::Http22, Likely),
        // Seen from one place only.
        S::ConnectionRefused => (Id::Http05, Likely),
        S::NoReply => (Id::Http31, Likely),
        S::NotHttp => (Id::Http20, Likely),
        S::HungUp => (Id::Http30, Possible),
        S::Unreachable if kind.is_by_record() => (Id::Dns04, Possible),
        S::Unreachable => (Id::Http04, Likely),
        S::NoAddress | S::DanglingAlias | S::AliasLoop if kind == ChallengeType::Http01 => {
            (Id::Http01, Certain)
        }
        S::NoAddress | S::DanglingAlias => (Id::D0101, Likely),
        S::AliasLoop | S::AliasNotFollowed => (Id::D0109, Certain),
        S::ResolverSilent => (Id::D0115, Possible),
        S::NameServersFail => (Id::Dns01, Likely),
        S::NotDelegated => (Id::D0104, Likely),
        S::LameServer => (Id::Dns03, Certain),
        S::ServersSilent | S::NoRoute => (Id::Dns04, Likely),
        S::ServerUnreadable => (Id::Dns05, Possible),
    }
}
