//! Choice of the Issuer for a certificate of a few names: an Issuer of the store that has all that is asked for, else
//! an additional one. An Issuer is changed only if no other certificate uses it.
//!
//! Contact, roots and external account that are not given come from the Issuer that has the account at that CA, so that
//! all Issuers of the CA share one account.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::acme_server::object_name;
use super::issuer::{AcmeIssuer, CHALLENGE_TYPE, Issuer};
use super::key::Kind;
use super::memory::is_ours;
use super::metadata::Record;
use super::request::CERTIFICATE_NAME;

/// Most letters of a profile in the name of an Issuer.
const MAX_PROFILE_LETTERS: usize = 30;

/// Objects of a namespace of a store.
#[derive(Clone, Debug, Default)]
pub struct StoredObjects {
    /// Issuers of the namespace.
    pub issuers: Vec<Record>,
    /// Certificates and CertificateRequests of the namespace.
    pub wanted: Vec<Record>,
    /// Secrets of credentials by name, `None` for a Secret that does not exist; Secrets that may not be read are left out.
    pub secrets: BTreeMap<String, Option<Record>>,
}

/// Change of a certificate from the Issuer it was ordered from to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Name of the earlier Issuer.
    pub from: String,
    /// Name of the new Issuer.
    pub to: String,
    /// Differences of the earlier Issuer from the request, as fields of a manifest.
    pub fields: Vec<&'static str>,
}

/// Returns the names of the Secrets that [`settle`] compares.
pub fn secrets_of_interest(wanted: &[Record], base: &str, issuers: &[Record]) -> BTreeSet<String> {
    let Some(wish) = Wish::read(wanted, base) else { return BTreeSet::new() };
    let candidates = wish.candidates(issuers);
    let names = |issuer: &Candidate<'_>| {
        wish.secrets.iter().map(|secret| secret.name_at(issuer.name)).collect::<Vec<_>>()
    };
    candidates.iter().flat_map(names).collect()
}

/// Gives the objects that were made of names their Issuer, and returns the move if that Issuer is another one than
/// before; `base` is the name of the first Issuer of the CA.
pub fn settle(wanted: &mut [Record], base: &str, stored: &StoredObjects) -> Option<Move> {
    let wish = Wish::read(wanted, base)?;
    let candidates = wish.candidates(&stored.issuers);
    let own = wish.issuer_before(&stored.wanted);
    let own = candidates.iter().find(|candidate| Some(candidate.name) == own.as_deref());
    let fits = |candidate: &&Candidate<'_>| wish.differences(candidate, stored).is_empty();
    let chosen = own.into_iter().chain(&candidates).find(fits);
    let changed = own.filter(|own| {
        let differences = wish.differences(own, stored);
        let is_same_certificate = differences.iter().all(|field| !SHAPING.contains(field));
        wish.is_alone_on(own.name, &stored.wanted)
            && (is_same_certificate || !wish.is_issued(&stored.wanted))
    });
    let (name, issuer) = match (chosen, changed) {
        (Some(chosen), _) => (chosen.name.to_owned(), wish.as_stored(chosen)),
        (None, Some(own)) => (own.name.to_owned(), wish.build(own.name, &candidates, Some(own))),
        (None, None) => {
            let name = wish.free_name(&stored.issuers);
            let issuer = wish.build(&name, &candidates, None);
            (name, issuer)
        }
    };
    let moved = own.filter(|own| own.name != name).map(|own| Move {
        from: own.name.to_owned(),
        to: name.clone(),
        fields: wish.differences(own, stored),
    });
    write(wanted, &name, issuer);
    moved
}

/// Replaces the Issuer among the objects, and writes its name into the others.
fn write(wanted: &mut [Record], name: &str, issuer: Value) {
    let before = wanted.iter().find(|record| record.key.kind == Kind::Issuer);
    let before = before.map(|issuer| issuer.key.name.name.clone()).unwrap_or_default();
    let issuer = &mut Some(issuer);
    for record in wanted {
        let mut object = record.object.clone();
        if record.key.kind == Kind::Issuer {
            object = issuer.take().unwrap_or(object);
        } else if record.key.kind == Kind::Secret {
            let secret = GivenSecret { record, issuer: &before };
            object["metadata"]["name"] = secret.name_at(name).into();
        } else {
            object["spec"]["issuerRef"]["name"] = name.into();
        }
        if let Some(renamed) = Record::new(object) {
            *record = renamed;
        }
    }
}

