//! instant-acme, which shares no line with this CA, obtains certificates from it.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use instant_acme::{
    Account, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType, Error,
    ExternalAccountKey, HttpClient, Identifier, NewAccount, NewOrder, Order, OrderStatus,
    RetryPolicy, RevocationRequest,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};

use super::client::signing_request;
use super::{Answers, Bed};
use crate::ca::{Config, MacKey};
use crate::dns::lookup::DirectResolver;
use crate::dns::testing::{World, Zone};
use crate::fetch::{Fetcher, Overrides};

const ACCOUNT: NewAccount<'_> = NewAccount {
    contact: &["mailto:me@bed.test"],
    terms_of_service_agreed: true,
    only_return_existing: false,
};

/// instant-acme's requests, sent by reqwest.
struct Wire(reqwest::Client);

impl HttpClient for Wire {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let http = self.0.clone();
        Box::pin(async move {
            let request = request.map(reqwest::Body::wrap).try_into();
            let request: reqwest::Request =
                request.map_err(|error| Error::Other(Box::new(error)))?;
            let response =
                http.execute(request).await.map_err(|error| Error::Other(Box::new(error)))?;
            let response = http::Response::from(response);
            Ok(BytesResponse::from(response))
        })
    }
}

async fn account(bed: &Bed, external: Option<&ExternalAccountKey>) -> Result<Account, Error> {
    let builder = Account::builder_with_http(Box::new(Wire(bed.http.clone())));
    let (account, _) = builder.create(&ACCOUNT, bed.server.directory_url(), external).await?;
    Ok(account)
}

/// Answers all challenges, rightly or with that text.
async fn authorize(bed: &Bed, order: &mut Order, wrong: Option<&str>) -> OrderStatus {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.unwrap();
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let mut challenge = authorization.challenge(ChallengeType::Http01).unwrap();
        let right = challenge.key_authorization();
        bed.present(&challenge.token, wrong.unwrap_or(right.as_str()));
        challenge.set_ready().await.unwrap();
    }
    order.poll_ready(&RetryPolicy::default()).await.unwrap()
}

/// Fails unless a TLS client that trusts only this root takes the chain for every name.
pub(super) fn check_chain(chain: &str, root: &str, names: &[&str]) {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<_, _>>().unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(root.as_bytes()).unwrap()).unwrap();
    let verifier = WebPkiServerVerifier::builder(Arc::new(roots)).build().unwrap();
    for name in names {
        let name = ServerName::try_from(*name).unwrap();
        verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], UnixTime::now()).unwrap();
    }
}

/// Orders a certificate for a name and an address; gives the chain and the order.
async fn issue(bed: &Bed, account: &Account) -> (String, Order) {
    let identifiers =
        [Identifier::Dns("www.bed.test".to_owned()), Identifier::Ip("127.0.0.1".parse().unwrap())];
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await.unwrap();
    assert_eq!(authorize(bed, &mut order, None).await, OrderStatus::Ready);
    let key = rcgen::KeyPair::generate().unwrap();
    order.finalize_csr(&signing_request(&["www.bed.test", "127.0.0.1"], &key)).await.unwrap();
    (order.poll_certificate(&RetryPolicy::default()).await.unwrap(), order)
}

#[tokio::test]
async fn an_independent_client_obtains_a_certificate_that_a_tls_client_takes() {
    let bed = Bed::start(Config::default()).await;
    let account = account(&bed, None).await.unwrap();
    let (chain, _) = issue(&bed, &account).await;
    check_chain(&chain, bed.server.root_pem(), &["www.bed.test", "127.0.0.1"]);
    let statistics = bed.server.statistics();
    assert_eq!(statistics.of("newOrder"), 1);
    assert_eq!(statistics.of("authorization"), 2);
    assert_eq!(statistics.of("challenge"), 2);
    assert_eq!(statistics.of("certificate"), 1);
    assert_eq!(statistics.refused_nonces, 0);
    bed.server.stop().await;
}

/// Answers all challenges by texts at the names, and nothing else.
async fn authorize_by_dns(world: &World, order: &mut Order) -> OrderStatus {
    let mut zone = Zone::new("bed.test.");
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.unwrap();
        let challenge = authorization.challenge(ChallengeType::Dns01).unwrap();
        zone = zone.txt("_acme-challenge.bed.test.", &[&challenge.key_authorization().dns_value()]);
    }
    world.resolver.replace(vec![Zone::new("."), zone]);
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.unwrap();
        authorization.challenge(ChallengeType::Dns01).unwrap().set_ready().await.unwrap();
    }
    order.poll_ready(&RetryPolicy::default()).await.unwrap()
}

