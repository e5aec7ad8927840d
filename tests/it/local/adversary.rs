//! CAs that err, stall or lie: a certificate is issued all the same, or the Order says why not; nobody is asked for ever.
//!
//! Our own CA does the work; a layer before it twists what it says.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use kubectl_acme::acme::error::{AcmeError, Fault};
use kubectl_acme::acme::{
    AccountKey, AccountReply, Acme, AuthorizationReply, CertificateChain, ChallengeReply, Clients,
    Directory, NewOrder, OrderReply, Registration,
};
use kubectl_acme::ca::{self, Config};
use kubectl_acme::controllers::Controller;
use kubectl_acme::controllers::accounts::Accounts;
use kubectl_acme::controllers::certificate::CertificateController;
use kubectl_acme::controllers::challenge::ChallengeController;
use kubectl_acme::controllers::clock::SystemClock;
use kubectl_acme::controllers::driver::Driver;
use kubectl_acme::controllers::issuer::IssuerController;
use kubectl_acme::controllers::obstacles::Obstacles;
use kubectl_acme::controllers::order::OrderController;
use kubectl_acme::controllers::order_budget::OrderBudget;
use kubectl_acme::controllers::recorder::Recorder;
use kubectl_acme::controllers::request::RequestController;
use kubectl_acme::controllers::scheduler::{Scheduler, SharedContention};
use kubectl_acme::controllers::selection::Selection;
use kubectl_acme::controllers::solver_set::SolverSet;
use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::engine::account_keys;
use kubectl_acme::engine::dns01::ProviderMeans;
use kubectl_acme::fetch::{Fetcher, Overrides};
use kubectl_acme::model::order_budget::{Allowance, Permit};
use kubectl_acme::model::{Blob, Kind, Problem, Record};
use kubectl_acme::probes::dns::DnsProbe;
use kubectl_acme::probes::http::HttpProbe;
use kubectl_acme::probes::tls_alpn::TlsAlpnProbe;
use kubectl_acme::reconcile::request::Approval;
use kubectl_acme::reconcile::schedule::Limits;
use kubectl_acme::solvers::dns01::manual::Manual;
use kubectl_acme::solvers::http01::listener::Listener;
use kubectl_acme::solvers::tls_alpn01::TlsAlpn01;
use kubectl_acme::store::memory::MemoryStore;
use kubectl_acme::store::{Scope, Store};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::name_server::nobody_to_ask;

/// A request to the CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Register,
    NewOrder,
    Order,
    /// The order once it was to be finalized: how often it is read before depends on how quick the CA validates.
    FinalizedOrder,
    Authorization,
    Accept,
    Finalize,
    Certificate,
}

/// What becomes of one request: refused before the CA hears of it, or twisted on the way back.
enum Twist {
    Refuse(AcmeError),
    /// The CA does it, and the answer is lost.
    Lose,
    Order(fn(&mut OrderReply)),
    Authorization(fn(&mut AuthorizationReply)),
    /// Each challenge of an authorization.
    Challenges(fn(&mut ChallengeReply)),
    Chain(fn(&mut CertificateChain)),
}

/// Says what becomes of the nth request of that sort, from 0.
type Script = fn(Deed, usize) -> Option<Twist>;

struct Twisted {
    inner: Arc<dyn Acme>,
    script: Script,
    asked: Arc<Mutex<Vec<Deed>>>,
}

impl Twisted {
    /// Notes a request; returns what becomes of it, unless it is refused already.
    fn meet(&self, deed: Deed) -> Result<Option<Twist>, AcmeError> {
        let mut asked = self.asked.lock().unwrap();
        let before = asked.iter().filter(|earlier| **earlier == deed).count();
        asked.push(deed);
        match (self.script)(deed, before) {
            Some(Twist::Refuse(error)) => Err(error),
            twist => Ok(twist),
        }
    }

    async fn order_reply(
        &self,
        deed: Deed,
        answer: impl Future<Output = Result<OrderReply, AcmeError>> + Send,
    ) -> Result<OrderReply, AcmeError> {
        let twist = self.meet(deed)?;
        let mut reply = answer.await;
        match (twist, &mut reply) {
            (Some(Twist::Lose), _) => return Err(lost()),
            (Some(Twist::Order(twist)), Ok(reply)) => twist(reply),
            _ => {}
        }
        reply
    }
}

