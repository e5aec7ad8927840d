//! The DNS server of the recordings with DNS-01, and what is done in them.

use serde_json::{Value, json};

use super::fixture::{Scene, condition, is_ready};
use crate::support::difference::Difference;
use crate::support::dns::{DnsServer, Key, Setup, Software, Updates, Zone};
use crate::support::fault::Fault;
use crate::support::story::Turn;
use crate::support::traffic::Endpoint;

/// Where it was when they were recorded.
pub(super) const RECORDED: &str = "127.0.0.1:8153";
/// The key that the recorded Issuers name, and its secret, in Base64 as solvers have it.
const KEY: (&str, &str) = ("acme-key.", "dHJhY2UtcmVjb3JkZXItdHNpZy1zZWNyZXQtMzJieXQ=");

/// A server of the zone of all recordings, and a resolver that finds it.
pub(super) struct Names {
    pub(super) server: DnsServer,
    pub(super) resolver: DnsServer,
}

impl Names {
    pub(super) fn start() -> Self {
        let mut setup = Setup::new(vec![Zone::new("example.test.").updates(Updates::Signed)]);
        let secret = KEY.1.to_owned();
        setup.keys = vec![Key { name: KEY.0.to_owned(), algorithm: "hmac-sha256", secret }];
        let server = DnsServer::start(Software::Bind, &setup);
        Self { resolver: DnsServer::recursive(&[&server]), server }
    }
}

/// Whether a recording has DNS-01 Challenges.
pub(super) fn are_needed(recorded: &[Turn]) -> bool {
    recorded.iter().any(|turn| turn.object["spec"]["type"] == "DNS-01")
}

fn apply_key(scene: &Scene<'_>) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tsig"},
        "stringData": {"secret": KEY.1},
    });
    scene.kubectl.apply(&secret.to_string());
}

/// 05: a wildcard and its apex, whose records have one name.
pub(super) fn wildcard_and_apex(scene: &Scene<'_>) {
    apply_key(scene);
    scene.begin(&["both"]);
    scene.until_issued("both", 1);
}

/// 19: the key of the updates is gone when the record has to be.
pub(super) fn clean_up_fails(scene: &Scene<'_>) {
    apply_key(scene);
    // Theirs wait a minute before they tell the CA; ours are through before anybody deletes a Secret.
    let proxy = scene.authorities.proxy();
    proxy.inject(Fault::hold().at(Endpoint::Challenge));
    scene.begin(&["web"]);
    scene.until_event("Presented", "web");
    scene.delete("secret/tsig");
    scene.until("Issuer", "acme", |issuer| !is_ready(issuer));
    scene.until("CertificateRequest", "web-1", |request| {
        let ready = condition(request, "Ready").unwrap();
        ready["message"] == "Referenced issuer does not have a Ready status condition"
    });
    proxy.release();
    scene.until_event("CleanUpError", "web");
    scene.until("Challenge", "web", |c| !c["metadata"]["deletionTimestamp"].is_null());
    apply_key(scene);
    scene.until_none("Challenge");
    scene.until_issued("web", 1);
}

/// Recording 19.
pub(super) const WHERE_IT_LACKS: Difference = Difference {
    about: "",
    theirs: r#"Error cleaning up challenge: secrets "tsig" not found"#,
    ours: r#"Error cleaning up challenge: cannot read the credentials in Secret "tsig": secrets "tsig" not found in namespace "trace-19""#,
    why: "a message says what was to be done, and where the Secret belongs",
};

/// A manifest with its name server where it is here.
pub(super) fn moved_here(manifest: &mut Value, server: &str) {
    if let Some(nameserver) = manifest.pointer_mut("/spec/acme/solvers/0/dns01/rfc2136/nameserver")
    {
        *nameserver = server.into();
    }
}
