//! The rows: what a CA or the network does, and what has to come of it.

use super::row::{Names, Row, ends, issues};
use super::stubs::{Dns, Web};

const TWO: &[&str] = &["a.example.com", "b.example.com"];
/// More than are asked about at once.
#[rustfmt::skip]
const MANY: &[&str] = &[
    "n01.example.com", "n02.example.com", "n03.example.com", "n04.example.com", "n05.example.com", "n06.example.com",
    "n07.example.com", "n08.example.com", "n09.example.com", "n10.example.com", "n11.example.com", "n12.example.com",
    "n13.example.com", "n14.example.com", "n15.example.com", "n16.example.com", "n17.example.com", "n18.example.com",
    "n19.example.com", "n20.example.com", "n21.example.com", "n22.example.com", "n23.example.com", "n24.example.com",
    "n25.example.com", "n26.example.com", "n27.example.com", "n28.example.com", "n29.example.com", "n30.example.com",
    "n31.example.com", "n32.example.com", "n33.example.com", "n34.example.com", "n35.example.com", "n36.example.com",
    "n37.example.com", "n38.example.com", "n39.example.com", "n40.example.com",
];

/// Every row.
pub(super) fn all() -> Vec<Row> {
    let parts = [
        nonces(),
        limits(),
        lost(),
        orders(),
        authorizations(),
        challenges(),
        validations(),
        accounts(),
        refusals(),
        urls(),
        chains(),
        bodies(),
        network(),
    ];
    parts.into_iter().flatten().collect()
}

fn nonces() -> Vec<Row> {
    vec![
        issues(1, "bad-nonce-once").asks("newOrder", 2),
        issues(2, "bad-nonce-without-nonce").asks("newOrder", 2),
        ends(3, "bad-nonce-storm", 6)
            .runs_out_of_time()
            .asks_between("newAccount", 2, 200)
            .asks("newOrder", 0)
            .says("badNonce"),
        issues(4, "bad-nonce-of-old").asks("newOrder", 2),
        issues(5, "new-nonce-204"),
        issues(5, "new-nonce-without-head"),
        issues(5, "new-nonce-429"),
    ]
}

fn limits() -> Vec<Row> {
    vec![
        issues(6, "new-order-429").asks("newOrder", 2),
        // Whoever is above the ceiling once asks for another order.
        issues(6, "new-nonce-ceiling=20 request-ceiling=20")
            .names(MANY)
            .keeps_limits_of("letsencrypt-staging")
            // On a busy machine the CA counts at once what was sent evenly; what it refuses then is asked for again, and no more.
            .asks_between("authorization", 40, 120)
            .asks_between("challenge", 40, 120)
            .asks_between("newNonce", 1, 64),
        ends(6, "new-order-429=3600", 5).says("next try at "),
        issues(6, "failed-validations-limit"),
        issues(7, "new-order-429-date").asks("newOrder", 2),
        ends(7, "new-order-429-date=864000", 5).says("next try at "),
        issues(7, "new-order-429-rfc850").asks("newOrder", 2),
        issues(7, "new-order-429-past").asks("newOrder", 2),
        // What says nothing of a moment means five minutes, which this run does not have.
        ends(7, "new-order-429-unreadable", 5).says("next try at "),
        ends(7, "order-processing poll-retry-after-zero", 124)
            .runs_out_of_time()
            .asks("finalize", 1)
            .polls("order"),
        ends(7, "order-processing poll-retry-after-past", 124)
            .runs_out_of_time()
            .asks("finalize", 1)
            .polls("order"),
        ends(8, "new-order-paused", 5)
            .says("https://portal.example/unpause?jwt=abc")
            .says("waiting alone does not help"),
        issues(9, "gateway-page").asks("newOrder", 2),
        ends(9, "gateway-page=1000", 6)
            .runs_out_of_time()
            .asks_between("newOrder", 2, 40)
            .says("503 Service Temporarily Unavailable"),
    ]
}

