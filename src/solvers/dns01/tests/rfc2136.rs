use std::sync::Arc;

use async_trait::async_trait;
use hickory_resolver::proto::op::{OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::SOA;
use hickory_resolver::proto::rr::{RData, Record};
use serde_json::json;
use tokio::net::UdpSocket;

use super::factory::Store;
use super::{NAME, webhooks, zones};
use crate::dns::lookup::SystemResolver;
use crate::dns::{FindZone, LookupError, Resolve, testing};
use crate::solvers::SolveError;
use crate::solvers::dns01::factory::provider;
use crate::solvers::dns01::site::{Hooks, Site};
use crate::solvers::testing::advice;

/// Checks the name by way of the server at `localhost`, which is `::1` first, and that port.
async fn check(port: u16, expected: Result<(), String>) {
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::new());
    let (zones, webhooks) = (zones(), webhooks());
    let site = Site {
        namespace: "web",
        credentials: &Store,
        ambient: false,
        zones: &zones,
        resolver: &resolver,
        webhooks: &webhooks,
        hooks: Hooks::NotAllowed,
        impatient: false,
    };
    let nameserver = format!("localhost:{port}");
    let solver = serde_json::from_value(json!({"rfc2136": {"nameserver": nameserver}})).unwrap();
    let provider = provider(&solver, &site).await.unwrap();
    let seen = provider.check(NAME).await.map_err(|error| error.why);
    // Without IPv6 there is no way there.
    let seen =
        seen.map_err(|why| why.replace("cannot be reached from here", "has nobody listening"));
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn an_update_goes_to_the_next_address_where_the_first_leads_nowhere() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let mut request = [0; 512];
        while let Ok((_, from)) = server.recv_from(&mut request).await {
            let consent = [request[0], request[1], 0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            server.send_to(&consent, from).await.unwrap();
        }
    });
    check(port, Ok(())).await;
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    let nobody = |address: &str| format!("{address}:{port} has nobody listening");
    check(port, Err(format!("{}; {}", nobody("[::1]"), nobody("127.0.0.1")))).await;
}

/// Returns the hint if a server refuses a name whose zone was found to be `zone`; the server has the zone `own`, if any.
async fn hint_of_refusal(zone: &'static str, own: Option<&'static str>) -> (String, SolveError) {
    let server = testing::serve(move |question, _| {
        let is_update = question.metadata.op_code == OpCode::Update;
        let code = if is_update { ResponseCode::NotAuth } else { ResponseCode::NoError };
        let mut reply = testing::reply(question, code);
        if let Some(own) = own.filter(|_| !is_update) {
            let own = testing::name(own);
            let soa = SOA::new(own.clone(), own.clone(), 1, 60, 60, 60, 60);
            reply.metadata.authoritative = true;
            reply.add_authority(Record::from_rdata(own, 60, RData::SOA(soa)));
        }
        Some(reply)
    });
    let server = server.await.to_string();
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::new());
    let zones: Arc<dyn FindZone> = Arc::new(In(zone));
    let webhooks = webhooks();
    let site = Site {
        namespace: "web",
        credentials: &Store,
        ambient: false,
        zones: &zones,
        resolver: &resolver,
        webhooks: &webhooks,
        hooks: Hooks::NotAllowed,
        impatient: false,
    };
    let solver = serde_json::from_value(json!({"rfc2136": {"nameserver": server}})).unwrap();
    let provider = provider(&solver, &site).await.unwrap();
    let refused = provider.check(NAME).await.unwrap_err();
    (server, refused)
}

/// Every name is in this zone.
#[derive(Debug)]
struct In(&'static str);

#[async_trait]
impl FindZone for In {
    async fn zone_of(&self, _: &str) -> Result<String, LookupError> {
        Ok(self.0.to_owned())
    }
}

#[tokio::test]
async fn a_zone_that_is_not_the_domains_own_is_told_from_a_key_that_may_not_change_it() {
    for (zone, own, expected) in [
        ("example.com.", Some("example.com."), "or allow unsigned updates of example.com. there"),
        ("example.com.", None, "or allow unsigned updates of example.com. there"),
        (
            "com.",
            Some("example.com."),
            "the zone found for _acme-challenge.www.example.com. is com., but {server} has it in its zone example.com.",
        ),
        (
            "com.",
            None,
            "is com., not one of the domain's own, and {server} has none for it either: create the domain's zone there",
        ),
    ] {
        let (server, refused) = hint_of_refusal(zone, own).await;
        let hint = advice(&refused);
        assert!(hint.contains(&expected.replace("{server}", &server)), "{zone} {own:?}: {hint}");
    }
}
