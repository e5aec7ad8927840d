//! Persistent records (dns-persist-01): the content that each draft requires, and the faults of a record.
//!
//! Three drafts of draft-ietf-acme-dns-persist are in use, and none takes the challenges of another. The form of a
//! challenge shows which draft the CA implements.
//!
//! A record is published only if no good one exists, and never removed: the next order needs the record. Records of
//! names above do not count, because no challenge says whether the CA takes them (draft -02 §6 says MAY; Pebble and
//! Boulder do not).

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use url::Url;

use super::names::DnsName;

/// Most issuer domain names in a challenge.
const MAX_NAMES: usize = 10;
/// Time before a record's end from which a warning is given.
const WARNING_PERIOD: SignedDuration = SignedDuration::from_hours(14 * 24);
/// Text between prefix and digest if an account is named by its hash.
const HASH_MARK: &str = "sha-256/";

/// Content of a CA's challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Names of the CA, of which a record has one.
    pub issuer_domain_names: Vec<String>,
    /// Form in which a record names the account.
    pub account: AccountForm,
}

/// Forms in which a record names the account; each draft has its own form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AccountForm {
    /// By the account's URL, which the challenge does not repeat (draft -00).
    Url,
    /// By the URI that the challenge gives (draft -01).
    Given(String),
    /// By a hash behind the prefix that the CA's directory has (draft -02).
    Hashed(Option<String>),
}

/// An account at a CA.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// Account URL.
    pub url: &'a str,
    /// JWK thumbprint of the account's key (RFC 7638), base64url.
    pub thumbprint: &'a str,
    /// URL of the CA's directory.
    pub directory: &'a str,
}

impl Account<'_> {
    /// Returns a URL of the account that a record may name. A record stays, and lets its account have certificates: a CA
    /// that could name an account at another CA would let that account have them. A directory may have a port of its own.
    fn at_its_directory(self, uri: &str) -> Result<String, String> {
        let host = |text: &str| Some(Url::parse(text).ok()?.host_str()?.to_owned());
        if is_plain(uri) && host(uri).is_some_and(|at| host(self.directory) == Some(at)) {
            return Ok(uri.to_owned());
        }
        Err(format!(
            "it names the account {uri:?}, which is not at the host of its directory {}: a record for it might let others have certificates",
            self.directory
        ))
    }
}

/// Records that a CA takes for one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Persist {
    /// Names of the CA, of which a record has one.
    pub issuer_domain_names: Vec<String>,
    /// Permitted values of `accounturi`; the first is written.
    pub account_uris: Vec<String>,
}

impl Persist {
    /// Returns the records that an offer takes for a name without `*.`.
    ///
    /// # Errors
    /// Fails with a description of the part that the CA leaves out, or gives in a wrong form.
    pub fn of(offer: &Offer, account: Account<'_>, name: &str) -> Result<Self, String> {
        let names = &offer.issuer_domain_names;
        if names.is_empty() || names.len() > MAX_NAMES {
            let count = names.len();
            return Err(format!(
                "its dns-persist-01 challenge has {count} issuer domain names, and must have 1 to {MAX_NAMES}"
            ));
        }
        if let Some(odd) = names.iter().find(|name| DnsName::parse(name).is_err()) {
            return Err(format!(
                "its dns-persist-01 challenge has an issuer domain name that is none: {odd:?}"
            ));
        }
        let account_uris = match &offer.account {
            AccountForm::Url if account.url.is_empty() => {
                return Err("the URL of the account is not known".to_owned());
            }
            AccountForm::Url => vec![account.at_its_directory(account.url)?],
            AccountForm::Given(uri) => vec![account.at_its_directory(uri)?],
            AccountForm::Hashed(None) => {
                return Err("its directory lacks meta.accountHashPrefix".to_owned());
            }
            AccountForm::Hashed(Some(prefix)) if !is_plain(prefix) => {
                return Err(format!("its directory has an odd meta.accountHashPrefix: {prefix:?}"));
            }
            AccountForm::Hashed(Some(prefix)) => {
                // A hash over `*` holds in every zone.
                let uri = |domain: &str| format!("{prefix}{HASH_MARK}{}", hash(account, domain));
                vec![uri(&name.to_ascii_lowercase()), uri("*")]
            }
        };
        Ok(Self { issuer_domain_names: names.clone(), account_uris })
    }