/// Fields that shape a certificate: another value means another certificate.
const SHAPING: [&str; 3] = [PROFILE, PREFERRED_CHAIN, BINDING];
const PROFILE: &str = "spec.acme.profile";
const PREFERRED_CHAIN: &str = "spec.acme.preferredChain";
const BINDING: &str = "spec.acme.externalAccountBinding";
const SOLVERS: &str = "spec.acme.solvers";
const ROOTS: &str = "spec.acme.caBundle";
const TYPE: &str = "the annotation kubectl-acme/challenge-type";
const CREDENTIALS: &str = "the credentials in its Secrets";

/// Objects that are asked for.
struct Wish<'a> {
    /// Name of the first Issuer of this CA.
    base: &'a str,
    issuer: &'a Record,
    acme: AcmeIssuer,
    secrets: Vec<GivenSecret<'a>>,
    /// The Certificate or CertificateRequest.
    wanted: &'a Record,
}

/// Secret of credentials, named after its Issuer.
struct GivenSecret<'a> {
    record: &'a Record,
    issuer: &'a str,
}

impl GivenSecret<'_> {
    /// Returns the Secret's name beside an Issuer of the given name.
    fn name_at(&self, issuer: &str) -> String {
        let own = &self.record.key.name.name;
        own.strip_prefix(self.issuer).map_or_else(|| own.clone(), |rest| format!("{issuer}{rest}"))
    }
}

/// An Issuer of the same CA.
struct Candidate<'a> {
    name: &'a str,
    record: &'a Record,
    acme: AcmeIssuer,
}

impl<'a> Wish<'a> {
    fn read(wanted: &'a [Record], base: &'a str) -> Option<Self> {
        let issuer = wanted.iter().find(|record| record.key.kind == Kind::Issuer)?;
        let secrets = wanted.iter().filter(|record| record.key.kind == Kind::Secret);
        let secrets =
            secrets.map(|record| GivenSecret { record, issuer: &issuer.key.name.name }).collect();
        let wanted = wanted.iter().find(|record| record.key.kind.is_issued())?;
        Some(Self { base, issuer, acme: acme_of(issuer)?, secrets, wanted })
    }

