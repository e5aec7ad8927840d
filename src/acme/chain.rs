//! Checks of the chain that a CA serves against the request.
//!
//! A served chain is checked (key, names, dates) before it is stored; if a check fails, the Order is `errored`: a bad
//! chain must never reach a Secret. Other contents of a certificate are the CA's choice and only reported, as is a
//! chain with a gap: the certificate is spent, and the next would be the same. A chain has twenty certificates at most,
//! while cert-manager limits its size: to sort thousands would keep the controller from all other work.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::prelude::FromDer as _;

use super::Acme;
use super::csr::SigningRequest;
use super::error::{AcmeError, Retry};
use super::keys::to_pem;
use super::replies::CertificateChain;
use super::x509::{self, AlternativeNames};
use crate::model::certificate::Names;
use crate::model::issuer::choices;
use crate::model::text::{listed, shortened};

const TAG: &str = "CERTIFICATE";
/// Largest error of our clock for which a certificate's times are not held against the CA.
const CLOCK_SKEW_MAX: SignedDuration = SignedDuration::from_hours(24);
/// Most certificates in a chain; public CAs send two to four. Sorting takes time with the square of their number.
pub(super) const MAX_CHAIN_CERTIFICATES: usize = 20;
/// Most names in the text of a fault, followed by the most characters of each name.
const MAX_NAMES_LISTED: usize = 20;
const LONGEST_NAME: usize = 253;
/// Most alternates that are downloaded, of however many a CA offers.
const MAX_ALTERNATES: usize = 10;

/// Contents of a certificate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leaf {
    /// Start.
    pub not_before: Timestamp,
    /// Last second.
    pub not_after: Timestamp,
    /// Names in the certificate.
    pub names: Names,
    /// Alternative names of other kinds, each given as its kind.
    pub other_names: Vec<String>,
    /// SubjectPublicKeyInfo, DER; comparable with [`super::PrivateKey::public_key`].
    pub public_key: Vec<u8>,
    /// Common name of the issuer.
    pub issuer: String,
    /// Serial number in lower-case hexadecimal, leading zeroes included.
    pub serial: String,
    /// Identifier in renewal information (RFC 9773 §4.1); `None` if the certificate does not name its issuer's key.
    pub renewal_id: Option<String>,
    /// Whether the certificate may sign certificates.
    pub is_ca: bool,
}

/// Chain that has passed the checks.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedChain {
    /// PEM blocks and nothing else, leaf first, each signed by the next as far as the chain goes, no block twice.
    pub pem: String,
    /// The leaf.
    pub leaf: Leaf,
}

/// Reason not to store a chain; the texts are stable, since a status keeps them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// The chain has no certificate.
    #[error("there is no certificate in the chain")]
    Empty,
    /// The chain has too many certificates; the field counts them.
    #[error("the chain has {0} certificates; at most {MAX_CHAIN_CERTIFICATES} are taken")]
    TooLong(usize),
    /// A certificate is damaged.
    #[error("cannot read certificate {number} of the chain: {why}")]
    Unreadable {
        /// Position in the chain, from 1.
        number: usize,
        /// Reason.
        why: String,
    },
    /// No certificate is for the key of the request.
    #[error("no certificate of the chain is for the key of the signing request")]
    OtherKey,
    /// The certificate lacks names of the request.
    #[error("the certificate lacks {}", list(.0))]
    Lacks(Vec<String>),
    /// The certificate has no alternative names, which are the names that count.
    #[error("the certificate has no subject alternative names")]
    Nameless,
    /// The certificate may sign others.
    #[error("the certificate is a CA's own (CA:TRUE), which was not ordered")]
    Authority,
    /// The certificate has expired.
    #[error("the certificate has expired at {0:.0}")]
    Expired(Timestamp),
    /// The certificate is not valid yet.
    #[error("the certificate is not valid before {0:.0}")]
    NotYetValid(Timestamp),
}