impl fmt::Debug for Twisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Twisted")
    }
}

#[async_trait]
impl Acme for Twisted {
    async fn directory(&self) -> Result<Arc<Directory>, AcmeError> {
        self.inner.directory().await
    }
    async fn register(&self, registration: &Registration) -> Result<AccountReply, AcmeError> {
        self.meet(Deed::Register)?;
        self.inner.register(registration).await
    }
    async fn update_contact(&self, contact: &[String]) -> Result<AccountReply, AcmeError> {
        self.inner.update_contact(contact).await
    }
    async fn change_key(&self, new: &AccountKey) -> Result<(), AcmeError> {
        self.inner.change_key(new).await
    }
    async fn prepare(&self) -> Result<(), AcmeError> {
        self.inner.prepare().await
    }
    async fn create_order(
        &self,
        order: &NewOrder,
        permit: Permit,
    ) -> Result<OrderReply, AcmeError> {
        self.order_reply(Deed::NewOrder, self.inner.create_order(order, permit)).await
    }
    async fn order(&self, url: &str) -> Result<OrderReply, AcmeError> {
        let is_finalized = self.asked.lock().unwrap().contains(&Deed::Finalize);
        let deed = if is_finalized { Deed::FinalizedOrder } else { Deed::Order };
        self.order_reply(deed, self.inner.order(url)).await
    }
    async fn authorization(&self, url: &str) -> Result<AuthorizationReply, AcmeError> {
        let twist = self.meet(Deed::Authorization)?;
        let mut reply = self.inner.authorization(url).await?;
        match twist {
            Some(Twist::Authorization(twist)) => twist(&mut reply),
            Some(Twist::Challenges(twist)) => reply.challenges.iter_mut().for_each(twist),
            _ => {}
        }
        Ok(reply)
    }
    async fn accept(&self, challenge_url: &str) -> Result<ChallengeReply, AcmeError> {
        let twist = self.meet(Deed::Accept)?;
        let reply = self.inner.accept(challenge_url).await;
        if matches!(twist, Some(Twist::Lose)) { Err(lost()) } else { reply }
    }
    async fn finalize(&self, finalize_url: &str, csr_der: &[u8]) -> Result<OrderReply, AcmeError> {
        self.order_reply(Deed::Finalize, self.inner.finalize(finalize_url, csr_der)).await
    }
    async fn certificate(&self, url: &str) -> Result<CertificateChain, AcmeError> {
        let twist = self.meet(Deed::Certificate)?;
        let mut reply = self.inner.certificate(url).await?;
        if let Some(Twist::Chain(twist)) = twist {
            twist(&mut reply);
        }
        Ok(reply)
    }
    fn thumbprint(&self) -> &str {
        self.inner.thumbprint()
    }
    fn account_url(&self) -> Option<String> {
        self.inner.account_url()
    }
}

fn lost() -> AcmeError {
    AcmeError::Transport {
        deed: "post to",
        url: "https://ca.example/".to_owned(),
        why: "connection reset".to_owned(),
        fault: Fault::Passing,
    }
}

fn refusal(status: u16, kind: &str) -> AcmeError {
    let kind = format!("urn:ietf:params:acme:error:{kind}");
    let problem = Problem { kind, status, detail: "no".to_owned(), ..Problem::default() };
    AcmeError::Refused { problem: Box::new(problem), retry_after: None, location: None }
}

fn refuse(status: u16, kind: &str) -> Twist {
    Twist::Refuse(refusal(status, kind))
}

/// How it ended.
#[derive(Debug)]
struct End {
    /// State and reason of the Order.
    state: String,
    reason: String,
    ready: bool,
    asked: Vec<Deed>,
    challenges: usize,
}

impl End {
    fn asked(&self, deed: Deed) -> usize {
        self.asked.iter().filter(|asked| **asked == deed).count()
    }
}

