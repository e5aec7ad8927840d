//! Rows 46 to 48: contents of a chain, and places of alternate chains.

use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::LINK;
use axum::http::response::Parts;
use jiff::{SignedDuration, Timestamp};
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::KeyPair;
use x509_parser::parse_x509_certificate;

use super::super::super::issuance::{Leaf, Lifetime, SubjectKey};
use super::super::super::plain;
use super::super::super::signing_request::subject_key;
use super::super::rule::Effect::{Chains, Heads};
use super::super::rule::{RequestScene, Trigger};
use crate::ca::behaviour::rule::{Behaviour, Value};
use crate::model::Identifier;

const DAY: i64 = 24 * 60 * 60;
/// Most links in one header, since few libraries take more than a hundred headers.
const LINKS_IN_A_HEADER: usize = 10;
/// Lifetime of odd certificates.
const LIFETIME: Duration = Duration::from_hours(90 * 24);

pub(super) const KIT: &[Behaviour] = &[
    Behaviour {
        row: 46,
        name: "chain-crlf",
        value: Value::None,
        does: "ends the lines of a chain with CR and LF",
        reaction: "read it, and store it in one form",
        rules: &[chain(|_, chain| write_chain(chain).replace('\n', "\r\n"))],
    },
    Behaviour {
        row: 46,
        name: "chain-with-text",
        value: Value::None,
        does: "puts text before and between the certificates",
        reaction: "read it, and store the certificates alone",
        rules: &[chain(|_, chain| {
            let blocks = chain.iter().map(|der| block(der));
            blocks
                .flat_map(|block| ["subject=/CN=somebody\n".to_owned(), block, "\n\n".to_owned()])
                .collect()
        })],
    },
    Behaviour {
        row: 46,
        name: "chain-without-newline",
        value: Value::None,
        does: "ends a chain without a newline",
        reaction: "read it, and store it in one form",
        rules: &[chain(|_, chain| write_chain(chain).trim_end().to_owned())],
    },
    Behaviour {
        row: 46,
        name: "chain-leaf-last",
        value: Value::None,
        does: "puts the leaf last",
        reaction: "store it with the leaf first",
        rules: &[chain(|_, chain| write_chain(chain.iter().rev()))],
    },
    Behaviour {
        row: 46,
        name: "chain-leaf-twice",
        value: Value::None,
        does: "puts every certificate in twice",
        reaction: "store each once",
        rules: &[chain(|_, chain| write_chain(chain.iter().chain(chain)))],
    },
    Behaviour {
        row: 46,
        name: "chain-leaf-only",
        value: Value::None,
        does: "sends the leaf alone",
        reaction: "store it: it is what was ordered",
        rules: &[chain(|_, chain| write_chain(chain.iter().take(1)))],
    },
    Behaviour {
        row: 46,
        name: "chain-with-a-gap",
        value: Value::None,
        does: "sends a certificate that has signed nothing in place of those above the leaf",
        reaction: "store it, and say that the chain has a gap",
        rules: &[chain(|scene, chain| {
            let names = Identifier::parse("other.example").into_iter().collect();
            let key = KeyPair::generate().ok();
            let change = LeafChanges { names: Some(names), key, ..LeafChanges::default() };
            let stranger = other_leaf(scene, chain, &change);
            write_chain(chain.iter().take(1).chain(&stranger))
        })],
    },
    Behaviour {
        row: 47,
        name: "certificate-with-more-names",
        value: Value::None,
        does: "certifies www. with the first name beside what was ordered",
        reaction: "store it, and say which names were added",
        rules: &[chain(|scene, chain| {
            another(scene, chain, &LeafChanges { has_www: true, ..LeafChanges::default() })
        })],
    },
    Behaviour {
        row: 47,
        name: "certificate-of-other-names",
        value: Value::None,
        does: "certifies another name than was ordered",
        reaction: "refuse to store it",
        rules: &[chain(|scene, chain| {
            let names = Identifier::parse("other.example").into_iter().collect();
            another(scene, chain, &LeafChanges { names: Some(names), ..LeafChanges::default() })
        })],
    },
    Behaviour {
        row: 47,
        name: "certificate-of-another-key",
        value: Value::None,
        does: "certifies a key that nobody asked for",
        reaction: "refuse to store it",
        rules: &[chain(|scene, chain| {
            another(
                scene,
                chain,
                &LeafChanges { key: KeyPair::generate().ok(), ..LeafChanges::default() },
            )
        })],
    },
    Behaviour {
        row: 47,
        name: "certificate-not-yet-valid",
        value: Value::None,
        does: "gives a certificate whose time begins in ten days",
        reaction: "refuse to store it",
        rules: &[chain(|scene, chain| {
            another(scene, chain, &LeafChanges { later: 10 * DAY, ..LeafChanges::default() })
        })],
    },
    Behaviour {
        row: 47,
        name: "certificate-expired",
        value: Value::None,
        does: "gives a certificate whose time is over",
        reaction: "refuse to store it",
        rules: &[chain(|scene, chain| {
            another(scene, chain, &LeafChanges { later: -200 * DAY, ..LeafChanges::default() })
        })],
    },
    Behaviour {
        row: 48,
        name: "alternates-none",
        value: Value::None,
        does: "offers no other chains",
        reaction: "take the one there is",
        rules: &[alternates(|_, head| offer(head, []))],
    },
    Behaviour {
        row: 48,
        name: "alternates-loop",
        value: Value::None,
        does: "offers the chain itself as another one",
        reaction: "ask each once",
        rules: &[alternates(|scene, head| offer(head, [scene.asked.path.clone()]))],
    },
    Behaviour {
        row: 48,
        name: "alternates-relative",
        value: Value::None,
        does: "offers other chains by relative URLs",
        reaction: "resolve them by the URL that was asked",
        rules: &[alternates(|scene, head| offer(head, [format!("{}/1", usual(scene))]))],
    },
    Behaviour {
        row: 48,
        name: "alternates-many",
        value: Value::Number(100),
        does: "offers so many other chains",
        reaction: "ask a few at most",
        rules: &[alternates(|scene, head| {
            let usual = usual(scene);
            offer(head, (0..scene.value).map(|number| format!("{usual}/1?number={number}")));
        })],
    },
];