/// Deviation of a chain from the request that is no reason to do without the chain; the texts are stable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainRemark {
    /// The certificate has names that were not ordered.
    #[error("the CA has put more names into the certificate than were ordered: {}", list(.0))]
    Adds(Vec<String>),
    /// The common name is not among the names of the certificate or of the request.
    #[error("the CA has given the certificate the common name \"{}\"", shortened(.0, LONGEST_NAME))]
    CommonName(String),
    /// None of the other certificates has signed the first.
    #[error("the chain has a gap: the CA does not serve the certificate of {}, which has signed this one", shortened(.0, LONGEST_NAME))]
    Gap(String),
}

fn list(names: &[String]) -> String {
    listed(names.iter(), MAX_NAMES_LISTED, LONGEST_NAME)
}

struct Certificate<'a> {
    der: &'a [u8],
    parsed: X509Certificate<'a>,
}

/// Checks a chain against the request it answers, and puts it in order (RFC 8555 §9.1).
pub fn check(
    chain: &str,
    request: &SigningRequest,
    now: Timestamp,
) -> Result<CheckedChain, ChainFault> {
    let blocks = blocks(chain)?;
    if blocks.len() > MAX_CHAIN_CERTIFICATES {
        return Err(ChainFault::TooLong(blocks.len()));
    }
    let certificates = parse(&blocks)?;
    let first = certificates
        .iter()
        .position(|c| c.parsed.public_key().raw == request.public_key)
        .ok_or(ChainFault::OtherKey)?;
    let ordered = in_order(certificates, first);
    let leaf = read(&ordered[0].parsed).map_err(|why| ChainFault::Unreadable { number: 1, why })?;
    if leaf.is_ca && !request.is_ca {
        return Err(ChainFault::Authority);
    }
    check_names(&leaf, request)?;
    if leaf.not_after.saturating_add(CLOCK_SKEW_MAX).unwrap_or(Timestamp::MAX) < now {
        return Err(ChainFault::Expired(leaf.not_after));
    }
    if leaf.not_before.saturating_sub(CLOCK_SKEW_MAX).unwrap_or(Timestamp::MIN) > now {
        return Err(ChainFault::NotYetValid(leaf.not_before));
    }
    Ok(CheckedChain { pem: ordered.iter().map(|c| to_pem(TAG, c.der)).collect(), leaf })
}

/// Reads the first certificate of a PEM text, such as `tls.crt` of a Secret.
pub fn leaf(pem: &str) -> Result<Leaf, ChainFault> {
    let blocks = blocks(pem)?;
    let first = blocks.first().ok_or(ChainFault::Empty)?;
    let unreadable = |why| ChainFault::Unreadable { number: 1, why };
    let parsed = parse_one(first).map_err(unreadable)?;
    read(&parsed).map_err(unreadable)
}

/// Reads one certificate, DER.
///
/// # Errors
/// Fails if the certificate cannot be read.
pub fn leaf_of_der(der: &[u8]) -> Result<Leaf, ChainFault> {
    let unreadable = |why| ChainFault::Unreadable { number: 1, why };
    read(&parse_one(der).map_err(unreadable)?).map_err(unreadable)
}

/// Returns the common name of the issuer of the last certificate, with which `preferredChain` is compared.
pub fn top_issuer(pem: &str) -> Option<String> {
    let blocks = blocks(pem).ok()?;
    let parsed = parse_one(blocks.last()?).ok()?;
    Some(x509::common_name(parsed.issuer()))
}