    /// Returns the record to make; with `wildcard` the record holds for all names below, too.
    pub fn record(&self, wildcard: bool) -> String {
        PersistRecord::default().corrected(self, wildcard, Timestamp::UNIX_EPOCH)
    }
}

/// Reports whether a text can stand in a record as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\;".contains(&byte))
}

/// Returns the hash by which draft -02 names an account.
fn hash(account: Account<'_>, domain: &str) -> String {
    let length = u8::try_from(domain.len()).unwrap_or(u8::MAX);
    let parts =
        [&[length], domain.as_bytes(), account.thumbprint.as_bytes(), account.url.as_bytes()];
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, &parts.concat()))
}

fn is_hashed(uri: &str) -> bool {
    uri.rsplit_once(HASH_MARK).is_some_and(|(_, digest)| digest.len() == 43)
}

/// Requirements for a record at a moment.
#[derive(Clone, Copy, Debug)]
pub struct RecordRequirements<'a> {
    /// Records that the CA takes.
    pub persist: &'a Persist,
    /// Whether the record has to hold for a wildcard.
    pub wildcard: bool,
    /// Moment at which the record has to hold.
    pub now: Timestamp,
}

impl RecordRequirements<'_> {
    /// Reports whether the CA would take a record.
    pub fn is_met_by(&self, text: &str) -> bool {
        self.faults(text).is_empty()
    }

    /// Returns all faults of a record, in words that go on after the record's text.
    pub fn faults(&self, text: &str) -> Vec<String> {
        self.faults_by_part(text).into_iter().map(|(_, fault)| fault).collect()
    }

    /// Returns all faults of a record, each with the part of the record that has the fault.
    pub fn faults_by_part(&self, text: &str) -> Vec<(PersistPart, String)> {
        let record = PersistRecord::parse(text);
        let malformed = record.malformed.iter().map(|fault| (PersistPart::Form, fault.clone()));
        let mut faults: Vec<_> = malformed.collect();
        faults.extend(self.of_issuer(&record).map(|fault| (PersistPart::Issuer, fault)));
        faults.extend(self.of_account(&record).map(|fault| (PersistPart::Account, fault)));
        let is_wild = record.is_wildcard();
        let policy = match record.policy {
            _ if is_wild || !self.wildcard => None,
            None => Some("lacks policy=wildcard, which a wildcard needs".to_owned()),
            Some(policy) => Some(format!(
                "has policy={policy}, which counts as none: a wildcard needs policy=wildcard"
            )),
        };
        faults.extend(policy.map(|fault| (PersistPart::Policy, fault)));
        match record.until {
            Some(Err(text)) => {
                let fault = format!("has persistUntil={text}, which is no number of seconds");
                faults.push((PersistPart::Form, fault));
            }
            Some(Ok(until)) if until < self.now => {
                let fault = format!("is over since {until:.0} (persistUntil)");
                faults.push((PersistPart::End, fault));
            }
            Some(Ok(_)) | None => {}
        }
        faults
    }

    /// Returns the record as it should be; its good parts stay.
    pub fn corrected(&self, text: &str) -> String {
        PersistRecord::parse(text).corrected(self.persist, self.wildcard, self.now)
    }

    /// Returns the end of a good record, if that end is near.
    pub fn ends_soon(&self, text: &str) -> Option<Timestamp> {
        let until = PersistRecord::parse(text).until?.ok()?;
        (until.duration_since(self.now) < WARNING_PERIOD).then_some(until)
    }

    fn of_issuer(&self, record: &PersistRecord<'_>) -> Option<String> {
        let names = &self.persist.issuer_domain_names;
        let is_ours = names.iter().any(|name| name.eq_ignore_ascii_case(record.issuer));
        (!is_ours).then(|| match record.issuer {
            "" => format!("names no CA, and must name {}", names.join(" or ")),
            other => format!("is for the CA {other}, and must be for {}", names.join(" or ")),
        })
    }

    fn of_account(&self, record: &PersistRecord<'_>) -> Option<String> {
        let wanted = &self.persist.account_uris;
        let Some(uri) = record.account else { return Some("lacks accounturi".to_owned()) };
        if wanted.iter().any(|wanted| wanted == uri) {
            return None;
        }
        let first = wanted.first().map_or("", String::as_str);
        let why = match (is_hashed(uri), is_hashed(first)) {
            (true, false) => "; that is the form of a newer draft, which this CA does not speak",
            (false, true) => "; that is the form of an older draft, which this CA does not take",
            (true, true) | (false, false) => "",
        };
        Some(format!("has accounturi={uri}, and must have accounturi={first}{why}"))
    }
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistPart {
    /// Form of the record.
    Form,
    /// The name of the CA.
    Issuer,
    /// `accounturi`.
    Account,
    /// `policy`.
    Policy,
    /// `persistUntil`.
    End,
}