const fn chain(write: fn(&RequestScene<'_>, &[Vec<u8>]) -> String) -> Trigger {
    Trigger::always(&["certificate"], Chains(write))
}

const fn alternates(head: fn(&RequestScene<'_>, &mut Parts)) -> Trigger {
    Trigger::always(&["certificate"], Heads(head))
}

/// Returns the path of a certificate's usual chain.
fn usual(scene: &RequestScene<'_>) -> String {
    scene.asked.path.split('/').take(4).collect::<Vec<_>>().join("/")
}

/// Offers alternate chains at these places and at no others.
fn offer(head: &mut Parts, places: impl IntoIterator<Item = String>) {
    head.headers.remove(LINK);
    let links = places.into_iter().map(|place| format!("<{place}>;rel=\"alternate\""));
    for links in links.collect::<Vec<_>>().chunks(LINKS_IN_A_HEADER) {
        if let Ok(links) = HeaderValue::from_str(&links.join(", ")) {
            head.headers.append(LINK, links);
        }
    }
}

fn block(der: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", der), config)
}

fn write_chain<'a>(chain: impl IntoIterator<Item = &'a Vec<u8>>) -> String {
    chain.into_iter().map(|der| block(der)).collect()
}

/// Differences of another leaf.
#[derive(Default)]
struct LeafChanges {
    names: Option<Vec<Identifier>>,
    key: Option<KeyPair>,
    /// Whether `www.` with the first name is added.
    has_www: bool,
    /// Seconds from now to the issue; negative for the past.
    later: i64,
}

/// Returns the chain with another leaf; the unchanged chain if no other leaf can be made.
fn another(scene: &RequestScene<'_>, chain: &[Vec<u8>], change: &LeafChanges) -> String {
    let leaf = other_leaf(scene, chain, change);
    write_chain(leaf.iter().chain(chain.iter().skip(usize::from(leaf.is_some()))))
}

fn other_leaf(
    scene: &RequestScene<'_>,
    chain: &[Vec<u8>],
    change: &LeafChanges,
) -> Option<Vec<u8>> {
    let (_, parsed) = parse_x509_certificate(chain.first()?).ok()?;
    let key = match &change.key {
        Some(key) => SubjectKey {
            octets: key.public_key_raw().to_vec(),
            algorithm: &rcgen::PKCS_ECDSA_P256_SHA256,
        },
        None => subject_key(parsed.public_key()).ok()?,
    };
    let mut names = if let Some(names) = &change.names {
        names.clone()
    } else {
        let serial = scene.asked.path.split('/').nth(3)?;
        scene.ca.state().certificates.get(serial)?.identifiers.clone()
    };
    if let Some(first) = names.first().filter(|_| change.has_www) {
        names.extend(Identifier::parse(&format!("www.{first}")));
    }
    let now = Timestamp::now().saturating_add(SignedDuration::from_secs(change.later)).ok()?;
    let leaf = Leaf {
        identifiers: &names,
        key: &key,
        lifetime: Lifetime::For(LIFETIME),
        revocation: &plain::urls(scene.ca, &scene.asked.base),
    };
    scene.ca.authority.issue(&leaf, now).ok().map(|signed| signed.der)
}