/// Downloads the chain at `url`, or the first alternate whose top issuer is preferred; without a match the default
/// chain. Links of alternates are not followed: they lead back. An alternate that the CA does not serve is absent.
pub async fn choose(
    acme: &dyn Acme,
    url: &str,
    preferred: &str,
) -> Result<CertificateChain, AcmeError> {
    let default = acme.certificate(url).await?;
    let choices: Vec<&str> = choices(preferred).collect();
    // Position of the chain's root among the choices.
    let place = |chain: &CertificateChain| {
        let top = top_issuer(&chain.pem)?;
        choices.iter().position(|choice| *choice == top)
    };
    // If there are several choices, the first is the whole text of the list: hardly the name of a root.
    let first = usize::from(choices.len() > 1);
    let mut best = (place(&default), default.clone());
    for alternate in default.alternates.iter().take(MAX_ALTERNATES) {
        if choices.is_empty() || best.0.is_some_and(|place| place <= first) {
            break;
        }
        match acme.certificate(alternate).await {
            Ok(chain) => {
                let place = place(&chain);
                if place.is_some_and(|place| best.0.is_none_or(|best| place < best)) {
                    best = (place, chain);
                }
            }
            Err(error)
                if matches!(error, AcmeError::Protocol { .. }) || error.retry() == Retry::Never => {
            }
            Err(error) => return Err(error),
        }
    }
    Ok(best.1)
}

/// Reads the certificates' DER, each once. Text between blocks, CRLF and a missing last line end do not matter.
fn blocks(chain: &str) -> Result<Vec<Vec<u8>>, ChainFault> {
    let blocks = pem::parse_many(chain)
        .map_err(|e| ChainFault::Unreadable { number: 1, why: e.to_string() })?;
    let all = blocks.into_iter().filter(|block| block.tag() == TAG).map(pem::Pem::into_contents);
    let mut seen = HashSet::new();
    let all: Vec<Vec<u8>> = all.filter(|der| seen.insert(der.clone())).collect();
    if all.is_empty() { Err(ChainFault::Empty) } else { Ok(all) }
}

fn parse(blocks: &[Vec<u8>]) -> Result<Vec<Certificate<'_>>, ChainFault> {
    blocks
        .iter()
        .enumerate()
        .map(|(index, der)| {
            let parsed =
                parse_one(der).map_err(|why| ChainFault::Unreadable { number: index + 1, why })?;
            Ok(Certificate { der, parsed })
        })
        .collect()
}

