use std::sync::Arc;

use serde_json::json;
use tokio::net::UdpSocket;

use super::super::factory::{Site, provider};
use super::super::own::Hooks;
use super::factory::Store;
use super::{NAME, webhooks, zones};
use crate::dns::Resolve;
use crate::dns::lookup::SystemResolver;

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