fn manifests(directory: &str, root: &str) -> [Record; 2] {
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": "acme", "namespace": "default"},
        "spec": {"acme": {
            "server": directory,
            "caBundle": Blob(root.as_bytes().to_vec()),
            "preferredChain": "a chain that nobody has",
            "privateKeySecretRef": {"name": "acme-account"},
            "solvers": [{"http01": {"ingress": {}}}],
        }},
    });
    let certificate = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "secretName": "web-tls",
            "dnsNames": ["a.example.com"],
            "privateKey": {"algorithm": "ECDSA"},
            "issuerRef": {"name": "acme"},
        },
    });
    [issuer, certificate].map(|object| Record::new(object).unwrap())
}

async fn only(store: &MemoryStore, kind: Kind) -> Option<Value> {
    store.list(kind, &Scope::all()).await.unwrap().into_iter().next().map(|record| record.object)
}

fn text(object: Option<&Value>, pointer: &str) -> String {
    let value = object.and_then(|object| object.pointer(pointer));
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

async fn is_ready(store: &MemoryStore) -> bool {
    let certificate = only(store, Kind::Certificate).await.unwrap_or_default();
    let conditions = certificate.pointer("/status/conditions").and_then(Value::as_array);
    let of = |kind: &str| conditions.into_iter().flatten().find(|c| c["type"] == kind);
    of("Ready").is_some_and(|c| c["status"] == "True") && of("Issuing").is_none()
}

/// Issues one certificate at a CA with that script, until it is there or its Order is over.
async fn issue(script: Script) -> End {
    issue_at("127.0.0.1", script).await
}

/// The same, with the directory on that host; every other URL is on 127.0.0.1.
async fn issue_at(host: &str, script: Script) -> End {
    let listener = Listener::bind(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]).await.unwrap();
    let port = listener.addresses()[0].port();
    let target = (IpAddr::V4(Ipv4Addr::LOCALHOST), Some(port));
    let overrides = Overrides { hosts: [("*".to_owned(), target)].into(), ..Overrides::default() };
    let fetcher = Fetcher { resolver: Arc::new(SystemResolver::new()), overrides };
    let server = ca::serve(Config::default(), Arc::new(fetcher.clone())).await.unwrap();

    let memory = Arc::new(MemoryStore::new());
    let store: Arc<dyn Store> = memory.clone();
    let given =
        manifests(&server.directory_url().replace("127.0.0.1", host), server.tls_root_pem());
    let keys: BTreeSet<_> = given.iter().map(|record| record.key.clone()).collect();
    for record in given {
        store.apply(record).await.unwrap();
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let connect = Accounts::connect_with(Arc::new(Clients::new()));
    let log = Arc::clone(&asked);
    let twisted = move |server: &str, tls: &_, key: _, url: Option<String>| {
        let inner = connect(server, tls, key, url)?;
        Ok(Arc::new(Twisted { inner, script, asked: Arc::clone(&log) }) as Arc<dyn Acme>)
    };
    let accounts = Arc::new(Accounts::new(&store, "cert-manager", Box::new(twisted)));
    let recorder = Recorder::new(Arc::clone(&store));
    let clock = Arc::new(SystemClock::default());
    let contention = SharedContention::default();
    let zones = nobody_to_ask();
    let dns01 =
        ProviderMeans::default().solver(&store, zones.clone(), &fetcher.resolver, "cert-manager");
    let means = SolverSet {
        by_person: Arc::new(Manual { provider: Arc::clone(&dns01) }),
        dns01,
        tls_alpn01: Arc::new(TlsAlpn01::new(Vec::new())),
        tls_alpn01_probe: Arc::new(TlsAlpnProbe { fetcher: fetcher.clone() }),
        http01: Arc::new(listener),
        http01_probe: Arc::new(HttpProbe { fetcher }),
        dns01_probe: Arc::new(DnsProbe { zones }),
        contention: contention.clone(),
        check_period: SignedDuration::from_secs(10),
    };
    let selection = Selection::only(keys);
    let challenges =
        ChallengeController::new(recorder.clone(), accounts.clone(), means, clock.clone());
    let controllers: Vec<Arc<dyn Controller>> = vec![
        Arc::new(IssuerController::new(
            recorder.clone(),
            Arc::clone(&accounts),
            account_keys(false),
        )),
        Arc::new(CertificateController::new(recorder.clone())),
        Arc::new(RequestController::new(recorder.clone(), Arc::clone(&accounts), Approval::Ours)),
        Arc::new(OrderController::new(
            recorder.clone(),
            accounts,
            selection.clone(),
            OrderBudget::new(Allowance::OneShot),
        )),
        Arc::new(challenges),
        Arc::new(Scheduler::new(recorder, Limits::default(), selection.clone(), contention)),
    ];
    let (sender, obstacles) = tokio::sync::watch::channel(Obstacles::new());
    let driver = Driver::new(store, clock, controllers, selection, sender);
    let stop = CancellationToken::new();
    let working = tokio::spawn(driver.run(stop.clone()));
    let started = Timestamp::now();
    loop {
        let order = only(&memory, Kind::Order).await;
        let state = text(order.as_ref(), "/status/state");
        let ready = is_ready(&memory).await;
        let over = matches!(state.as_str(), "errored" | "expired" | "invalid");
        if ready || over {
            // Whoever does not know when to stop shows it now.
            tokio::time::sleep(Duration::from_millis(300)).await;
            stop.cancel();
            working.await.unwrap().unwrap();
            let asked = asked.lock().unwrap().clone();
            let reason = text(order.as_ref(), "/status/reason");
            let challenges = memory.list(Kind::Challenge, &Scope::all()).await.unwrap().len();
            return End { state, reason, ready, asked, challenges };
        }
        let waited = Timestamp::now().duration_since(started);
        let now = obstacles.borrow().clone();
        assert!(waited.as_secs() < 60, "nothing moves any more: {order:?} {now:?} {asked:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Issues all the same, with at most so many requests of the sort that was disturbed.
async fn check_issued(script: Script, deed: Deed, most: usize) {
    let end = issue(script).await;
    assert!(end.ready, "{end:?}");
    assert!(end.asked(deed) <= most, "{end:?}");
}

/// Ends in that state with a reason that says so, after at most so many requests of all sorts.
async fn check_refused(script: Script, state: &str, reason: &str, most: usize) {
    let end = issue(script).await;
    assert_eq!(end.state, state, "{end:?}");
    assert!(end.reason.contains(reason), "{end:?}");
    assert!(end.asked.len() <= most, "{end:?}");
}

#[tokio::test]
async fn a_good_ca_is_asked_no_more_than_the_protocol_needs() {
    let end = issue(|_, _| None).await;
    assert!(end.ready, "{end:?}");
    for deed in [Deed::Register, Deed::NewOrder, Deed::Authorization, Deed::Accept, Deed::Finalize]
    {
        assert_eq!(end.asked(deed), 1, "{end:?}");
    }
}

#[tokio::test]
async fn a_signing_request_that_the_ca_forbids_is_not_sent_for_ever() {
    let script: Script = |deed, _| match deed {
        Deed::Finalize => Some(refuse(403, "unauthorized")),
        _ => None,
    };
    let reason = "Failed to finalize Order: 403 urn:ietf:params:acme:error:unauthorized: no";
    check_refused(script, "errored", reason, 20).await;
}

#[tokio::test]
async fn an_order_that_is_not_ready_after_all_is_finalized_later() {
    let script: Script = |deed, before| match (deed, before) {
        (Deed::Finalize, 0) => Some(refuse(403, "orderNotReady")),
        (Deed::FinalizedOrder, 0) => {
            Some(Twist::Order(|order| order.status = "pending".to_owned()))
        }
        _ => None,
    };
    check_issued(script, Deed::Finalize, 2).await;
}

#[tokio::test]
async fn answers_that_are_lost_on_the_way_cost_no_second_order() {
    for (deed, most) in [(Deed::NewOrder, 2), (Deed::Accept, 2), (Deed::Finalize, 2)] {
        let script: Script = match deed {
            Deed::NewOrder => |deed, n| (deed == Deed::NewOrder && n == 0).then_some(Twist::Lose),
            Deed::Accept => |deed, n| (deed == Deed::Accept && n == 0).then_some(Twist::Lose),
            _ => |deed, n| (deed == Deed::Finalize && n == 0).then_some(Twist::Lose),
        };
        check_issued(script, deed, most).await;
    }
}

#[tokio::test]
async fn states_that_nobody_knows_are_no_end() {
    check_issued(
        |deed, _| {
            let odd: fn(&mut AuthorizationReply) = |a| a.status = "wondering".to_owned();
            (deed == Deed::Authorization).then_some(Twist::Authorization(odd))
        },
        Deed::Authorization,
        2,
    )
    .await;
    check_issued(
        |deed, before| {
            let odd: fn(&mut OrderReply) = |order| order.status = "wondering".to_owned();
            (deed == Deed::Order && before == 0).then_some(Twist::Order(odd))
        },
        Deed::NewOrder,
        1,
    )
    .await;
}

#[tokio::test]
async fn an_authorization_for_another_name_is_not_answered() {
    let script: Script = |deed, _| {
        let other: fn(&mut AuthorizationReply) = |a| a.identifier = "evil.example.net".to_owned();
        (deed == Deed::Authorization).then_some(Twist::Authorization(other))
    };
    let end = issue(script).await;
    assert_eq!((end.state.as_str(), end.challenges), ("errored", 0), "{end:?}");
    for name in ["evil.example.net", "a.example.com"] {
        assert!(end.reason.contains(name), "{end:?}");
    }
}

#[tokio::test]
async fn an_authorization_that_ended_by_itself_ends_the_order() {
    for status in ["deactivated", "expired", "revoked"] {
        let script: Script = match status {
            "deactivated" => {
                |deed, _| twisted_status(deed, |a| a.status = "deactivated".to_owned())
            }
            "expired" => |deed, _| twisted_status(deed, |a| a.status = "expired".to_owned()),
            _ => |deed, _| twisted_status(deed, |a| a.status = "revoked".to_owned()),
        };
        let end = issue(script).await;
        assert_eq!((end.state.as_str(), end.challenges), ("expired", 0), "{end:?}");
        let reason = format!("the authorization of a.example.com is {status}");
        assert!(end.reason.starts_with(&reason), "{end:?}");
    }
}

#[tokio::test]
async fn an_authorization_that_stands_twice_is_read_once() {
    let script: Script = |deed, before| {
        let twice: fn(&mut OrderReply) = |order| {
            order.authorizations = vec![order.authorizations[0].clone(); 1000];
        };
        (deed == Deed::NewOrder && before == 0).then_some(Twist::Order(twice))
    };
    check_issued(script, Deed::Authorization, 1).await;
}

#[tokio::test]
async fn more_authorizations_than_names_are_not_read() {
    let script: Script = |deed, _| {
        let many: fn(&mut OrderReply) = |order| {
            let first = order.authorizations[0].clone();
            order.authorizations.extend((1..1000).map(|number| format!("{first}{number}")));
        };
        (deed == Deed::NewOrder).then_some(Twist::Order(many))
    };
    let end = issue(script).await;
    assert_eq!((end.state.as_str(), end.challenges), ("errored", 0), "{end:?}");
    assert!(end.reason.starts_with("the CA asks for 1000 authorizations"), "{end:?}");
    assert_eq!(end.asked(Deed::Authorization), 0, "{end:?}");
}

#[tokio::test]
async fn an_order_that_became_invalid_before_it_was_finalized_is_over() {
    let script: Script = |deed, before| match (deed, before) {
        (Deed::Finalize, _) => Some(refuse(403, "orderNotReady")),
        (Deed::FinalizedOrder, _) => Some(Twist::Order(|order| {
            order.status = "invalid".to_owned();
            order.error = Some(Problem { detail: "too late".to_owned(), ..Problem::default() });
        })),
        _ => None,
    };
    let end = issue(script).await;
    assert_eq!((end.state.as_str(), end.reason.as_str()), ("invalid", "too late"), "{end:?}");
    assert_eq!((end.asked(Deed::Finalize), end.asked(Deed::NewOrder)), (1, 1), "{end:?}");
}

#[tokio::test]
async fn a_challenge_that_the_ca_looks_at_already_is_not_told_again() {
    for status in ["processing", "valid", "invalid"] {
        let script: Script = match status {
            "processing" => |deed, before| begun(deed, before, |c| c.status = "processing".into()),
            "valid" => |deed, before| begun(deed, before, |c| c.status = "valid".into()),
            _ => |deed, before| begun(deed, before, |c| c.status = "invalid".into()),
        };
        let end = issue(script).await;
        assert_eq!((end.asked(Deed::Accept), end.state.as_str()), (0, "invalid"), "{end:?}");
    }
}

/// Challenges are so from the first; the order is polled a few times before it comes to its end.
fn begun(deed: Deed, before: usize, twist: fn(&mut ChallengeReply)) -> Option<Twist> {
    match (deed, before) {
        (Deed::Authorization, _) => Some(Twist::Challenges(twist)),
        (Deed::Order, 3..) => Some(Twist::Order(|order| "invalid".clone_into(&mut order.status))),
        _ => None,
    }
}

#[tokio::test]
async fn the_order_is_polled_at_our_own_pace_whatever_moment_in_the_past_the_ca_names() {
    let script: Script = |deed, before| match (deed, before) {
        (Deed::Order, 0..8) => Some(Twist::Order(|order| {
            order.status = "pending".to_owned();
            order.retry_after = Some(Timestamp::UNIX_EPOCH);
        })),
        _ => None,
    };
    let began = Timestamp::now();
    let end = issue(script).await;
    assert!(end.ready, "{end:?}");
    // Nine polls, the first after 50 ms and each later one after half of the time gone by, cannot come sooner.
    let soonest = SignedDuration::from_millis(1700);
    assert!(Timestamp::now().duration_since(began) > soonest, "{end:?}");
}

fn twisted_status(deed: Deed, twist: fn(&mut AuthorizationReply)) -> Option<Twist> {
    (deed == Deed::Authorization).then_some(Twist::Authorization(twist))
}

#[tokio::test]
async fn an_order_that_is_invalid_without_a_word_still_has_a_reason() {
    let script: Script = |deed, _| {
        let invalid: fn(&mut OrderReply) = |order| order.status = "invalid".to_owned();
        (deed == Deed::Order).then_some(Twist::Order(invalid))
    };
    check_refused(script, "invalid", "the CA gives no reason", 20).await;
}

#[tokio::test]
async fn an_account_that_the_ca_forgot_is_registered_again_once() {
    let script: Script = |deed, before| match (deed, before) {
        (Deed::NewOrder, 0) => Some(refuse(400, "accountDoesNotExist")),
        _ => None,
    };
    check_issued(script, Deed::Register, 2).await;
    let script: Script = |deed, _| match deed {
        Deed::NewOrder => Some(refuse(400, "accountDoesNotExist")),
        _ => None,
    };
    check_refused(script, "errored", "accountDoesNotExist", 20).await;
}

#[tokio::test]
async fn a_ca_whose_accounts_are_on_another_host_is_asked_for_one_once() {
    let end = issue_at("localhost", |_, _| None).await;
    assert!(end.ready, "{end:?}");
    assert_eq!(end.asked(Deed::Register), 1, "{end:?}");
}

#[tokio::test]
async fn a_validation_that_is_under_way_already_is_waited_for() {
    let script: Script = |deed, before| match (deed, before) {
        (Deed::Accept, 0) => Some(Twist::Lose),
        (Deed::Accept, _) => Some(refuse(400, "malformed")),
        (Deed::Authorization, 1..) => Some(Twist::Authorization(|authorization| {
            authorization.status = "pending".to_owned();
            for challenge in &mut authorization.challenges {
                challenge.status = "processing".to_owned();
            }
        })),
        (Deed::Order, 0..3) => Some(Twist::Order(|order| order.status = "pending".to_owned())),
        _ => None,
    };
    check_issued(script, Deed::Accept, 2).await;
}

#[tokio::test]
async fn a_chain_that_was_not_ordered_is_not_stored() {
    let script: Script = |deed, _| {
        let root: fn(&mut CertificateChain) = |chain| {
            let leaf_end = chain.pem.find("-----END CERTIFICATE-----").unwrap();
            let rest = chain.pem[leaf_end..].find("-----BEGIN").unwrap() + leaf_end;
            chain.pem = chain.pem.split_off(rest);
        };
        (deed == Deed::Certificate).then_some(Twist::Chain(root))
    };
    check_refused(script, "errored", "no certificate of the chain is for the key", 20).await;
}

#[tokio::test]
async fn an_alternate_that_is_not_served_leaves_the_default_chain() {
    let script: Script = |deed, before| match (deed, before) {
        (Deed::Certificate, 1..) => Some(refuse(404, "malformed")),
        _ => None,
    };
    check_issued(script, Deed::Certificate, 10).await;
}
