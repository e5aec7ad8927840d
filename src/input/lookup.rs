//! Search for the objects that the words of a command line name: the object of that name; else the relatives of an object of
//! another kind with that name, such as the Challenges of a Certificate; else all objects that contain a domain.
//!
//! Commands that delete take names only.

use std::sync::Arc;

use super::target::{self, Targets};
use crate::context::failure::Failure;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::model::text::closest;
use crate::model::{Certificate, Challenge, Identifier, Key, Kind, ObjectName, Order, Record};
use crate::objects::chain;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Kinds in the order of ownership: each object is owned by an object of the kind before.
const LINEAGE: [Kind; 4] =
    [Kind::Certificate, Kind::CertificateRequest, Kind::Order, Kind::Challenge];

/// Reads an object that has to exist.
///
/// # Errors
/// Fails if the object does not exist, or the store fails.
pub async fn read(store: &Arc<dyn Store>, key: &Key) -> Result<Record, Failure> {
    match store.get(key).await? {
        Some(record) => Ok(record),
        None => Err(not_found(store, key).await?),
    }
}

/// Returns the objects of a kind to which a name leads, if any. Objects of other kinds that may not be read count as
/// missing.
///
/// # Errors
/// Fails if the store fails.
pub async fn keys(store: &Arc<dyn Store>, named: &Key) -> Result<Vec<Key>, StoreError> {
    if store.get(named).await?.is_some() {
        return Ok(vec![named.clone()]);
    }
    if !LINEAGE.contains(&named.kind) {
        return Ok(Vec::new());
    }
    for kind in LINEAGE.into_iter().filter(|kind| *kind != named.kind) {
        let other = Key::new(kind, named.name.clone());
        let Some(other) = unless_forbidden(store.get(&other).await)?.flatten() else { continue };
        let found = unless_forbidden(relatives(store, other, named.kind).await)?;
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            return Ok(found);
        }
    }
    if !is_domain(&named.name.name) {
        return Ok(Vec::new());
    }
    of_domain(store, named).await
}

/// Returns the one object to which a name leads.
///
/// # Errors
/// Fails if the name leads to no object or to several, or the store fails.
pub async fn one(store: &Arc<dyn Store>, named: &Key) -> Result<Key, Failure> {
    match keys(store, named).await?.as_slice() {
        [] => Err(not_found(store, named).await?),
        [key] => Ok(key.clone()),
        several => Err(ambiguous(named, several)),
    }
}

/// Returns the one object that the words of a command line name, existing or not: `KIND/NAME`, `KIND NAME`, or the name of
/// a Certificate.
///
/// # Errors
/// Fails if the words name no object or lead to several, or the store fails.
pub async fn object(
    store: &Arc<dyn Store>,
    words: &[String],
    namespace: &str,
) -> Result<Key, Failure> {
    let (kind, name) = Targets::parse_one(words)?;
    let named = target::key(kind, &name, namespace);
    match keys(store, &named).await?.as_slice() {
        // A deleted object may have left its events behind, and an object that does not exist yet may come.
        [] => Ok(named),
        [key] => Ok(key.clone()),
        several => Err(ambiguous(&named, several)),
    }
}

/// Returns the issuers of a store, of every namespace; none of a kind that may not be listed.
///
/// # Errors
/// Fails if the store fails.
pub async fn issuers(store: &Arc<dyn Store>) -> Result<Vec<Key>, StoreError> {
    let mut known = Vec::new();
    for kind in [Kind::Issuer, Kind::ClusterIssuer] {
        let listed = unless_forbidden(store.list(kind, &Scope::all().brief()).await)?;
        known.extend(listed.into_iter().flatten().map(|record| record.key));
    }
    Ok(known)
}

/// Makes the failure for a name that leads to several objects, although the command works on one.
pub fn ambiguous(named: &Key, several: &[Key]) -> Failure {
    let all: Vec<_> = several.iter().map(|key| key.name.name.as_str()).collect();
    let (name, count) = (&named.name.name, several.len());
    Failure::usage(format!("\"{name}\" matches {count} {}", named.kind.plural()))
        .hint(format!("name one of them: {}", all.join(", ")))
}