fn lost() -> Vec<Row> {
    vec![
        issues(10, "new-order-lost").asks("newOrder", 2),
        issues(10, "new-order-lost=502").asks("newOrder", 2),
        issues(10, "new-order-lost=504").asks("newOrder", 2),
        issues(11, "finalize-lost").asks_between("finalize", 1, 2),
        issues(11, "finalize-reset").asks_between("finalize", 1, 2),
        // Accepted again without a look: a second acceptance changes nothing (RFC 8555 §7.5.1), and costs what a look costs.
        issues(12, "challenge-lost").asks_between("challenge", 1, 2),
        issues(12, "challenge-reset").asks_between("challenge", 1, 2),
        issues(13, "finalize-not-ready").asks("finalize", 2),
    ]
}

fn orders() -> Vec<Row> {
    vec![
        issues(14, "finalize-says-ready"),
        issues(14, "certificate-503=2").asks("certificate", 3),
        issues(14, "certificate-404=2").asks("certificate", 3),
        issues(14, "certificate-202=2").asks("certificate", 3),
        ends(15, "order-invalid-with-error", 4).names(TWO).says("shows another page"),
        ends(16, "order-invalid-without-error", 4)
            .says("Invalid response from http://www.example.com/"),
        ends(16, "unseen-from-elsewhere", 4).says("During secondary validation: 127.0.0.1: "),
        ends(17, "order-invalid-at-finalize", 4).asks("finalize", 1),
        ends(17, "finalize-fails-and-order-invalid", 6)
            .asks_between("finalize", 1, 2)
            .says("enrollment failed"),
        issues(18, "order-ready-at-creation")
            .asks("authorization", 0)
            .asks("challenge", 0)
            .asks_between("order", 0, 1),
        issues(19, "order-valid-at-creation")
            // What is given is for a key of somebody else: looked at, and ordered anew.
            .asks("newOrder", 2)
            .asks("certificate", 2),
        ends(20, "order-processing", 124).runs_out_of_time().asks("finalize", 1).polls("order"),
        issues(20, "order-processing=3"),
        issues(21, "order-404=2"),
        issues(21, "order-gone").asks("newOrder", 2).asks_between("authorization", 1, 2),
        issues(21, "order-gone-empty").asks("newOrder", 2).asks_between("authorization", 1, 2),
        issues(22, "expires-number"),
        issues(22, "unknown-order-status"),
        issues(22, "unknown-authorization-status").asks_between("authorization", 1, 3),
        issues(22, "unknown-challenge-status").asks_between("authorization", 1, 3),
    ]
}

fn authorizations() -> Vec<Row> {
    let again = |name| issues(24, name).asks("newOrder", 2).asks("authorization", 2);
    vec![
        issues(23, "one-authorization-valid").names(TWO).asks("challenge", 1),
        issues(24, "authorization-404=2").asks("authorization", 3),
        issues(24, "challenge-404=2").asks_between("challenge", 3, 4),
        again("authorization-deactivated"),
        again("authorization-expired"),
        again("authorization-revoked"),
        ends(25, "authorization-of-another-name", 1)
            .asks("challenge", 0)
            .says("other.example")
            .says("www.example.com"),
        ends(25, "authorization-missing", 1).names(TWO).asks("challenge", 0).says("b.example.com"),
        issues(25, "authorization-twice=100"),
        ends(25, "authorization-surplus=100", 1)
            .asks_between("authorization", 0, 1)
            .asks("challenge", 0),
    ]
}

fn challenges() -> Vec<Row> {
    let harmful = |name, why| {
        ends(28, name, 6)
            .runs_out_of_time()
            .asks("challenge", 0)
            .asks_between("authorization", 1, 20)
            .says(why)
    };
    let seen = |name| issues(29, name).asks("challenge", 0).asks_between("authorization", 1, 3);
    vec![
        ends(26, "http-01-not-offered", 9).asks("challenge", 0).says("dns-01").says("tls-alpn-01"),
        issues(27, "unknown-challenge-type"),
        harmful("token-with-path", "the token of its http-01 challenge"),
        harmful("empty-token", "its http-01 challenge has no token"),
        seen("challenge-processing"),
        seen("challenge-valid"),
        ends(29, "challenge-invalid", 4).asks("challenge", 0),
        issues(30, "challenge-pending-with-error").asks_between("authorization", 1, 8),
    ]
}

