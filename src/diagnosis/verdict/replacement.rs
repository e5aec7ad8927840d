//! Judgment on which certificates have to be replaced now, and why, by facts: a list of rules that send no requests.

use jiff::{SignedDuration, Timestamp};

use crate::model::Time;
use crate::model::caa::CaaRecordSet;
use crate::model::certificate_check::{
    CheckVerdict, CheckedPart, ReplacementCause, ReplacementReason, UnknownPart,
};
use crate::model::certificate_report::{
    CertificateContent, Distrust, ReportedRevocation, ReportedServer, ReportedWindow,
    RevocationState, RootsOrigin, WindowState,
};
use crate::reconcile::policy::Violation;

/// Minimum number of bits of an RSA key that CAs certify (Baseline Requirements §6.1.5).
const MIN_RSA_BITS: u32 = 2048;
/// Parts of the names of signature algorithms that are no longer accepted.
const WEAK_ALGORITHMS: [&str; 4] = ["sha1", "md5", "md4", "md2"];
/// Lifetime below which certificates are renewed at half of it; others when a third is left, as Let's Encrypt advises.
const SHORT_LIFE: SignedDuration = SignedDuration::from_hours(10 * 24);
/// Roots that have ended or will end soon, by the common name of the issuer of a chain's last certificate, with each root's
/// last second: chains still lead to these roots long after.
const ENDING_ROOTS: [(&str, i64); 5] = [
    ("AddTrust External CA Root", 1_590_835_718),
    ("Baltimore CyberTrust Root", 1_747_094_340),
    ("Certum CA", 1_812_710_799),
    ("DST Root CA X3", 1_633_010_475),
    ("GlobalSign Root CA", 1_832_673_600),
];

/// Facts about a certificate.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplacementFacts<'a> {
    /// Content of the certificate, if it could be read.
    pub content: Option<&'a CertificateContent>,
    /// Reason why there is no certificate, if there is none.
    pub missing: Option<&'a str>,
    /// Reason why the certificate could not be inspected, if it could not.
    pub unseen: Option<&'a str>,
    /// Certificates above this certificate in its chain.
    pub above: &'a [IssuerCertificateFacts],
    /// Common name of the issuer of the chain's last certificate; empty if the issuer has none.
    pub top_issuer: &'a str,
    /// Comparison with the Certificate that asks for the certificate.
    pub asked: Option<&'a SpecComparison>,
    /// Result of a client's connection to the server that shows the certificate; `None` if no server does.
    pub server: Option<&'a ReportedServer>,
    /// List that has the certificate's serial number, if any.
    pub listed: Option<&'a str>,
    /// Revocation state.
    pub revocation: Option<&'a ReportedRevocation>,
    /// Renewal window that the CA suggests.
    pub window: Option<&'a ReportedWindow>,
    /// CAA records for the certificate's names.
    pub caa: &'a [CaaResult],
}

/// Certificate above the judged one in a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerCertificateFacts {
    /// Subject of the certificate.
    pub subject: String,
    /// Last second of the validity.
    pub not_after: Timestamp,
    /// Algorithm of the signature; `None` for a self-signed certificate, whose signature is never checked.
    pub signature: Option<String>,
}

/// Comparison of a certificate with the Certificate that asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecComparison {
    /// Reason why a certificate has to be issued now, if there is one.
    pub due: Option<Violation>,
    /// Fields of the spec with names that the certificate lacks.
    pub names: Vec<&'static str>,
    /// Fields of the spec that the certificate's key does not match.
    pub key: Vec<&'static str>,
    /// Issuer of the certificate, if another issuer is asked for.
    pub issuer: Option<String>,
}

/// Result of the CAA records for a name.
#[derive(Clone, Debug)]
pub enum CaaResult {
    /// The records forbid issuance by the CA.
    Forbids {
        /// Name.
        name: String,
        /// Owner of the records that decide.
        owner: String,
        /// Records that decide.
        records: CaaRecordSet,
    },
    /// The records could not be read, which forbids issuance as well if the CA cannot read them either.
    Unknown {
        /// Name.
        name: String,
        /// Reason.
        why: String,
    },
}

/// Verdict on a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacementJudgement {
    /// Whether the certificate has to be replaced.
    pub verdict: CheckVerdict,
    /// Reasons for a replacement, the most urgent first.
    pub reasons: Vec<ReplacementReason>,
    /// Parts that are not known.
    pub unknown: Vec<UnknownPart>,
}