pub(super) fn parse_one(der: &[u8]) -> Result<X509Certificate<'_>, String> {
    match X509Certificate::from_der(der) {
        Ok(([], parsed)) => Ok(parsed),
        Ok(_) => Err("there is something behind it".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// Sorts certificates from the leaf upwards, then others that have signed one of the chain too, such as an authority
/// with a second signer. The rest is left out. If no certificate has signed the leaf, all stay in the order served.
fn in_order(mut rest: Vec<Certificate<'_>>, first: usize) -> Vec<Certificate<'_>> {
    let mut current = rest.remove(first);
    let mut ordered = Vec::new();
    while let Some(above) = rest.iter().position(|above| has_signed(above, &current)) {
        ordered.push(std::mem::replace(&mut current, rest.remove(above)));
    }
    let is_unsigned = ordered.is_empty();
    ordered.push(current);
    if is_unsigned {
        ordered.append(&mut rest);
    }
    while let Some(more) = rest.iter().position(|c| ordered.iter().any(|of| has_signed(c, of))) {
        ordered.push(rest.remove(more));
    }
    ordered
}

/// Lists the deviations of a chain (leaf first) from the request; empty if the chain cannot be read.
pub fn remarks(pem: &str, request: &SigningRequest) -> Vec<ChainRemark> {
    let ordered = &request.names;
    let blocks = blocks(pem).unwrap_or_default();
    let certificates = parse(&blocks).unwrap_or_default();
    let Some((first, above)) = certificates.split_first() else { return Vec::new() };
    let Ok(leaf) = read(&first.parsed) else { return Vec::new() };
    let mut wanted = identifiers(ordered);
    wanted.insert(plain(&ordered.common_name));
    let (uris, emails) = (&leaf.names.uris, &leaf.names.email_addresses);
    let found = identifiers(&Names { common_name: String::new(), ..leaf.names.clone() });
    let others = uris.iter().filter(|uri| !ordered.uris.contains(uri));
    let emails = emails.iter().filter(|email| !ordered.email_addresses.contains(email));
    let adds: Vec<String> = found
        .iter()
        .filter(|name| !wanted.contains(*name))
        .chain(others)
        .chain(emails)
        .chain(leaf.other_names.iter().filter(|name| !request.other_names.contains(name)))
        .cloned()
        .collect();
    let is_known = |name: &String| {
        let address = name.parse::<IpAddr>().map(|address| address.to_string());
        let name = address.unwrap_or_else(|_| plain(name));
        name.is_empty() || wanted.contains(&name) || found.contains(&name)
    };
    let own = x509::common_names(first.parsed.subject()).into_iter().find(|name| !is_known(name));
    let is_gap = !above.is_empty() && !above.iter().any(|above| has_signed(above, first));
    [
        (!adds.is_empty()).then_some(ChainRemark::Adds(adds)),
        own.map(ChainRemark::CommonName),
        is_gap.then(|| ChainRemark::Gap(x509::common_name(first.parsed.issuer()))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Compares name and signature; a signature of an algorithm that we cannot check counts as good.
fn has_signed(above: &Certificate<'_>, below: &Certificate<'_>) -> bool {
    if above.parsed.subject().as_raw() != below.parsed.issuer().as_raw() {
        return false;
    }
    let verified = x509::verify(
        above.parsed.public_key(),
        &below.parsed.signature_algorithm,
        &below.parsed.signature_value,
        below.parsed.tbs_certificate.as_ref(),
    );
    matches!(verified, Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm))
}

fn read(certificate: &X509Certificate<'_>) -> Result<Leaf, String> {
    let names = match certificate.subject_alternative_name() {
        Ok(Some(extension)) => AlternativeNames::read(&extension.value.general_names)?,
        Ok(None) => AlternativeNames::default(),
        Err(e) => return Err(e.to_string()),
    };
    let validity = certificate.validity();
    Ok(Leaf {
        not_before: moment(validity.not_before.timestamp())?,
        not_after: moment(validity.not_after.timestamp())?,
        names: names.of(certificate.subject()),
        other_names: names.others,
        public_key: certificate.public_key().raw.to_vec(),
        issuer: x509::common_name(certificate.issuer()),
        renewal_id: x509::renewal_identifier(certificate),
        serial: certificate.raw_serial_as_string().replace(':', ""),
        is_ca: certificate.is_ca(),
    })
}

/// Converts a time of a certificate. "No end" is the last second of the year 9999 (RFC 5280 §4.1.2.5), a day beyond the
/// largest `Timestamp`, which is returned in its place.
pub(super) fn moment(seconds: i64) -> Result<Timestamp, String> {
    let seconds = seconds.min(Timestamp::MAX.as_second());
    Timestamp::from_second(seconds).map_err(|e| e.to_string())
}

/// Checks that the certificate has every name that was ordered.
fn check_names(leaf: &Leaf, request: &SigningRequest) -> Result<(), ChainFault> {
    let mut wanted = identifiers(&request.names);
    wanted.extend(name_in(&request.names.common_name));
    let found = identifiers(&leaf.names);
    if found.is_empty() {
        return Err(ChainFault::Nameless);
    }
    let pairs = [
        (&request.names.uris, &leaf.names.uris),
        (&request.names.email_addresses, &leaf.names.email_addresses),
        (&request.other_names, &leaf.other_names),
    ];
    let others = pairs
        .into_iter()
        .flat_map(|(wanted, found)| wanted.iter().filter(|name| !found.contains(name)).cloned());
    let missing: Vec<String> = wanted.difference(&found).cloned().chain(others).collect();
    if missing.is_empty() { Ok(()) } else { Err(ChainFault::Lacks(missing)) }
}

fn identifiers(names: &Names) -> BTreeSet<String> {
    names.identifiers().iter().map(|name| plain(name)).collect()
}

/// Returns a common name that is a host name or an address, not a title (cert-manager's rule for orders).
fn name_in(common_name: &str) -> Option<String> {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '*');
    let name = common_name.contains('.') && common_name.chars().all(letters);
    (name || common_name.parse::<IpAddr>().is_ok()).then(|| plain(common_name))
}

fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {

    use parking_lot::Mutex;
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

    use super::*;
    use crate::acme::keys::{KeyEncoding, PrivateKey};
    use crate::acme::{
        AccountKey, AccountReply, AuthorizationReply, ChallengeReply, Directory, NewOrder,
        OrderReply, Registration, csr,
    };
    use crate::model::KeyAlgorithm;
    use crate::model::certificate::CertificateSpec;
    use crate::model::order_budget::Permit;

    const NOW: &str = "2026-11-20T12:00:00Z";

    /// root → intermediate → leaf for `a.example` and `192.0.2.1`, each as PEM.
    struct Bed {
        request: SigningRequest,
        leaf: String,
        intermediate: String,
        root: String,
        stranger: String,
        /// The intermediate, signed by another root.
        cross: String,
    }

    fn authority(name: &str) -> (CertificateParams, KeyPair) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (params, KeyPair::generate().unwrap())
    }

    fn bed(names: &[&str], from: i32, to: i32) -> Bed {
        bed_of(names, |leaf| {
            leaf.not_before = rcgen::date_time_ymd(from, 1, 1);
            leaf.not_after = rcgen::date_time_ymd(to, 1, 1);
        })
    }

    /// One whose leaf was changed like that before it was signed.
    fn bed_of(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Bed {
        let key = PrivateKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap();
        let spec = CertificateSpec {
            common_name: "A.example".to_owned(),
            ip_addresses: vec!["192.0.2.1".to_owned()],
            ..CertificateSpec::default()
        };
        let request = csr::sign(&spec, &key).unwrap();

        let (root, root_key) = authority("Root");
        let root_pem = root.self_signed(&root_key).unwrap().pem();
        let root = Issuer::new(root, root_key);
        let (intermediate, intermediate_key) = authority("Intermediate");
        let intermediate_pem = intermediate.signed_by(&intermediate_key, &root).unwrap().pem();
        let (other, other_key) = authority("Other root");
        let other = Issuer::new(other, other_key);
        let cross = intermediate.signed_by(&intermediate_key, &other).unwrap().pem();
        let intermediate = Issuer::new(intermediate, intermediate_key);
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let mut leaf = CertificateParams::new(names).unwrap();
        leaf.distinguished_name = rcgen::DistinguishedName::new();
        leaf.distinguished_name.push(DnType::CommonName, "a.example");
        leaf.not_before = rcgen::date_time_ymd(2026, 1, 1);
        leaf.not_after = rcgen::date_time_ymd(2027, 1, 1);
        change(&mut leaf);
        let public = KeyPair::from_pem(&key.to_pem(KeyEncoding::Pkcs8).unwrap()).unwrap();
        let leaf = leaf.signed_by(&public, &intermediate).unwrap().pem();
        // Of the same name, but another key.
        let (stranger, stranger_key) = authority("Intermediate");
        let stranger = stranger.self_signed(&stranger_key).unwrap().pem();
        Bed { request, leaf, intermediate: intermediate_pem, root: root_pem, stranger, cross }
    }

    fn good() -> Bed {
        bed(&["a.example", "192.0.2.1"], 2026, 2027)
    }

    fn run(bed: &Bed, chain: &str) -> Result<CheckedChain, ChainFault> {
        check(chain, &bed.request, NOW.parse().unwrap())
    }

    #[test]
    fn every_shape_of_a_good_chain_becomes_the_same() {
        let bed = good();
        let (leaf, intermediate, root) = (&bed.leaf, &bed.intermediate, &bed.root);
        let lf = |pem: &str| pem.replace("\r\n", "\n");
        let whole = lf(&format!("{leaf}{intermediate}{root}"));
        for chain in [
            format!("{leaf}{intermediate}{root}"),
            format!("{leaf}\n\n{intermediate}\n{root}"),
            whole.replace('\n', "\r\n"),
            whole.trim_end().to_owned(),
            format!("subject=a.example\n{leaf}issuer: x\n{intermediate}# end\n{root}text"),
            format!("{root}{intermediate}{leaf}"),
            format!("{intermediate}{leaf}{root}"),
            format!("{leaf}{leaf}{intermediate}{intermediate}{root}"),
        ] {
            assert_eq!(run(&bed, &chain).unwrap().pem, whole);
        }
        let alone = run(&bed, leaf).unwrap();
        assert_eq!(alone.pem, lf(leaf));
        assert_eq!(alone.leaf.names.dns_names, ["a.example"]);
        assert_eq!(alone.leaf.issuer, "Intermediate");
        assert_eq!(alone.leaf.not_after.to_string(), "2027-01-01T00:00:00Z");
        assert_eq!(alone.leaf, super::leaf(leaf).unwrap());
    }

    #[test]
    fn a_chain_loses_what_signs_nothing_in_it() {
        let bed = good();
        let chain = format!("{}{}{}{}", bed.leaf, bed.stranger, bed.intermediate, good().root);
        let pem = run(&bed, &chain).unwrap().pem;
        assert_eq!(pem, format!("{}{}", bed.leaf, bed.intermediate).replace("\r\n", "\n"));
        let cross = format!("{}{}{}{}", bed.leaf, bed.intermediate, bed.cross, bed.root);
        let pem = run(&bed, &cross).unwrap().pem;
        assert_eq!(pem.matches("BEGIN").count(), 4, "an authority that two have signed");
    }

    #[test]
    fn a_leaf_that_says_more_than_was_ordered_is_taken_and_told() {
        let names = ["a.example", "192.0.2.1"];
        let san = |san| bed_of(&names, |leaf| leaf.subject_alt_names.push(san));
        let common_name = |name: &str| {
            bed_of(&names, |leaf| leaf.distinguished_name.push(DnType::CommonName, name))
        };
        for (bed, part) in [
            (
                bed_of(&names, |leaf| leaf.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)),
                "CA:TRUE",
            ),
            (bed_of(&[], |_| ()), "has no subject alternative names"),
        ] {
            let fault = run(&bed, &bed.leaf).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
        let told = |bed: &Bed| {
            let checked = run(bed, &bed.leaf).unwrap();
            remarks(&checked.pem, &bed.request)
        };
        let more = |name: &str| ChainRemark::Adds(vec![name.to_owned()]);
        for (bed, expected) in [
            (common_name("evil.example"), ChainRemark::CommonName("evil.example".into())),
            (
                common_name("Generic ACME Certificate"),
                ChainRemark::CommonName("Generic ACME Certificate".into()),
            ),
            (san(SanType::Rfc822Name("me@a.example".try_into().unwrap())), more("me@a.example")),
            (san(SanType::URI("spiffe://a/b".try_into().unwrap())), more("spiffe://a/b")),
            (san(SanType::DnsName("www.a.example".try_into().unwrap())), more("www.a.example")),
            (san(SanType::IpAddress("192.0.2.2".parse().unwrap())), more("192.0.2.2")),
        ] {
            assert_eq!(told(&bed), [expected]);
        }
        for bed in [
            common_name("A.example"),
            common_name("192.0.2.1"),
            common_name(""),
            bed_of(&names, |leaf| leaf.distinguished_name.push(DnType::OrganizationName, "Acme")),
            bed_of(&names, |leaf| leaf.is_ca = IsCa::ExplicitNoCa),
        ] {
            assert_eq!(told(&bed), []);
        }
    }

    #[test]
    fn a_chain_with_a_gap_is_taken_and_told() {
        let bed = good();
        let gap = [ChainRemark::Gap("Intermediate".into())];
        for (above, expected) in
            [(&bed.stranger, &gap[..]), (&bed.root, &gap), (&bed.intermediate, &[])]
        {
            let chain = format!("{}{above}", bed.leaf);
            let checked = run(&bed, &chain).unwrap();
            assert_eq!(checked.pem, chain.replace("\r\n", "\n"));
            assert_eq!(remarks(&checked.pem, &bed.request), expected);
        }
        assert_eq!(remarks(&bed.leaf, &bed.request), [], "whoever serves one alone may mean it");
    }

    #[test]
    fn a_certificate_without_end_is_read() {
        let endless = bed(&["a.example", "192.0.2.1"], 2026, 9999);
        let endless = run(&endless, &endless.leaf).unwrap();
        assert_eq!(endless.leaf.not_after.to_string(), "9999-01-01T00:00:00Z");
        let last = bed_of(&["a.example", "192.0.2.1"], |leaf| {
            leaf.not_after =
                rcgen::date_time_ymd(9999, 12, 31) + std::time::Duration::from_secs(86_399);
        });
        let read = run(&last, &last.leaf).unwrap().leaf;
        assert_eq!(read.not_after.to_string(), "9999-12-30T22:00:00Z");
    }

    #[test]
    fn a_fault_names_some_of_many_names() {
        let names = (0..60_000).map(|number| format!("n{number}.example"));
        let fault = ChainFault::Lacks(names.collect());
        let told = fault.to_string();
        assert!(told.len() < 500 && told.ends_with("n19.example, and 59980 more"), "{told}");
    }

    #[test]
    fn a_chain_without_end_is_refused_before_it_is_put_in_order() {
        let bed = good();
        let key = KeyPair::generate().unwrap();
        let others = (0..MAX_CHAIN_CERTIFICATES).map(|number| {
            let (mut params, _) = authority("Intermediate");
            params.serial_number = Some((number as u64).into());
            params.self_signed(&key).unwrap().pem()
        });
        let others: String = others.collect();
        let fault = run(&bed, &format!("{}{others}", bed.leaf)).unwrap_err();
        assert_eq!(fault, ChainFault::TooLong(MAX_CHAIN_CERTIFICATES + 1));
        let repeated = format!("{}{}", bed.leaf, bed.intermediate.repeat(MAX_CHAIN_CERTIFICATES));
        assert!(run(&bed, &repeated).is_ok(), "none counts twice");
    }

    #[test]
    fn what_is_not_what_we_asked_for_is_refused() {
        let this = good();
        let other = good();
        let broken = this.leaf.replacen("MII", "MIJ", 1);
        for (chain, part) in [
            ("", "no certificate"),
            ("<html>", "no certificate"),
            (&broken, "cannot read certificate 1"),
            (&other.leaf, "for the key"),
            (&this.intermediate, "for the key"),
        ] {
            let fault = run(&this, chain).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
        for (bed, part) in [
            (bed(&["a.example"], 2026, 2027), "lacks 192.0.2.1"),
            (bed(&["b.example", "192.0.2.1"], 2026, 2027), "lacks a.example"),
            (bed(&["a.example", "192.0.2.1"], 2024, 2025), "expired at 2025-01-01T00:00:00Z"),
            (bed(&["a.example", "192.0.2.1"], 2027, 2028), "before 2027-01-01T00:00:00Z"),
        ] {
            let fault = run(&bed, &bed.leaf).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn a_day_of_wrong_clock_does_no_harm() {
        for (now, taken) in [
            ("2025-12-31T01:00:00Z", true),
            ("2025-12-30T01:00:00Z", false),
            ("2027-01-01T23:00:00Z", true),
            ("2027-01-02T01:00:00Z", false),
        ] {
            let bed = good();
            let checked = check(&bed.leaf, &bed.request, now.parse().unwrap());
            assert_eq!(checked.is_ok(), taken, "{now}");
        }
    }

    #[test]
    fn a_title_is_no_name() {
        for (common_name, expected) in [
            ("A.example.", Some("a.example")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("::1", Some("::1")),
            ("localhost", None),
            ("Acme Inc. Web", None),
            ("", None),
        ] {
            assert_eq!(name_in(common_name).as_deref(), expected, "{common_name}");
        }
    }

    /// Serves chains by URL and notes what was asked; every other request is a mistake.
    #[derive(Debug)]
    struct Shelf {
        chains: Vec<(String, CertificateChain)>,
        asked: Mutex<Vec<String>>,
    }

    #[async_trait::async_trait]
    impl Acme for Shelf {
        async fn certificate(&self, url: &str) -> Result<CertificateChain, AcmeError> {
            self.asked.lock().push(url.to_owned());
            let found =
                self.chains.iter().find(|(at, _)| at == url).map(|(_, chain)| chain.clone());
            Ok(found.unwrap())
        }
        async fn directory(&self) -> Result<std::sync::Arc<Directory>, AcmeError> {
            unreachable!()
        }
        async fn register(&self, _: &Registration) -> Result<AccountReply, AcmeError> {
            unreachable!()
        }
        async fn update_contact(&self, _: &[String]) -> Result<AccountReply, AcmeError> {
            unreachable!()
        }
        async fn change_key(&self, _: &AccountKey) -> Result<(), AcmeError> {
            unreachable!()
        }
        async fn create_order(&self, _: &NewOrder, _: Permit) -> Result<OrderReply, AcmeError> {
            unreachable!()
        }
        async fn order(&self, _: &str) -> Result<OrderReply, AcmeError> {
            unreachable!()
        }
        async fn authorization(&self, _: &str) -> Result<AuthorizationReply, AcmeError> {
            unreachable!()
        }
        async fn accept(&self, _: &str) -> Result<ChallengeReply, AcmeError> {
            unreachable!()
        }
        async fn finalize(&self, _: &str, _: &[u8]) -> Result<OrderReply, AcmeError> {
            unreachable!()
        }
        fn thumbprint(&self) -> &str {
            unreachable!()
        }
        fn account_url(&self) -> Option<String> {
            unreachable!()
        }
    }

    #[tokio::test]
    async fn the_preferred_chain_is_the_first_that_fits() {
        let bed = good();
        let default = bed.leaf.clone();
        let long = format!("{}{}", bed.leaf, bed.intermediate);
        for (preferred, answer, asked) in [
            ("", &default, &["0"][..]),
            ("Intermediate", &default, &["0"]),
            ("Root", &long, &["0", "1"]),
            ("Root,Intermediate", &long, &["0", "1"]),
            ("Intermediate,Root", &default, &["0"]),
            ("Nobody, Root", &long, &["0", "1", "2", "2", "2", "2", "2", "2", "2", "2", "2"]),
            ("Nobody", &default, &["0", "1", "2", "2", "2", "2", "2", "2", "2", "2", "2"]),
        ] {
            let chain = |pem: &str, alternates: &[&str]| CertificateChain {
                pem: pem.to_owned(),
                alternates: alternates.iter().map(|a| (*a).to_owned()).collect(),
            };
            let many = [&["1"][..], &["2"; 99]].concat();
            let shelf = Shelf {
                chains: vec![
                    ("0".to_owned(), chain(&default, &many)),
                    ("1".to_owned(), chain(&long, &["0"])),
                    ("2".to_owned(), chain(&default, &["0"])),
                ],
                asked: Mutex::default(),
            };
            let chosen = choose(&shelf, "0", preferred).await.unwrap();
            assert_eq!(&chosen.pem, answer, "{preferred}");
            assert_eq!(*shelf.asked.lock(), asked, "{preferred}");
        }
    }
}