/// CAs that look once for each answer, and those whose word stands in one part alone.
fn validations() -> Vec<Row> {
    let again = |name| {
        issues(30, name)
            .asks("challenge", 3)
            .asks_between("authorization", 1, 8)
            .asks_between("order", 1, 80)
    };
    let gives_up = |name, why| ends(30, name, 4).asks_between("challenge", 2, 6).says(why);
    let refused = |name, code, why| ends(30, name, code).asks("challenge", 1).says(why);
    let seen = "Invalid response from http://www.example.com/";
    vec![
        again("challenge-looks-per-answer"),
        gives_up(
            "challenge-looks-per-answer=1000",
            "urn:ietf:params:acme:error:connection: The server could not connect",
        ),
        again("challenge-looks-in-silence"),
        again("challenge-answer-refused"),
        gives_up("challenge-answer-refused=1000", "What was served is not the answer"),
        refused("challenge-invalid-alone", 4, seen).order("invalid"),
        refused("authorization-invalid-alone", 4, seen).order("invalid"),
        refused("validation-server-internal", 6, "The resolver of the CA has stopped"),
        refused("validation-rejected-identifier", 4, "will not issue certificates"),
        refused("challenge-error-without-status", 4, seen),
    ]
}

fn accounts() -> Vec<Row> {
    vec![
        issues(31, "account-forgotten").asks("newOrder", 2).asks_between("newAccount", 2, 3),
        ends(32, "account-deactivated", 7),
        issues(32, "key-change-501"),
        issues(32, "key-change-500"),
        issues(32, "deactivation-ignored"),
        issues(32, "account-unreadable"),
        issues(33, "new-account-200"),
        issues(34, "new-account-without-body"),
        ends(34, "new-account-without-location", 6)
            .asks_between("newAccount", 1, 5)
            .asks("newOrder", 0)
            .says("there is no Location header"),
        issues(34, "contact-null"),
        issues(34, "orders-bare"),
        ends(35, "user-action-required", 7).says("/terms/agree").says("/terms"),
        ends(36, "external-account-required", 7)
            .asks("newOrder", 0)
            .says("spec.acme.externalAccountBinding"),
    ]
}

fn refusals() -> Vec<Row> {
    let at_finalize = |number, name, code| ends(number, name, code).asks("finalize", 1);
    vec![
        ends(37, "rejected-identifier", 2)
            .names(TWO)
            .says("a.example.com is on a list of high risk")
            .says("b.example.com is on a list of high risk"),
        ends(37, "compound", 2).says("www.example.com has no name servers").says("smoke signals"),
        at_finalize(37, "caa-at-finalize", 4)
            .says("CAA record for www.example.com prevents issuance"),
        at_finalize(38, "bad-csr", 2).says("CSR is not to be signed"),
        ends(38, "bad-public-key", 7).asks("newOrder", 0).says("this key is known to others"),
        issues(39, "bad-signature-algorithm").asks("newAccount", 2),
        ends(40, "invalid-profile", 2)
            .issuer("profile", "tlsserver")
            .says("profile is not for this account"),
        ends(40, "profiles-not-advertised", 2).issuer("profile", "tlsserver").asks("newOrder", 0),
        issues(40, "meta-malformed"),
        // No order of ours names yet what it replaces (renewal information): there is nothing to leave out.
        ends(41, "already-replaced", 1).says("certificate already has a replacement order"),
        issues(42, "new-order-without-location").asks("newOrder", 2),
        ends(42, "new-order-without-location=9", 1).asks("newOrder", 2),
        issues(42, "new-order-unreadable"),
    ]
}