/// Returns the relatives of an object that are of another kind of its lineage.
async fn relatives(
    store: &Arc<dyn Store>,
    from: Record,
    wanted: Kind,
) -> Result<Vec<Key>, StoreError> {
    let place = |kind| LINEAGE.iter().position(|known| *known == kind);
    if place(wanted) < place(from.key.kind) {
        return Ok(above(store, from, wanted).await?.into_iter().collect());
    }
    let namespace = from.key.name.namespace.clone();
    let mut generation = vec![from];
    while let Some(kind) = generation.first().map(|record| record.key.kind)
        && kind != wanted
    {
        let Some(next) = place(kind).and_then(|place| LINEAGE.get(place + 1)) else { break };
        let mut below = Vec::new();
        for record in &generation {
            below.extend(
                store.list(*next, &Scope::owned_by(&namespace, record.uid()).brief()).await?,
            );
        }
        generation = below;
    }
    Ok(generation.into_iter().map(|record| record.key).collect())
}

/// Returns the owner of that kind, however far above; `None` if the owner is gone, or never existed.
///
/// # Errors
/// Fails if the store fails.
pub async fn above(
    store: &Arc<dyn Store>,
    from: Record,
    wanted: Kind,
) -> Result<Option<Key>, StoreError> {
    let mut record = from;
    while record.key.kind != wanted {
        let metadata = record.metadata();
        let owner = metadata.controller();
        let owner = owner.and_then(|o| Some((Kind::of_owner(&o.api_version, &o.kind)?, &o.name)));
        let Some((kind, name)) = owner else { return Ok(None) };
        let key = Key::new(kind, ObjectName::new(&metadata.namespace, name));
        let Some(owner) = store.get(&key).await? else { return Ok(None) };
        record = owner;
    }
    Ok(Some(record.key))
}

/// Returns whether a word may be a DNS name or an address rather than the name of an object.
fn is_domain(word: &str) -> bool {
    word.contains('.') || word.contains(':')
}

/// Returns the objects that contain a domain. A domain without a Challenge of its own leads to the Challenge of its wildcard.
async fn of_domain(store: &Arc<dyn Store>, named: &Key) -> Result<Vec<Key>, StoreError> {
    let ObjectName { namespace, name: domain } = &named.name;
    let scope = Scope::namespace(namespace).brief();
    let asked = Identifier::parse(domain).ok();
    // An internationalized name may be written in its own letters, or in those of DNS.
    let is_same = |name: &str| asked.is_some() && Identifier::parse(name).ok() == asked;
    let is_it = |name: &String| name.eq_ignore_ascii_case(domain) || is_same(name);
    let stands_in = |common: &String, names: &[String], addresses: &[String]| {
        is_it(common) || names.iter().chain(addresses).any(is_it)
    };
    let key = |name: ObjectName| Key::new(named.kind, name);
    Ok(match named.kind {
        Kind::Certificate | Kind::CertificateRequest => {
            let all = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
            let is_wanted = |c: &Certificate| {
                stands_in(&c.spec.common_name, &c.spec.dns_names, &c.spec.ip_addresses)
            };
            let found = all.list(&scope).await?.into_iter().filter(is_wanted);
            let found = found.map(|certificate| Key::new(Kind::Certificate, certificate.name()));
            if named.kind == Kind::Certificate {
                return Ok(found.collect());
            }
            let mut requests = Vec::new();
            for key in found {
                if let Some(certificate) = store.get(&key).await? {
                    requests.extend(relatives(store, certificate, named.kind).await?);
                }
            }
            requests
        }
        Kind::Order => {
            let all = Resources::<Order>::new(Arc::clone(store), Kind::Order).list(&scope).await?;
            let is_wanted =
                |o: &Order| stands_in(&o.spec.common_name, &o.spec.dns_names, &o.spec.ip_addresses);
            all.into_iter().filter(is_wanted).map(|order| key(order.name())).collect()
        }
        Kind::Challenge => {
            let all = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
            let all = all.list(&scope).await?;
            let (bare, wildcard) = match domain.strip_prefix("*.") {
                Some(bare) => (bare, true),
                None => (domain.as_str(), false),
            };
            let of_name = |c: &&Challenge| c.spec.dns_name.eq_ignore_ascii_case(bare);
            let mut found: Vec<_> = all.iter().filter(of_name).collect();
            if wildcard || found.iter().any(|challenge| !challenge.spec.wildcard) {
                found.retain(|challenge| challenge.spec.wildcard == wildcard);
            }
            found.into_iter().map(|challenge| key(challenge.name())).collect()
        }
        _ => Vec::new(),
    })
}