type ReplacementRule = fn(&ReplacementFacts<'_>, Timestamp, &mut Vec<ReplacementReason>);

const RULES: [ReplacementRule; 10] = [
    revoked,
    ended,
    missing,
    listed,
    chain_ends,
    untrusted,
    differs,
    window_is_open,
    weak,
    caa_forbids,
];

/// Judges the facts about a certificate.
pub fn judge(facts: &ReplacementFacts<'_>, now: Timestamp) -> ReplacementJudgement {
    let mut reasons = Vec::new();
    for rule in RULES {
        rule(facts, now, &mut reasons);
    }
    reasons.sort_by_key(|reason| reason.reason);
    let unknown = unknown(facts);
    let verdict = match (&reasons[..], &unknown[..]) {
        ([], []) => CheckVerdict::Keep,
        ([], _) => CheckVerdict::Unknown,
        _ => CheckVerdict::Replace,
    };
    ReplacementJudgement { verdict, reasons, unknown }
}

fn reason(
    reason: ReplacementCause,
    at: Option<Timestamp>,
    detail: impl Into<String>,
) -> ReplacementReason {
    ReplacementReason { reason, at: at.map(Time::new), detail: detail.into() }
}

fn revoked(facts: &ReplacementFacts<'_>, _: Timestamp, found: &mut Vec<ReplacementReason>) {
    let Some(revocation) = facts.revocation.filter(|it| it.state == RevocationState::Revoked)
    else {
        return;
    };
    let at = revocation.at.map(Time::timestamp);
    let detail = match &revocation.url {
        Some(list) => format!("{}: {list}", revocation.reason.unwrap_or("no reason given")),
        None => "revoked by this program".to_owned(),
    };
    found.push(reason(ReplacementCause::Revoked, at, detail));
}

/// Finds that the certificate has expired, or that its renewal is due.
fn ended(facts: &ReplacementFacts<'_>, now: Timestamp, found: &mut Vec<ReplacementReason>) {
    let Some(content) = facts.content else { return };
    let (start, end) = (content.not_before.timestamp(), content.not_after.timestamp());
    if now > end {
        found.push(reason(ReplacementCause::Expired, Some(end), "it has expired"));
        return;
    }
    let due = match facts.asked {
        // A Certificate itself says when it is to be renewed.
        Some(asked) => {
            let due = asked.due.as_ref().filter(|due| due.reason == RENEWING);
            due.map(|_| "its time of renewal has come".to_owned())
        }
        None => (now >= renewal(start, end)).then(|| share(start, end).to_owned()),
    };
    if let Some(why) = due {
        found.push(reason(ReplacementCause::RenewalDue, Some(end), why));
    }
}

/// Reason of `policy` for a renewal by time.
const RENEWING: &str = "Renewing";
/// Reasons of `policy` for a Secret without the required data.
const ABSENT: [&str; 2] = ["DoesNotExist", "MissingData"];
/// Reason of `policy` for a revoked certificate, which another rule reports.
const REVOKED: &str = "Revoked";

/// Returns when a certificate without a Certificate is to be renewed.
fn renewal(start: Timestamp, end: Timestamp) -> Timestamp {
    let life = end.duration_since(start);
    let left = if life < SHORT_LIFE { life / 2 } else { life / 3 };
    end.checked_sub(left).unwrap_or(end)
}

fn share(start: Timestamp, end: Timestamp) -> &'static str {
    if end.duration_since(start) < SHORT_LIFE {
        "less than half of its life is left"
    } else {
        "less than a third of its life is left"
    }
}

fn missing(facts: &ReplacementFacts<'_>, _: Timestamp, found: &mut Vec<ReplacementReason>) {
    if let Some(why) = facts.missing {
        found.push(reason(ReplacementCause::Missing, None, why));
    }
}

fn listed(facts: &ReplacementFacts<'_>, _: Timestamp, found: &mut Vec<ReplacementReason>) {
    let end = facts.content.map(|content| content.not_after.timestamp());
    if let Some(list) = facts.listed {
        let detail = format!("its serial number is in {list}");
        found.push(reason(ReplacementCause::Listed, end, detail));
    }
}

/// Finds a certificate of the chain that ends before the judged one, if so little time is left that a renewal is due.
fn chain_ends(facts: &ReplacementFacts<'_>, now: Timestamp, found: &mut Vec<ReplacementReason>) {
    let Some(content) = facts.content else { return };
    let (start, end) = (content.not_before.timestamp(), content.not_after.timestamp());
    let roots = ENDING_ROOTS.iter().filter(|(name, _)| *name == facts.top_issuer);
    let roots = roots.filter_map(|(name, end)| Some((*name, Timestamp::from_second(*end).ok()?)));
    let above = facts.above.iter().map(|above| (above.subject.as_str(), above.not_after));
    let first = above.chain(roots).filter(|(_, ends)| *ends < end).min_by_key(|(_, ends)| *ends);
    if let Some((subject, ends)) = first.filter(|(_, ends)| now >= renewal(start.min(*ends), *ends))
    {
        let verb = if ends < now { "is over" } else { "ends before it" };
        let detail = format!("{subject} {verb}");
        found.push(reason(ReplacementCause::ChainEnds, Some(ends), detail));
    }
}