    /// Returns the Issuers of the same CA that may be used: first the one that is named after the CA.
    fn candidates<'b>(&self, issuers: &'b [Record]) -> Vec<Candidate<'b>> {
        let base = self.base;
        let read = |record: &'b Record| {
            let name = record.key.name.name.as_str();
            let is_named = name
                .strip_prefix(base)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
            let acme = acme_of(record)?;
            let is_there = !record.metadata().is_deleted();
            (is_named && is_there && acme.server == self.acme.server).then_some(Candidate {
                name,
                record,
                acme,
            })
        };
        let mut found: Vec<Candidate<'_>> = issuers.iter().filter_map(read).collect();
        found.sort_by_key(|candidate| (candidate.name.len(), candidate.name));
        found
    }

    /// Returns the name of the Issuer that the certificate was ordered from before.
    fn issuer_before(&self, wanted: &[Record]) -> Option<String> {
        let before = wanted.iter().rfind(|record| self.is_own(record))?;
        let kind = before.text("/spec/issuerRef/kind");
        let is_issuer = kind.is_empty() || kind == Kind::Issuer.as_str();
        is_issuer.then(|| before.text("/spec/issuerRef/name").to_owned())
    }

    /// Reports whether an object of the store is the wanted one, or an earlier request of the same name.
    fn is_own(&self, record: &Record) -> bool {
        record.key.kind == self.wanted.key.kind && user_name(record) == user_name(self.wanted)
    }

    /// Reports whether no other certificate uses an Issuer.
    fn is_alone_on(&self, issuer: &str, wanted: &[Record]) -> bool {
        wanted.iter().all(|record| {
            let metadata = record.metadata();
            let is_made = record.key.kind == Kind::CertificateRequest
                && metadata
                    .controller()
                    .is_some_and(|owner| owner.kind == Kind::Certificate.as_str());
            let kind = record.text("/spec/issuerRef/kind");
            let is_issuer = kind.is_empty() || kind == Kind::Issuer.as_str();
            let stands = is_issuer && record.text("/spec/issuerRef/name") == issuer;
            is_made || !stands || self.is_own(record)
        })
    }

    /// Reports whether there is a certificate already.
    fn is_issued(&self, wanted: &[Record]) -> bool {
        wanted.iter().filter(|record| self.is_own(record)).any(|record| {
            record.key.kind == Kind::CertificateRequest
                || record.object.pointer("/status/revision").is_some()
        })
    }

    /// Returns the fields in which an Issuer differs from the request.
    fn differences(&self, candidate: &Candidate<'_>, stored: &StoredObjects) -> Vec<&'static str> {
        let (wish, there) = (self.acme_at(candidate.name), &candidate.acme);
        let kind = |record: &Record| {
            let annotations = record.metadata().annotations;
            annotations.get(CHALLENGE_TYPE).map(|text| text.trim().to_owned())
        };
        let is_binding_kept =
            wish.external_account_binding.is_none() || key_id(&wish) == key_id(there);
        [
            (SOLVERS, wish.solvers != there.solvers),
            (TYPE, kind(self.issuer) != kind(candidate.record)),
            (PROFILE, wish.profile != there.profile),
            (PREFERRED_CHAIN, wish.preferred_chain != there.preferred_chain),
            (BINDING, !is_binding_kept),
            (ROOTS, !wish.ca_bundle.is_empty() && wish.ca_bundle != there.ca_bundle),
            (CREDENTIALS, !self.has_credentials(candidate.name, stored)),
        ]
        .into_iter()
        .filter_map(|(field, differs)| differs.then_some(field))
        .collect()
    }

    /// Reports whether the credentials of an Issuer equal the given credentials, or do not exist.
    fn has_credentials(&self, issuer: &str, stored: &StoredObjects) -> bool {
        self.secrets.iter().all(|secret| match stored.secrets.get(&secret.name_at(issuer)) {
            None => false,
            Some(None) => true,
            Some(Some(there)) => there.object["data"] == secret.record.object["data"],
        })
    }

    /// Returns the spec, with the Secrets named after an Issuer of the given name.
    fn acme_at(&self, issuer: &str) -> AcmeIssuer {
        let spec = self.spec_at(issuer);
        serde_json::from_value(spec).unwrap_or_else(|_| self.acme.clone())
    }

    fn spec_at(&self, issuer: &str) -> Value {
        let mut spec = self.issuer.object["spec"]["acme"].clone();
        for secret in &self.secrets {
            rename(&mut spec, &secret.record.key.name.name, &secret.name_at(issuer));
        }
        spec
    }

    /// Returns an Issuer of the store as a manifest, with the given contact.
    fn as_stored(&self, candidate: &Candidate<'_>) -> Value {
        let mut object = candidate.record.object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let metadata = candidate.record.metadata();
        let annotations = metadata.annotations.iter().filter(|(name, _)| !is_ours(name));
        let annotations: BTreeMap<&String, &String> = annotations.collect();
        object["metadata"] = json!({"name": metadata.name, "namespace": metadata.namespace});
        for (field, entries) in
            [("labels", json!(metadata.labels)), ("annotations", json!(annotations))]
        {
            if entries.as_object().is_some_and(|entries| !entries.is_empty()) {
                object["metadata"][field] = entries;
            }
        }
        if !self.acme.email.is_empty() {
            object["spec"]["acme"]["email"] = self.acme.email.as_str().into();
        }
        object
    }

    /// Builds the wanted Issuer under the given name. Settings of the CA that are not given come from the Issuer that
    /// is changed, or from the first Issuer whose account may be used.
    fn build(
        &self,
        name: &str,
        candidates: &[Candidate<'_>],
        own: Option<&Candidate<'_>>,
    ) -> Value {
        let mut object = self.issuer.object.clone();
        object["metadata"]["name"] = name.into();
        let mut spec = self.spec_at(name);
        let wish = &self.acme;
        let is_shared = |candidate: &&Candidate<'_>| {
            wish.external_account_binding.is_none() || key_id(wish) == key_id(&candidate.acme)
        };
        let model = own.or_else(|| candidates.iter().find(is_shared));
        match model {
            Some(model) => {
                let there = &model.record.object["spec"]["acme"];
                spec["privateKeySecretRef"] = there["privateKeySecretRef"].clone();
                for field in ["email", "caBundle", "externalAccountBinding"] {
                    if spec.get(field).is_none()
                        && let Some(value) = there.get(field)
                    {
                        spec[field] = value.clone();
                    }
                }
            }
            // Another external account has a key of its own.
            None if !candidates.is_empty() => {
                spec["privateKeySecretRef"] = json!({"name": format!("{name}-account-key")});
            }
            None => {}
        }
        object["spec"]["acme"] = spec;
        object
    }

    /// Returns a name that no Issuer has: that of the CA, or one with the features of the wanted Issuer.
    fn free_name(&self, issuers: &[Record]) -> String {
        let is_taken = |name: &str| issuers.iter().any(|record| record.key.name.name == name);
        let base = self.base;
        if !is_taken(base) {
            return base.to_owned();
        }
        let first = issuers.iter().find(|record| record.key.name.name == base).and_then(acme_of);
        let name = format!("{base}-{}", self.particular(first.as_ref()));
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
    }

    /// Returns the features by which the Issuer differs from the first Issuer of its CA, in words for a name.
    fn particular(&self, first: Option<&AcmeIssuer>) -> String {
        let annotations = self.issuer.metadata().annotations;
        let solver = self.issuer.object.pointer("/spec/acme/solvers/0/dns01");
        let provider = solver.and_then(Value::as_object).and_then(|solver| solver.keys().next());
        let provider = provider.map(|provider| match provider.as_str() {
            "webhook" => self.issuer.text("/spec/acme/solvers/0/dns01/webhook/solverName"),
            provider => provider,
        });
        let profile: String = self.acme.profile.chars().take(MAX_PROFILE_LETTERS).collect();
        let binding = key_id(&self.acme);
        let words = [
            annotations.get(CHALLENGE_TYPE).map(String::as_str),
            provider,
            Some(profile.as_str()),
            (!self.acme.preferred_chain.is_empty()).then_some("chain"),
            binding
                .is_some_and(|binding| first.is_none_or(|it| key_id(it) != Some(binding)))
                .then_some("eab"),
        ];
        let words = words.into_iter().flatten().map(object_name);
        let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
        if words.is_empty() { "http01".to_owned() } else { words.join("-") }
    }
}