/// Makes the failure for a missing object, with hints: an object of that name elsewhere, an object with a similar name, the
/// objects to which the name leads, or the list of all objects.
///
/// # Errors
/// Fails if the store fails.
pub async fn not_found(store: &Arc<dyn Store>, key: &Key) -> Result<Failure, StoreError> {
    let Key { kind, name } = key;
    let place = match name.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" in namespace {namespace}"),
    };
    let what = format!("{}.{} \"{}\" not found{place}", kind.plural(), kind.group(), name.name);
    let failure = Failure::new(FailureKind::Unexpected, what).about(key);
    if let Some(hint) = target::folder_hint(&name.name) {
        return Ok(failure.hint(hint));
    }
    // A user who may read one namespace only gets no hints about others.
    let listed = unless_forbidden(store.list(*kind, &Scope::all().brief()).await)?;
    let known = listed.as_deref().unwrap_or_default();
    let namesakes = known.iter().filter(|record| record.key.name.name == name.name);
    let namesakes = namesakes.map(|record| {
        let namespace = &record.key.name.namespace;
        format!("there is one in namespace {namespace}: -n {namespace}")
    });
    let namesakes: Vec<_> = namesakes.collect();
    if !namesakes.is_empty() {
        return Ok(namesakes.into_iter().fold(failure, Failure::hint));
    }
    if let Some(led) = unless_forbidden(tips(store, key).await)?.filter(|led| !led.is_empty()) {
        return Ok(led.into_iter().fold(failure, Failure::hint));
    }
    let is_here = |record: &&Record| record.key.name.namespace == name.namespace;
    // The name of a Certificate leads to all objects that belong to it.
    let certificates = if LINEAGE.contains(kind) {
        unless_forbidden(store.list(Kind::Certificate, &Scope::all().brief()).await)?
    } else {
        None
    };
    let names = known.iter().chain(certificates.iter().flatten()).filter(is_here);
    let meant = closest(&name.name, names.map(|record| record.key.name.name.as_str()))
        .map(|meant| format!("did you mean {meant}?"));
    let failure = meant.into_iter().fold(failure, Failure::hint);
    let list = format!("get {}", kind.plural());
    let list = match listed {
        Some(all) if all.is_empty() => return Ok(failure),
        Some(all) if !all.iter().any(|record| is_here(&record)) => {
            invocation::current().like_in_all(&list)
        }
        Some(_) | None => invocation::current().like_in(&name.namespace, &list),
    };
    Ok(failure.hint(format!("{list} lists the existing ones")))
}

/// Returns the hints for a name of another object: the objects to which the name leads, or that no object of the kind belongs
/// to the Certificate of that name now.
async fn tips(store: &Arc<dyn Store>, key: &Key) -> Result<Vec<String>, StoreError> {
    let Key { kind, name } = key;
    let found = keys(store, key).await?;
    if !found.is_empty() {
        let names: Vec<_> = found.iter().map(|key| key.name.name.as_str()).collect();
        let s = if names.len() == 1 { "" } else { "s" };
        return Ok(vec![format!("that name matches {kind}{s} {}", names.join(", "))]);
    }
    let certificate = Key::new(Kind::Certificate, name.clone());
    if !LINEAGE.contains(kind) || store.get(&certificate).await?.is_none() {
        return Ok(Vec::new());
    }
    let renew = invocation::current().renewal(name);
    Ok(vec![
        format!("there is a Certificate of that name: no {kind} belongs to it now"),
        format!("to order a new certificate: {renew}"),
    ])
}