fn urls() -> Vec<Row> {
    let in_clear = |name| {
        ends(43, name, 6)
            .runs_out_of_time()
            .asks_between("newOrder", 1, 20)
            .asks("authorization", 0)
            .says("is not https")
    };
    vec![
        // Another newOrder would be another order.
        ends(43, "location-over-http", 6).asks("authorization", 0).says("is not https"),
        in_clear("finalize-over-http"),
        in_clear("authorization-over-http"),
        issues(44, "relative-urls"),
        issues(44, "directory-redirects").asks("directory", 3),
        ends(44, "post-redirects", 6)
            .runs_out_of_time()
            .asks_between("newOrder", 1, 20)
            .asks("other", 0)
            .says("status 307 to a signed request"),
        issues(45, "content-type-missing"),
        issues(45, "content-type-wrong"),
        ends(45, "certificate-page", 6)
            .runs_out_of_time()
            .asks("finalize", 1)
            .asks_between("certificate", 1, 40)
            .says("there is no certificate in it"),
    ]
}

fn chains() -> Vec<Row> {
    let refused = |name| {
        ends(47, name, 1)
            .asks("finalize", 1)
            .asks("certificate", 1)
            .says("is not what was ordered")
            .order("errored")
    };
    let preferred = |name| issues(48, name).issuer("preferredChain", "a root that nobody has");
    vec![
        issues(46, "chain-crlf"),
        issues(46, "chain-with-text"),
        issues(46, "chain-without-newline"),
        issues(46, "chain-leaf-last"),
        issues(46, "chain-leaf-twice"),
        issues(46, "chain-leaf-only"),
        issues(46, "chain-with-a-gap").says("the chain has a gap"),
        issues(47, "certificate-with-more-names")
            .certifies_beside(&["www.www.example.com"])
            .says("put more names into the certificate"),
        refused("certificate-of-other-names"),
        refused("certificate-of-another-key"),
        refused("certificate-not-yet-valid"),
        refused("certificate-expired"),
        preferred("alternates-none"),
        preferred("alternates-loop"),
        preferred("alternates-relative").asks("certificate", 2),
        preferred("alternates-many").asks_between("certificate", 2, 11),
    ]
}

fn bodies() -> Vec<Row> {
    let late = |name| ends(50, name, 6).runs_out_of_time().asks_between("order", 1, 4);
    vec![
        // The head of the answer names the order.
        issues(49, "endless-order"),
        ends(49, "endless-chain", 6).runs_out_of_time().asks("finalize", 1).asks_between(
            "certificate",
            1,
            10,
        ),
        late("slow-bytes"),
        late("silent"),
        // As many as are in flight at most.
        issues(50, "store-locks-up=32").names(MANY).asks("newOrder", 1),
        // Directory and nonces are answered, nothing else ever.
        ends(50, "store-locks-up=0", 6)
            .runs_out_of_time()
            .asks("newOrder", 0)
            .says("new-account: no answer for"),
        issues(51, "directory-moves").asks("directory", 2),
        issues(52, "clock-behind"),
        issues(52, "clock-ahead"),
    ]
}

fn network() -> Vec<Row> {
    let unseen = |number, lead| {
        ends(number, "", 124).names_lead(lead).runs_out_of_time().asks("challenge", 0)
    };
    vec![
        unseen(53, Names::Web(Web::Loop)),
        unseen(53, Names::Web(Web::Endless)),
        unseen(53, Names::Web(Web::Silent)),
        unseen(54, Names::Dns(Dns::NoSuchName)),
        unseen(54, Names::Dns(Dns::Fails)),
        unseen(54, Names::Dns(Dns::Loop)),
        unseen(54, Names::Dns(Dns::Silent)),
        issues(55, "renewal-info-malformed").asks("other", 0),
        issues(55, "renewal-info-404").asks("other", 0),
        issues(56, "http2"),
        // Each connection answers four: what is lost is asked again.
        issues(56, "http2-goaway")
            .asks_between("newOrder", 1, 2)
            .asks_between("authorization", 1, 3)
            .asks_between("challenge", 1, 2)
            .asks_between("finalize", 1, 2)
            .asks_between("certificate", 1, 2),
        issues(56, "http2-reset"),
        issues(56, "connection-cut"),
    ]
}