/// Record, read as RFC 8659 §4.2 has it, with the faults of its form.
#[derive(Debug, Default)]
struct PersistRecord<'a> {
    issuer: &'a str,
    account: Option<&'a str>,
    policy: Option<&'a str>,
    /// End of the record, or a text that is no moment.
    until: Option<Result<Timestamp, &'a str>>,
    malformed: Vec<String>,
}

impl<'a> PersistRecord<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']));
        let mut record = Self { issuer: parts.next().unwrap_or_default(), ..Self::default() };
        for part in parts {
            if let Err(why) = record.take(part)
                && !record.malformed.contains(&why)
            {
                record.malformed.push(why);
            }
        }
        record
    }

    /// Reads one parameter; unknown tags are left alone.
    fn take(&mut self, part: &'a str) -> Result<(), String> {
        if part.is_empty() {
            return Err("has an empty parameter: no semicolon may stand at the end".to_owned());
        }
        let Some((tag, value)) = part.split_once('=') else {
            return Err(format!("has \"{part}\", which is no parameter: it lacks ="));
        };
        let (tag, value) =
            (tag.trim_end_matches([' ', '\t']), value.trim_start_matches([' ', '\t']));
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("has a blank or a character outside ASCII in its {tag}"));
        }
        let twice = match tag.to_ascii_lowercase().as_str() {
            "accounturi" => self.account.replace(value).is_some(),
            "policy" => self.policy.replace(value).is_some(),
            "persistuntil" => {
                let seconds = value.bytes().all(|byte| byte.is_ascii_digit()).then_some(value);
                let moment = seconds.and_then(|seconds| seconds.parse().ok());
                let moment = moment.and_then(|seconds| Timestamp::from_second(seconds).ok());
                self.until.replace(moment.ok_or(value)).is_some()
            }
            _ => false,
        };
        if twice { Err(format!("has {tag} twice")) } else { Ok(()) }
    }

    fn is_wildcard(&self) -> bool {
        self.policy.is_some_and(|policy| policy.eq_ignore_ascii_case("wildcard"))
    }

    fn corrected(&self, persist: &Persist, wildcard: bool, now: Timestamp) -> String {
        let names = &persist.issuer_domain_names;
        let own = names.iter().find(|name| name.eq_ignore_ascii_case(self.issuer));
        let issuer = own.or_else(|| names.first()).map_or("", String::as_str);
        let uris = &persist.account_uris;
        let own = uris.iter().find(|uri| Some(uri.as_str()) == self.account);
        let account = own.or_else(|| uris.first()).map_or("", String::as_str);
        let policy = if wildcard || self.is_wildcard() { "; policy=wildcard" } else { "" };
        let until = self.until.and_then(Result::ok).filter(|until| *until > now);
        let until = until.map(|until| format!("; persistUntil={}", until.as_second()));
        format!("{issuer}; accounturi={account}{policy}{}", until.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://ca.example/acct/123";
    const ACCOUNT: Account<'static> = Account {
        url: URL,
        thumbprint: "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
        directory: "https://ca.example:14000/dir",
    };
    /// Of draft -02, for example.com and for all zones.
    const HASHES: [&str; 2] = [
        "https://ca.example/h/sha-256/5SQm7n6tPh2-PlLbCKGnViTXX5z19SCN4cPGQHSk-kw",
        "https://ca.example/h/sha-256/NpDnSwUthQK8zCgFdefYxAdAVPnygMLbs9US6oO-5ug",
    ];

    fn persist(account: AccountForm) -> Result<Persist, String> {
        let issuer_domain_names = vec!["ca.example".to_owned(), "other.example".to_owned()];
        Persist::of(&Offer { issuer_domain_names, account }, ACCOUNT, "Example.com")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Faults of a record for a name, or a wildcard, at second 1000; and the corrected record.
    fn check(account: AccountForm, wildcard: bool, text: &str) -> (Vec<String>, String) {
        let persist = persist(account).unwrap();
        let demand = RecordRequirements { persist: &persist, wildcard, now: at(1000) };
        let faults = demand.faults(text);
        assert_eq!(demand.is_met_by(text), faults.is_empty());
        let corrected = demand.corrected(text);
        assert_eq!(demand.faults(&corrected), [] as [&str; 0], "{corrected}");
        (faults, corrected)
    }

    fn check_faults(text: &str, expected: &[&str]) {
        assert_eq!(check(AccountForm::Url, true, text).0, expected, "{text}");
    }

    #[test]
    fn each_draft_names_the_account_in_its_own_way() {
        let uris = |account| persist(account).map(|persist| persist.account_uris);
        assert_eq!(uris(AccountForm::Url), Ok(vec![URL.to_owned()]));
        let given = "https://ca.example/other/1".to_owned();
        assert_eq!(uris(AccountForm::Given(given.clone())), Ok(vec![given]));
        let prefix = Some("https://ca.example/h/".to_owned());
        assert_eq!(uris(AccountForm::Hashed(prefix)), Ok(HASHES.map(str::to_owned).to_vec()));
        let why = "its directory lacks meta.accountHashPrefix".to_owned();
        assert_eq!(uris(AccountForm::Hashed(None)), Err(why));
    }

    #[test]
    fn an_offer_without_a_ca_or_an_account_is_refused() {
        let offer = |count: usize, url| {
            let issuer_domain_names = vec!["ca.example".to_owned(); count];
            let offer = Offer { issuer_domain_names, account: AccountForm::Url };
            Persist::of(&offer, Account { url, ..ACCOUNT }, "example.com")
        };
        assert!(offer(1, URL).is_ok() && offer(10, URL).is_ok());
        assert!(offer(0, URL).unwrap_err().contains("0 issuer domain names"));
        assert!(offer(11, URL).is_err());
        assert_eq!(offer(1, ""), Err("the URL of the account is not known".to_owned()));
    }

    #[test]
    fn a_ca_cannot_have_a_record_made_for_an_account_elsewhere() {
        for uri in [
            "https://other.example/acct/1",
            "https://ca.example/acct/1;policy=wildcard",
            "https://ca.example/acct/1\"\nwww TXT \"x",
            "ca.example",
        ] {
            let refusal = persist(AccountForm::Given(uri.to_owned())).unwrap_err();
            assert!(refusal.contains("is not at the host of its directory"), "{refusal}");
            let offer = Offer {
                issuer_domain_names: vec!["ca.example".to_owned()],
                account: AccountForm::Url,
            };
            Persist::of(&offer, Account { url: uri, ..ACCOUNT }, "example.com").unwrap_err();
        }
        let prefix = Some("https://ca.example/\";".to_owned());
        assert!(persist(AccountForm::Hashed(prefix)).unwrap_err().contains("accountHashPrefix"));
        let offer = Offer {
            issuer_domain_names: vec!["ca.example; policy=wildcard".to_owned()],
            account: AccountForm::Url,
        };
        let refusal = Persist::of(&offer, ACCOUNT, "example.com").unwrap_err();
        assert!(refusal.contains("an issuer domain name that is none"), "{refusal}");
    }

    #[test]
    fn the_record_to_make_is_taken() {
        let persist = persist(AccountForm::Url).unwrap();
        assert_eq!(persist.record(false), format!("ca.example; accounturi={URL}"));
        let record = persist.record(true);
        assert_eq!(record, format!("ca.example; accounturi={URL}; policy=wildcard"));
        check_faults(&record, &[]);
    }

    #[test]
    fn case_blanks_and_unknown_tags_do_not_matter() {
        for text in [
            "CA.example;AccountURI=https://ca.example/acct/123;POLICY=WildCard;x=1;x=2",
            " other.example ;\taccounturi = https://ca.example/acct/123 ; policy=wildcard",
            "ca.example; policy=wildcard; accounturi=https://ca.example/acct/123; persistUntil=1000",
        ] {
            check_faults(text, &[]);
        }
        let plain = format!("ca.example; accounturi={URL}");
        assert_eq!(check(AccountForm::Url, false, &plain).0, [] as [&str; 0]);
        let hashed = AccountForm::Hashed(Some("https://ca.example/h/".to_owned()));
        for hash in HASHES {
            let text = format!("ca.example; accounturi={hash}");
            assert_eq!(check(hashed.clone(), false, &text), (vec![], text));
        }
    }

    #[test]
    fn what_is_malformed_is_told() {
        let good = format!("ca.example; accounturi={URL}; policy=wildcard");
        let empty = "has an empty parameter: no semicolon may stand at the end";
        check_faults(&format!("{good};"), &[empty]);
        check_faults(&format!("{good};; "), &[empty]);
        check_faults(
            &format!("{good}; forever"),
            &["has \"forever\", which is no parameter: it lacks ="],
        );
        check_faults(&format!("{good}; Policy=wildcard"), &["has Policy twice"]);
        check_faults(
            &format!("{good}; note=a b"),
            &["has a blank or a character outside ASCII in its note"],
        );
        check_faults(
            &format!("{good}; persistUntil=soon"),
            &["has persistUntil=soon, which is no number of seconds"],
        );
    }

    #[test]
    fn another_ca_another_account_and_a_missing_policy_are_told() {
        check_faults(
            &format!("ca.test; accounturi={URL}"),
            &[
                "is for the CA ca.test, and must be for ca.example or other.example",
                "lacks policy=wildcard, which a wildcard needs",
            ],
        );
        check_faults(
            "",
            &[
                "names no CA, and must name ca.example or other.example",
                "lacks accounturi",
                "lacks policy=wildcard, which a wildcard needs",
            ],
        );
        check_faults(
            "ca.example; accounturi=https://ca.example/acct/12; policy=all",
            &[
                "has accounturi=https://ca.example/acct/12, and must have accounturi=https://ca.example/acct/123",
                "has policy=all, which counts as none: a wildcard needs policy=wildcard",
            ],
        );
    }

    #[test]
    fn a_record_of_another_draft_is_told() {
        let hashed = AccountForm::Hashed(Some("https://ca.example/h/".to_owned()));
        let (faults, corrected) = check(hashed, false, &format!("ca.example; accounturi={URL}"));
        assert!(faults[0].ends_with("the form of an older draft, which this CA does not take"));
        assert_eq!(corrected, format!("ca.example; accounturi={}", HASHES[0]));
        let text = format!("ca.example; accounturi={}", HASHES[0]);
        let (faults, corrected) = check(AccountForm::Url, false, &text);
        assert!(faults[0].ends_with("the form of a newer draft, which this CA does not speak"));
        assert_eq!(corrected, format!("ca.example; accounturi={URL}"));
    }

    #[test]
    fn a_record_ends_with_its_second_and_is_warned_of_before() {
        let text = |until: i64| format!("ca.example; accounturi={URL}; persistUntil={until}");
        let (faults, corrected) = check(AccountForm::Url, false, &text(999));
        assert_eq!(faults, ["is over since 1970-01-01T00:16:39Z (persistUntil)"]);
        assert_eq!(corrected, format!("ca.example; accounturi={URL}"), "without an end");
        assert_eq!(check(AccountForm::Url, false, &text(1000)).0, [] as [&str; 0]);
        let persist = persist(AccountForm::Url).unwrap();
        let demand = RecordRequirements { persist: &persist, wildcard: true, now: at(1000) };
        let soon = 1000 + 14 * 24 * 3600;
        assert_eq!(demand.ends_soon(&text(soon - 1)), Some(at(soon - 1)));
        assert_eq!(demand.ends_soon(&text(soon)), None);
        assert_eq!(
            demand.corrected(&text(soon)),
            format!("ca.example; accounturi={URL}; policy=wildcard; persistUntil={soon}")
        );
    }
}