#[tokio::test]
async fn a_wildcard_and_its_base_are_proven_by_two_texts_at_one_name() {
    let world = World::start(vec![Zone::new("."), Zone::new("bed.test.")], &[]).await;
    let resolver = Arc::new(DirectResolver::new(world.address));
    let look = Arc::new(Fetcher { resolver, overrides: Overrides::default() });
    let bed = Bed::looking(Config::default(), look, Answers::default()).await;
    let account = account(&bed, None).await.unwrap();
    let names = ["*.bed.test", "bed.test"];
    let identifiers = names.map(|name| Identifier::Dns(name.to_owned()));
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await.unwrap();
    let mut authorizations = order.authorizations();
    let wildcard = authorizations.next().await.unwrap().unwrap();
    assert!(wildcard.wildcard && wildcard.challenges.len() == 2);
    assert_eq!(wildcard.identifier().to_string(), "*.bed.test");
    assert_eq!(authorize_by_dns(&world, &mut order).await, OrderStatus::Ready);
    let key = rcgen::KeyPair::generate().unwrap();
    order.finalize_csr(&signing_request(&names, &key)).await.unwrap();
    let chain = order.poll_certificate(&RetryPolicy::default()).await.unwrap();
    check_chain(&chain, bed.server.root_pem(), &["www.bed.test", "bed.test"]);

    let other = [Identifier::Dns("www.bed.test".to_owned())];
    let mut order = account.new_order(&NewOrder::new(&other)).await.unwrap();
    assert_eq!(authorize_by_dns(&world, &mut order).await, OrderStatus::Invalid);
    let mut authorizations = order.authorizations();
    let authorization = authorizations.next().await.unwrap().unwrap();
    let [challenge] = &authorization.challenges[..] else { panic!("only what was tried is left") };
    let detail = challenge.error.as_ref().unwrap().detail.as_deref().unwrap();
    assert!(
        detail.contains("NXDOMAIN looking up TXT for _acme-challenge.www.bed.test"),
        "{detail}"
    );
    bed.server.stop().await;
}

#[tokio::test]
async fn a_wrong_answer_is_final_and_the_challenge_says_why() {
    let bed = Bed::start(Config::default()).await;
    let account = account(&bed, None).await.unwrap();
    let identifiers = [Identifier::Dns("www.bed.test".to_owned())];
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await.unwrap();
    assert_eq!(authorize(&bed, &mut order, Some("wrong")).await, OrderStatus::Invalid);
    let mut authorizations = order.authorizations();
    let authorization = authorizations.next().await.unwrap().unwrap();
    assert_eq!(authorization.status, AuthorizationStatus::Invalid);
    let error = authorization.challenges[0].error.as_ref().unwrap();
    assert_eq!(error.r#type.as_deref(), Some("urn:ietf:params:acme:error:unauthorized"));
    assert!(error.detail.as_ref().unwrap().ends_with("(got \"wrong\")"));
}

#[tokio::test]
async fn an_account_changes_its_contact_and_key_revokes_and_is_closed() {
    let bed = Bed::start(Config::default()).await;
    let mut account = account(&bed, None).await.unwrap();
    let (chain, _) = issue(&bed, &account).await;
    account.update_contacts(&["mailto:you@bed.test"]).await.unwrap();
    drop(account.update_key().await.unwrap());
    let certificate = CertificateDer::from_pem_slice(chain.as_bytes()).unwrap();
    let revocation = RevocationRequest { certificate: &certificate, reason: None };
    account.revoke(&revocation).await.unwrap();
    assert!(account.revoke(&revocation).await.is_err());
    account.clone().deactivate().await.unwrap();
    let identifiers = [Identifier::Dns("www.bed.test".to_owned())];
    assert!(account.new_order(&NewOrder::new(&identifiers)).await.is_err());
}

#[tokio::test]
async fn an_external_account_is_bound_by_the_right_key_only() {
    let external_accounts = [("kid-1".to_owned(), MacKey::new(b"secret".to_vec()))].into();
    let external_account_required = true;
    let config = Config { external_accounts, external_account_required, ..Config::default() };
    let bed = Bed::start(config).await;
    for (external, expected) in [
        (None, Some("externalAccountRequired")),
        (Some(("kid-1", "wrong")), Some("unauthorized")),
        (Some(("kid-2", "secret")), Some("unauthorized")),
        (Some(("kid-1", "secret")), None),
    ] {
        let key =
            external.map(|(kid, key)| ExternalAccountKey::new(kid.to_owned(), key.as_bytes()));
        let seen = match account(&bed, key.as_ref()).await {
            Ok(_) => None,
            Err(Error::Api(problem)) => problem.r#type,
            Err(error) => panic!("{error}"),
        };
        let seen = seen.as_deref().and_then(|kind| kind.rsplit(':').next());
        assert_eq!(seen, expected, "{external:?}");
    }
}
