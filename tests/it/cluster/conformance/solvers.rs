//! Cases 45 to 56: which solver is chosen for a name.

use serde_json::{Value, json};

use super::stage::{Stage, certificate, fits, name};
use crate::support::cluster::eventually;

/// What is to come of a row.
enum Choice {
    /// A Challenge whose solver looks like that.
    Solver(Value),
    /// No Challenge, and an Event with this at its end.
    None(&'static str),
}

/// One case.
struct Row {
    name: &'static str,
    domain: &'static str,
    labels: Value,
    annotations: Value,
    solvers: Value,
    choice: Choice,
}

const NO_SOLVER: &str = "no configured challenge solvers can be used for this challenge";
/// cert-manager says no more than the above.
const NOT_OFFERED: &str = "no configured challenge solvers can be used for this challenge: for *.example.com the CA offers …";

/// An HTTP-01 solver told apart by its class.
fn http(class: &str, selector: Value) -> Value {
    solver(json!({"http01": {"ingress": {"class": class}}}), selector)
}

/// A DNS-01 solver.
fn dns(selector: Value) -> Value {
    solver(json!({"dns01": {"rfc2136": {"nameserver": "192.0.2.53"}}}), selector)
}

fn solver(mut solver: Value, selector: Value) -> Value {
    if !selector.is_null() {
        solver["selector"] = selector;
    }
    solver["waitInsteadOfSelfCheck"] = "1h".into();
    solver
}

fn of_class(class: &str) -> Choice {
    Choice::Solver(json!({"http01": {"ingress": {"class": class}}}))
}

fn by_dns() -> Choice {
    Choice::Solver(json!({"dns01": {"rfc2136": {"nameserver": "192.0.2.53"}}}))
}

fn row(name: &'static str, domain: &'static str, solvers: Value, choice: Choice) -> Row {
    Row { name, domain, labels: json!({}), annotations: json!({}), solvers, choice }
}

fn rows() -> Vec<Row> {
    let www = "www.example.com";
    let none = || Value::Null;
    let named = |names: &[&str]| json!({"dnsNames": names});
    let zones = |zones: &[&str]| json!({"dnsZones": zones});
    let labelled = |labels: Value| json!({"matchLabels": labels});
    let by_name_and_label = json!({"dnsNames": [www], "matchLabels": {"team": "web"}});
    let override_class = "acme.cert-manager.io/http01-override-ingress-class";
    let override_name = "acme.cert-manager.io/http01-override-ingress-name";
    let both =
        "may not specify more than one of: name, class, ingressClassName override annotations";
    let labels = || json!({"team": "web", "tier": "front"});
    let edited = json!({"http01": {"ingress": {"name": "site"}}, "waitInsteadOfSelfCheck": "1h"});
    let overridden = json!({"http01": {"ingress": {"class": "x", "name": null}}});
    vec![
        row("c45a", www, json!([http("a", none()), http("b", json!({}))]), of_class("a")),
        row("c45b", www, json!([http("b", json!({})), http("a", none())]), of_class("b")),
        row("c46", www, json!([http("a", none()), http("b", named(&[www]))]), of_class("b")),
        Row {
            labels: labels(),
            ..row(
                "c47",
                www,
                json!([http("a", named(&[www])), http("b", by_name_and_label)]),
                of_class("b"),
            )
        },
        row(
            "c48",
            www,
            json!([http("a", zones(&["com"])), http("b", zones(&["example.com"]))]),
            of_class("b"),
        ),
        Row {
            labels: labels(),
            ..row(
                "c49",
                www,
                json!(
                    [http("a", labelled(json!({"team": "web"}))), http("b", labelled(labels())),]
                ),
                of_class("b"),
            )
        },
        row(
            "c50",
            www,
            json!([http("a", zones(&["example.com"])), http("b", named(&[www]))]),
            of_class("b"),
        ),
        row(
            "c51a",
            "*.example.com",
            json!([dns(named(&["example.com"]))]),
            Choice::None(NO_SOLVER),
        ),
        row("c51b", "*.example.com", json!([dns(named(&["*.example.com"]))]), by_dns()),
        row("c51c", "*.example.com", json!([dns(zones(&["example.com"]))]), by_dns()),
        row("c52", "*.example.com", json!([http("a", none())]), Choice::None(NOT_OFFERED)),
        Row {
            labels: json!({"team": "web"}),
            ..row(
                "c53",
                www,
                json!([http("a", labelled(json!({"team": "mail"})))]),
                Choice::None(NO_SOLVER),
            )
        },
        Row {
            annotations: json!({override_class: "x", override_name: "y"}),
            ..row("c54", www, json!([http("a", none())]), Choice::None(both))
        },
        Row {
            annotations: json!({override_class: "x"}),
            ..row("c55", www, json!([edited]), Choice::Solver(overridden))
        },
        Row {
            annotations: json!({override_class: "x"}),
            ..row("c56", www, json!([dns(none())]), by_dns())
        },
    ]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn the_solver_is_chosen_as_cert_manager_chooses() {
    let stage = Stage::open("choice").await;
    let rows = rows();
    let objects = rows.iter().flat_map(|row| {
        // Each has an account of its own: of one account and one set of names, one order follows ten seconds after the other.
        let issuer = json!({"solvers": row.solvers});
        let reference = json!({"issuerRef": {"name": row.name}});
        let mut certificate = certificate(row.name, &[row.domain], reference);
        certificate["metadata"]["labels"] = row.labels.clone();
        certificate["metadata"]["annotations"] = row.annotations.clone();
        [stage.issuer(row.name, issuer), certificate]
    });
    stage.apply(&objects.collect::<Vec<_>>());
    for row in &rows {
        let begins = format!("{}-1-", row.name);
        let of_row = |object: &Value| name(object).starts_with(&begins);
        let order = eventually(&format!("the Order of {}", row.name), || {
            stage.kubectl.items("orders").into_iter().find(of_row)
        });
        match &row.choice {
            Choice::Solver(expected) => {
                let challenge = eventually(&format!("the Challenge of {}", row.name), || {
                    stage.kubectl.items("challenges").into_iter().find(of_row)
                });
                let solver = &challenge["spec"]["solver"];
                assert!(fits(expected, Some(solver)), "{}: {solver}", row.name);
            }
            Choice::None(why) => {
                stage
                    .hears(&format!("order/{}", name(&order)), &format!("Warning Solver …: {why}"));
                let challenges = stage.kubectl.items("challenges");
                assert!(!challenges.iter().any(of_row), "{}", row.name);
            }
        }
    }
}