/// Finds why clients refuse the server's certificate, other than for its end or its names, which have their own rules.
fn untrusted(facts: &ReplacementFacts<'_>, _: Timestamp, found: &mut Vec<ReplacementReason>) {
    let Some(server) = facts.server else { return };
    let cause = match server.distrust {
        Some(Distrust::Incomplete) => ReplacementCause::ChainIncomplete,
        Some(Distrust::Untrusted) => ReplacementCause::NotTrusted,
        Some(Distrust::Expired | Distrust::NoRoots | Distrust::OtherName) | None => return,
    };
    let why = server.verify_fault.as_deref().unwrap_or_default();
    let by = match server.roots {
        RootsOrigin::File => "the roots given",
        RootsOrigin::Platform => "this machine's roots",
    };
    found.push(reason(cause, None, format!("{why} (by {by})")));
}

fn differs(facts: &ReplacementFacts<'_>, _: Timestamp, found: &mut Vec<ReplacementReason>) {
    if facts.server.is_some_and(|server| !server.fits_name) {
        let detail = "it is not for the name of the server that presents it";
        found.push(reason(ReplacementCause::NamesDiffer, None, detail));
    }
    let Some(asked) = facts.asked.filter(|_| facts.missing.is_none()) else { return };
    let before = found.len();
    for (cause, fields) in
        [(ReplacementCause::NamesDiffer, &asked.names), (ReplacementCause::KeyDiffers, &asked.key)]
    {
        if !fields.is_empty() {
            found.push(reason(cause, None, format!("it is not as {}", fields.join(", "))));
        }
    }
    if let Some(other) = &asked.issuer {
        found.push(reason(ReplacementCause::IssuerDiffers, None, format!("it is from {other}")));
    }
    let others = asked.due.as_ref().filter(|due| {
        let is_told = [RENEWING, REVOKED].contains(&due.reason) || ABSENT.contains(&due.reason);
        found.len() == before && !is_told
    });
    if let Some(due) = others {
        found.push(reason(ReplacementCause::SpecDiffers, None, due.message.clone()));
    }
}

fn window_is_open(facts: &ReplacementFacts<'_>, _: Timestamp, found: &mut Vec<ReplacementReason>) {
    let Some(window) = facts.window else { return };
    let detail = match (window.state, &window.explanation) {
        (WindowState::Open, None) => "its CA wants it renewed in this window".to_owned(),
        (WindowState::Past, None) => {
            "the window in which its CA wanted it renewed is over".to_owned()
        }
        (WindowState::Open | WindowState::Past, Some(page)) => format!("its CA says why: {page}"),
        (WindowState::Ahead | WindowState::NotOffered | WindowState::Unknown, _) => return,
    };
    let end = window.end.map(Time::timestamp);
    found.push(reason(ReplacementCause::RenewalWindow, end, detail));
}

fn weak(facts: &ReplacementFacts<'_>, _: Timestamp, found: &mut Vec<ReplacementReason>) {
    let Some(content) = facts.content else { return };
    let end = Some(content.not_after.timestamp());
    let key = &content.key;
    let is_short = key.algorithm == "RSA" && key.size.is_some_and(|size| size < MIN_RSA_BITS);
    if is_short || key.algorithm.to_ascii_lowercase().starts_with("dsa") {
        let size = key.size.map(|size| format!(" {size}")).unwrap_or_default();
        let detail = format!("its key is {}{size}", key.algorithm);
        found.push(reason(ReplacementCause::WeakKey, end, detail));
    }
    let is_weak = |algorithm: &str| {
        let lower = algorithm.to_ascii_lowercase();
        WEAK_ALGORITHMS.iter().any(|weak| lower.contains(weak))
    };
    if is_weak(&content.signature_algorithm) && content.subject != content.issuer {
        let detail = format!("it is signed with {}", content.signature_algorithm);
        found.push(reason(ReplacementCause::WeakSignature, end, detail));
    }
    for above in facts.above {
        let Some(algorithm) = above.signature.as_deref().filter(|it| is_weak(it)) else { continue };
        let detail = format!("{} is signed with {algorithm}", above.subject);
        found.push(reason(ReplacementCause::WeakSignature, end, detail));
    }
}