/// Returns the Certificate to which an Order belongs, with that Order. If the name is not an Order's but leads to a
/// Certificate, returns that Certificate with its last Order.
///
/// # Errors
/// Fails when there is no such Order, or no Certificate owns it.
pub async fn certificate_and_order(
    store: &Arc<dyn Store>,
    name: ObjectName,
) -> Result<(ObjectName, Option<ObjectName>), Failure> {
    let named = Key::new(Kind::Order, name.clone());
    if let Some(order) = store.get(&named).await? {
        // The Order's owner, even if other objects have the same name.
        let Some(owner) = above(store, order, Kind::Certificate).await? else {
            let delete = format!("order delete {}", named.name.name);
            let delete = invocation::current().like_in(&named.name.namespace, &delete);
            let what = format!("{named} belongs to no Certificate");
            return Err(Failure::usage(what)
                .about(&named)
                .hint(format!("an Order without a Certificate can only be deleted: {delete}")));
        };
        return Ok((owner.name, Some(name)));
    }
    let certificate = Key::new(Kind::Certificate, name);
    let certificate = match keys(store, &certificate).await?.as_slice() {
        [] => return Err(not_found(store, &named).await?),
        [found] => found.name.clone(),
        several => return Err(ambiguous(&certificate, several)),
    };
    let chain = chain::read(store, &certificate).await?;
    let order = chain.as_ref().and_then(Chain::order).map(Order::name);
    Ok((certificate, order))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::store::memory::MemoryStore;

    /// Puts an object into the store, below another one; returns its UID.
    async fn put(
        store: &Arc<dyn Store>,
        kind: Kind,
        name: &str,
        owner: Option<(Kind, &str, &str)>,
        spec: Value,
    ) -> String {
        let owners = owner.map(|(kind, name, uid)| {
            json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": name, "uid": uid, "controller": true})
        });
        let object = json!({
            "apiVersion": kind.api_version(), "kind": kind.as_str(),
            "metadata": {"name": name, "namespace": "web", "ownerReferences": owners.into_iter().collect::<Vec<_>>()},
            "spec": spec,
        });
        store.create(Record::new(object).unwrap()).await.unwrap().uid().to_owned()
    }

    /// Stores a Certificate of these names with its request, Order and a Challenge for each name.
    async fn put_chain(store: &Arc<dyn Store>, certificate: &str, names: &[&str]) {
        let issuer = json!({"name": "acme"});
        let spec = json!({"dnsNames": names, "secretName": "tls", "issuerRef": issuer});
        let uid = put(store, Kind::Certificate, certificate, None, spec).await;
        let owner = Some((Kind::Certificate, certificate, &*uid));
        let request = format!("{certificate}-1");
        let spec = json!({"request": "", "issuerRef": issuer});
        let uid = put(store, Kind::CertificateRequest, &request, owner, spec).await;
        let owner = Some((Kind::CertificateRequest, &*request, &*uid));
        let order = format!("{request}-23");
        let spec = json!({"request": "", "dnsNames": names, "issuerRef": issuer});
        let uid = put(store, Kind::Order, &order, owner, spec).await;
        for (number, name) in (4..).zip(names) {
            let bare = name.strip_prefix("*.").unwrap_or(name);
            let spec = json!({
                "url": "", "authorizationURL": "", "dnsName": bare, "wildcard": bare != *name, "type": "DNS-01",
                "token": "", "key": "", "solver": {}, "issuerRef": issuer,
            });
            let owner = Some((Kind::Order, &*order, &*uid));
            put(store, Kind::Challenge, &format!("{order}-{number}"), owner, spec).await;
        }
    }

    #[tokio::test]
    async fn a_name_leads_along_the_lineage_and_a_domain_to_where_it_stands() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        put_chain(&store, "web", &["example.com", "*.example.com", "*.wild.example"]).await;
        put_chain(&store, "mail", &["example.com"]).await;
        for (kind, name, expected) in [
            (Kind::Order, "web-1-23", &["web-1-23"][..]),
            (Kind::Order, "web", &["web-1-23"]),
            (Kind::Challenge, "web", &["web-1-23-4", "web-1-23-5", "web-1-23-6"]),
            (Kind::Challenge, "mail-1", &["mail-1-23-4"]),
            (Kind::Certificate, "mail-1-23-4", &["mail"]),
            (Kind::CertificateRequest, "web-1-23", &["web-1"]),
            (Kind::Challenge, "example.com", &["mail-1-23-4", "web-1-23-4"]),
            (Kind::Challenge, "*.Example.com", &["web-1-23-5"]),
            (Kind::Challenge, "wild.example", &["web-1-23-6"]),
            (Kind::Order, "*.example.com", &["web-1-23"]),
            (Kind::Certificate, "example.com", &["mail", "web"]),
            (Kind::CertificateRequest, "*.wild.example", &["web-1"]),
            (Kind::Certificate, "other.example", &[]),
            (Kind::Issuer, "web", &[]),
        ] {
            let found = keys(&store, &target::key(kind, name, "web")).await.unwrap();
            let mut found: Vec<_> = found.into_iter().map(|key| key.name.name).collect();
            found.sort();
            assert_eq!(found, expected, "{kind} {name}");
        }
    }

    #[tokio::test]
    async fn an_order_is_its_owner_s_whatever_else_has_its_name() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        put_chain(&store, "web", &["example.com"]).await;
        put_chain(&store, "web-1-23", &["other.example"]).await;
        let name = |name| ObjectName::new("web", name);
        let named = async |word| certificate_and_order(&store, name(word)).await.unwrap();
        assert_eq!(named("web-1-23").await, (name("web"), Some(name("web-1-23"))));
        assert_eq!(named("web").await, (name("web"), Some(name("web-1-23"))));
    }

    #[tokio::test]
    async fn several_objects_are_not_taken_for_one() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        put_chain(&store, "web", &["example.com"]).await;
        put_chain(&store, "mail", &["example.com"]).await;
        let key = |name| target::key(Kind::Certificate, name, "web");
        let failure = one(&store, &key("example.com")).await.unwrap_err();
        assert_eq!(failure.message, "\"example.com\" matches 2 certificates");
        assert_eq!(failure.hints, ["name one of them: mail, web"]);
        assert_eq!(one(&store, &key("web-1-23")).await.unwrap(), key("web"));
    }

    /// Returns the first hint for a name of no object.
    async fn check_hint(store: &Arc<dyn Store>, kind: Kind, name: &str, expected: &str) {
        let failure = not_found(store, &target::key(kind, name, "web")).await.unwrap();
        assert_eq!(failure.hints.first().map(String::as_str), Some(expected), "{name}");
    }

    #[tokio::test]
    async fn what_is_not_there_may_have_been_meant_otherwise() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        put_chain(&store, "web", &["www.example.com"]).await;
        put_chain(&store, "mailer", &[]).await;
        check_hint(&store, Kind::Certificate, "mialer", "did you mean mailer?").await;
        check_hint(&store, Kind::Order, "web", "that name matches Order web-1-23").await;
        let none = "there is a Certificate of that name: no Challenge belongs to it now";
        check_hint(&store, Kind::Challenge, "mailer", none).await;
        let list = "kubectl-acme get certificates -n web lists the existing ones";
        check_hint(&store, Kind::Certificate, "other", list).await;
    }
}