fn acme_of(record: &Record) -> Option<AcmeIssuer> {
    serde_json::from_value::<Issuer>(record.object.clone()).ok()?.spec.acme
}

/// Returns the key ID of the external account, if there is one.
fn key_id(acme: &AcmeIssuer) -> Option<&str> {
    acme.external_account_binding.as_ref().map(|binding| binding.key_id.as_str())
}

/// Returns the name by which a certificate is known from one request to the next.
fn user_name(record: &Record) -> String {
    let annotations = record.metadata().annotations;
    let named = annotations.get(CERTIFICATE_NAME);
    let named = named.filter(|_| record.key.kind == Kind::CertificateRequest);
    named.cloned().unwrap_or_else(|| record.key.name.name.clone())
}

/// Renames a Secret in all references.
fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "name" && field == from {
                    *field = to.into();
                } else {
                    rename(field, from, to);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::acme_server::AcmeServer;
    use crate::model::dns_provider::DnsProvider;
    use crate::model::names::Identifier;
    use crate::model::quick_dns::DnsSolver;
    use crate::model::quick_order::{
        self, Binding, CaWishes, KeyChoice, KeyWish, Proof, QuickOrder,
    };
    use crate::model::secret::Credentials;
    use crate::model::{Blob, Key, ObjectName};

    /// A store in which commands are carried out.
    #[derive(Default)]
    struct Shop {
        records: BTreeMap<String, Record>,
    }

    fn wish(name: &str) -> QuickOrder {
        QuickOrder {
            first: Identifier::parse(name).unwrap(),
            more: Vec::new(),
            email: None,
            server: AcmeServer::parse("https://ca.example/dir").unwrap(),
            namespace: "default".into(),
            proof: Proof::Http01,
            key: KeyWish::Make(KeyChoice::default()),
            ca: CaWishes::default(),
        }
    }

    fn by_provider(token: &str) -> Proof {
        Proof::Provider(DnsSolver {
            provider: DnsProvider::DigitalOcean,
            solver: json!({"digitalocean": {"tokenSecretRef": {
                "name": "ca-example-dir-digitalocean", "key": "token"}}}),
            credentials: Credentials([("token".to_owned(), token.to_owned())].into()),
        })
    }

    impl Shop {
        /// Carries out a command; returns the Issuer and where the certificate came from.
        fn order(&mut self, wish: &QuickOrder, kind: Option<&str>) -> (String, Option<Move>) {
            let mut records = quick_order::manifests(wish);
            if let Some(kind) = kind {
                for record in records.iter_mut().filter(|it| it.key.kind == Kind::Issuer) {
                    record.object["metadata"]["annotations"][CHALLENGE_TYPE] = kind.into();
                }
            }
            let base = wish.server.name();
            let first = records.clone();
            let moved = settle(&mut records, base, &self.stored(&first, base));
            let mut again = records.clone();
            assert_eq!(settle(&mut again, base, &self.stored(&records, base)), moved);
            assert_eq!(again, records, "settled twice");
            let mut name = String::new();
            for mut record in records {
                if record.key.kind == Kind::Issuer {
                    name.clone_from(&record.key.name.name);
                } else if record.key.kind == Kind::Certificate {
                    record.object["status"] = json!({"revision": 1});
                }
                self.records.insert(record.key.to_string(), record);
            }
            (name, moved)
        }

        fn stored(&self, wanted: &[Record], base: &str) -> StoredObjects {
            let of = |kind: &dyn Fn(Kind) -> bool| {
                self.records.values().filter(|it| kind(it.key.kind)).cloned().collect::<Vec<_>>()
            };
            let issuers = of(&|kind| kind == Kind::Issuer);
            let secrets = secrets_of_interest(wanted, base, &issuers).into_iter().map(|name| {
                let key = Key::new(Kind::Secret, ObjectName::new("default", &name));
                (name, self.records.get(&key.to_string()).cloned())
            });
            StoredObjects { secrets: secrets.collect(), wanted: of(&Kind::is_issued), issuers }
        }

        fn acme(&self, name: &str) -> &Value {
            &self.records[&format!("Issuer default/{name}")].object["spec"]["acme"]
        }
    }

    const BASE: &str = "ca-example-dir";

    /// Orders by the first wish, then another name by the second; the first keeps its Issuer as it is, and both find theirs again.
    fn check(
        first: (&QuickOrder, Option<&str>),
        second: (&QuickOrder, Option<&str>),
        expected: &str,
    ) {
        let mut shop = Shop::default();
        assert_eq!(shop.order(first.0, first.1), (BASE.to_owned(), None));
        let before = shop.records.clone();
        assert_eq!(shop.order(second.0, second.1), (expected.to_owned(), None));
        for (key, record) in &before {
            assert_eq!(shop.records[key], *record, "{key}");
        }
        let before = shop.records.clone();
        assert_eq!(shop.order(first.0, first.1), (BASE.to_owned(), None));
        assert_eq!(shop.order(second.0, second.1), (expected.to_owned(), None));
        assert_eq!(shop.records, before, "the same commands again");
        let keys = |name: &str| shop.acme(name)["privateKeySecretRef"].clone();
        let binding = |wish: &QuickOrder| wish.ca.binding.as_ref().map(|it| it.key_id.clone());
        let is_shared = binding(first.0) == binding(second.0) || binding(second.0).is_none();
        assert_eq!(keys(BASE) == keys(expected), is_shared, "one account for one CA");
    }

    fn with(name: &str, change: impl FnOnce(&mut QuickOrder)) -> QuickOrder {
        let mut wish = wish(name);
        change(&mut wish);
        wish
    }

    #[test]
    fn what_another_certificate_was_ordered_with_stays() {
        let (a, b) = (wish("a.example"), wish("b.example"));
        check((&a, None), (&b, None), BASE);
        let manual = with("*.a.example", |it| it.proof = Proof::Manual);
        check((&manual, None), (&b, None), "ca-example-dir-http01");
        check((&b, None), (&manual, None), "ca-example-dir-manual");
        let provider = with("*.a.example", |it| it.proof = by_provider("t"));
        check((&provider, None), (&b, None), "ca-example-dir-http01");
        check((&b, None), (&provider, None), "ca-example-dir-digitalocean");
        let other_token = with("*.b.example", |it| it.proof = by_provider("u"));
        check((&provider, None), (&other_token, None), "ca-example-dir-digitalocean");
        let profile = with("p.example", |it| it.ca.profile = Some("shortlived".into()));
        check((&profile, None), (&b, None), "ca-example-dir-http01");
        check((&b, None), (&profile, None), "ca-example-dir-shortlived");
        let chain = with("c.example", |it| it.ca.preferred_chain = Some("Root X".into()));
        check((&b, None), (&chain, None), "ca-example-dir-chain");
        let unaided = with("t.example", |it| it.proof = Proof::Unaided);
        check((&b, None), (&unaided, Some("tls-alpn-01")), "ca-example-dir-tls-alpn-01");
        check((&unaided, Some("tls-alpn-01")), (&b, None), "ca-example-dir-http01");
        let bound = with("e.example", |it| it.ca.binding = Binding::new("kid", "YQ"));
        check((&b, None), (&bound, None), "ca-example-dir-eab");
        let other = with("f.example", |it| it.ca.binding = Binding::new("other", "YQ"));
        check((&bound, None), (&other, None), "ca-example-dir-eab");
        let roots = with("r.example", |it| it.ca.bundle = Blob(b"PEM".to_vec()));
        check((&b, None), (&roots, None), "ca-example-dir-http01");
    }

    #[test]
    fn what_is_not_said_of_a_ca_is_what_is_known_of_it() {
        let mut shop = Shop::default();
        let first = with("a.example", |it| {
            it.email = Some("me@a.example".into());
            it.ca.binding = Binding::new("kid", "YQ");
            it.ca.bundle = Blob(b"PEM".to_vec());
        });
        shop.order(&first, None);
        assert_eq!(shop.order(&wish("b.example"), None).0, BASE);
        let profile = with("p.example", |it| it.ca.profile = Some("short".into()));
        let (name, _) = shop.order(&profile, None);
        assert_eq!(name, "ca-example-dir-short");
        for field in ["email", "caBundle", "externalAccountBinding", "privateKeySecretRef"] {
            assert_eq!(shop.acme(&name)[field], shop.acme(BASE)[field], "{field}");
        }
        let contact = with("b.example", |it| it.email = Some("you@a.example".into()));
        assert_eq!(shop.order(&contact, None), (BASE.to_owned(), None), "it is one account");
        assert_eq!(shop.acme(BASE)["email"], "you@a.example");
        assert_eq!(shop.acme(BASE)["externalAccountBinding"]["keyID"], "kid");
    }

    #[test]
    fn a_wish_of_one_certificate_alone_changes_its_issuer_unless_it_becomes_another_certificate() {
        let mut shop = Shop::default();
        shop.order(&with("a.example", |it| it.proof = by_provider("old")), None);
        let rotated = with("a.example", |it| it.proof = by_provider("new"));
        assert_eq!(shop.order(&rotated, None), (BASE.to_owned(), None));
        let secret = &shop.records["Secret default/ca-example-dir-digitalocean"].object;
        assert_eq!(secret["data"]["token"], "bmV3");
        assert_eq!(shop.order(&wish("a.example"), None), (BASE.to_owned(), None));
        let profile = with("a.example", |it| it.ca.profile = Some("short".into()));
        let (from, to) = (BASE.to_owned(), "ca-example-dir-short".to_owned());
        let moved = Move { from, to: to.clone(), fields: vec![PROFILE] };
        let mut twice = Shop { records: shop.records.clone() };
        assert_eq!(twice.order(&profile, None), (to, Some(moved)));
        for record in shop.records.values_mut() {
            record.object["status"] = json!({});
        }
        assert_eq!(shop.order(&profile, None), (BASE.to_owned(), None), "nothing was issued yet");
    }

    #[test]
    fn an_issuer_that_was_overwritten_before_is_left_to_the_other_one() {
        let mut shop = Shop::default();
        shop.order(&wish("a.example"), None);
        shop.order(&wish("b.example"), None);
        let provider = with("a.example", |it| it.proof = by_provider("t"));
        let (name, moved) = shop.order(&provider, None);
        assert_eq!(name, "ca-example-dir-digitalocean");
        assert_eq!(moved.unwrap().fields, [SOLVERS]);
    }

    #[test]
    fn an_issuer_of_another_name_or_ca_is_nobody_elses_to_use() {
        let mut shop = Shop::default();
        shop.order(&wish("a.example"), None);
        let mut issuer = shop.records.remove("Issuer default/ca-example-dir").unwrap();
        issuer.object["spec"]["acme"]["server"] = "https://other.example".into();
        shop.records.insert("Issuer default/ca-example-dir".into(), issuer);
        assert_eq!(shop.order(&wish("b.example"), None).0, "ca-example-dir-http01");
    }
}