fn caa_forbids(facts: &ReplacementFacts<'_>, _: Timestamp, found: &mut Vec<ReplacementReason>) {
    let end = facts.content.map(|content| content.not_after.timestamp());
    for look in facts.caa {
        if let CaaResult::Forbids { name, owner, records } = look {
            let of = if name == owner { String::new() } else { format!(" for {name}") };
            let detail = format!("CAA of {owner}{of}: {records}");
            found.push(reason(ReplacementCause::CaaForbids, end, detail));
        }
    }
}

/// Returns the parts that are not known.
fn unknown(facts: &ReplacementFacts<'_>) -> Vec<UnknownPart> {
    let mut all = Vec::new();
    let mut add = |part, why: &str| all.push(UnknownPart { part, why: why.to_owned() });
    if let Some(why) = facts.unseen {
        add(CheckedPart::Certificate, why);
    }
    if let Some(revocation) = facts.revocation.filter(|it| it.state == RevocationState::Unknown) {
        add(CheckedPart::Revocation, revocation.why.as_deref().unwrap_or_default());
    }
    if let Some(window) = facts.window.filter(|it| it.state == WindowState::Unknown) {
        add(CheckedPart::RenewalWindow, window.why.as_deref().unwrap_or_default());
    }
    if let Some(server) = facts.server.filter(|it| it.distrust == Some(Distrust::NoRoots)) {
        add(CheckedPart::Trust, server.verify_fault.as_deref().unwrap_or_default());
    }
    for look in facts.caa {
        if let CaaResult::Unknown { name, why } = look {
            add(CheckedPart::Caa, &format!("{name}: {why}"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::caa::CaaProperty;
    use crate::model::certificate_report::{AlternativeNamesByKind, CertificateKey, Fingerprints};

    const DAY: i64 = 86_400;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * DAY).unwrap()
    }

    /// An RSA certificate of ninety days from day 0.
    fn content() -> CertificateContent {
        CertificateContent {
            names: AlternativeNamesByKind::default(),
            subject: String::new(),
            common_name: String::new(),
            issuer: "CN=E7".to_owned(),
            test_authority: None,
            serial_number: "0a".to_owned(),
            not_before: at(0).into(),
            not_after: at(90).into(),
            days_left: 90,
            key: CertificateKey { algorithm: "RSA".to_owned(), size: Some(2048) },
            signature_algorithm: "ecdsa-with-SHA384".to_owned(),
            fingerprints: Fingerprints { sha256: String::new(), sha1: String::new() },
            spki_sha256: String::new(),
            usages: Vec::new(),
            is_ca: false,
            ocsp_urls: Vec::new(),
            crl_urls: Vec::new(),
            sct_count: 0,
            faults: Vec::new(),
        }
    }

    fn words(facts: &ReplacementFacts<'_>, now: Timestamp) -> Vec<&'static str> {
        judge(facts, now).reasons.iter().map(|reason| reason.reason.word()).collect()
    }

    #[test]
    fn the_life_of_what_no_certificate_speaks_of_ends_in_thirds_and_that_of_a_short_one_in_halves()
    {
        let content = content();
        let facts = ReplacementFacts { content: Some(&content), ..Default::default() };
        assert_eq!(judge(&facts, at(59)).verdict, CheckVerdict::Keep);
        assert_eq!(words(&facts, at(60)), ["RenewalDue"]);
        assert_eq!(words(&facts, at(91)), ["Expired"]);
        let short = CertificateContent { not_after: at(6).into(), ..content.clone() };
        let facts = ReplacementFacts { content: Some(&short), ..facts };
        assert_eq!(words(&facts, at(2)), [""; 0]);
        assert_eq!(words(&facts, at(3)), ["RenewalDue"]);
        // A Certificate knows better.
        let asked = SpecComparison::default();
        let facts = ReplacementFacts { asked: Some(&asked), ..facts };
        assert_eq!(words(&facts, at(3)), [""; 0]);
        let due = Some(Violation { reason: RENEWING, message: String::new() });
        let asked = SpecComparison { due, ..SpecComparison::default() };
        let facts = ReplacementFacts { asked: Some(&asked), ..facts };
        assert_eq!(words(&facts, at(1)), ["RenewalDue"]);
    }

    #[test]
    fn a_revoked_certificate_comes_first_and_what_is_not_known_is_never_fine() {
        let content = content();
        let revoked = ReportedRevocation {
            at: Some(at(1).into()),
            reason: Some("keyCompromise"),
            ..ReportedRevocation::of(RevocationState::Revoked)
        };
        let window = ReportedWindow::of(WindowState::Past);
        let facts = ReplacementFacts {
            content: Some(&content),
            revocation: Some(&revoked),
            window: Some(&window),
            ..Default::default()
        };
        assert_eq!(words(&facts, at(61)), ["Revoked", "RenewalWindow", "RenewalDue"]);
        let unknown = ReportedRevocation {
            why: Some("no answer".to_owned()),
            ..ReportedRevocation::of(RevocationState::Unknown)
        };
        let ahead = ReportedWindow::of(WindowState::Ahead);
        let facts = ReplacementFacts { revocation: Some(&unknown), window: Some(&ahead), ..facts };
        let judged = judge(&facts, at(1));
        assert_eq!((judged.verdict, judged.reasons.len()), (CheckVerdict::Unknown, 0));
        assert_eq!(judged.unknown[0].why, "no answer");
    }

    #[test]
    fn what_is_not_as_asked_is_told_by_its_part() {
        let content = content();
        let due = |reason| Some(Violation { reason, message: "why".to_owned() });
        for (asked, expected) in [
            (
                SpecComparison { names: vec!["spec.dnsNames"], ..SpecComparison::default() },
                "NamesDiffer",
            ),
            (
                SpecComparison { key: vec!["spec.privateKey.size"], ..SpecComparison::default() },
                "KeyDiffers",
            ),
            (
                SpecComparison { issuer: Some("Issuer old".into()), ..SpecComparison::default() },
                "IssuerDiffers",
            ),
            (
                SpecComparison { due: due("IncorrectCertificate"), ..SpecComparison::default() },
                "SpecDiffers",
            ),
        ] {
            let due = asked.due.clone().or_else(|| due("SecretMismatch"));
            let asked = SpecComparison { due, ..asked };
            let facts = ReplacementFacts {
                content: Some(&content),
                asked: Some(&asked),
                ..Default::default()
            };
            assert_eq!(words(&facts, at(1)), [expected]);
        }
    }

    #[test]
    fn weak_keys_and_signatures_are_told_and_those_of_roots_are_not() {
        let weak = CertificateContent {
            key: CertificateKey { algorithm: "RSA".to_owned(), size: Some(1024) },
            signature_algorithm: "sha1WithRSAEncryption".to_owned(),
            ..content()
        };
        let root =
            IssuerCertificateFacts { subject: "CN=R".into(), not_after: at(900), signature: None };
        let facts = ReplacementFacts { content: Some(&weak), above: &[root], ..Default::default() };
        assert_eq!(words(&facts, at(1)), ["WeakKey", "WeakSignature"]);
        let strong = content();
        let signature = Some("sha1WithRSAEncryption".to_owned());
        let above =
            IssuerCertificateFacts { subject: "CN=I".into(), not_after: at(900), signature };
        let facts = ReplacementFacts { content: Some(&strong), above: &[above], ..facts };
        assert_eq!(words(&facts, at(1)), ["WeakSignature"]);
    }

    #[test]
    fn a_chain_that_ends_first_counts_as_the_end_of_its_certificate() {
        let content = content();
        let check = |ends: i64, now: i64, top_issuer: &str, expected: &[&str]| {
            let above = IssuerCertificateFacts {
                subject: "CN=I".into(),
                not_after: at(ends),
                signature: None,
            };
            let facts = ReplacementFacts {
                content: Some(&content),
                above: &[above],
                top_issuer,
                ..Default::default()
            };
            assert_eq!(words(&facts, at(now)), expected, "{ends} {now} {top_issuer}");
        };
        check(900, 1, "ISRG Root X1", &[]);
        check(30, 10, "", &[]);
        check(30, 20, "", &["ChainEnds"]);
        check(30, 40, "", &["ChainEnds"]);
        check(900, 1, "DST Root CA X3", &["ChainEnds"]);
        // It ends after the certificate.
        check(900, 1, "GlobalSign Root CA", &[]);
    }

    #[test]
    fn records_that_keep_the_ca_out_are_shown() {
        let records = CaaRecordSet::from_iter([CaaProperty::new(0, "issue", "other.example")]);
        let (name, owner) = ("www.example.com".to_owned(), "example.com".to_owned());
        let unknown = CaaResult::Unknown { name: "a.test".into(), why: "SERVFAIL".into() };
        let caa = [CaaResult::Forbids { name, owner, records }, unknown];
        let judged = judge(&ReplacementFacts { caa: &caa, ..Default::default() }, at(1));
        let detail = r#"CAA of example.com for www.example.com: 0 issue "other.example""#;
        assert_eq!(judged.reasons[0].detail, detail);
        assert_eq!(judged.unknown[0].why, "a.test: SERVFAIL");
    }
}
