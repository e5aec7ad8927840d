//! What the people of each recording did, and where we differ from it on purpose.

use serde_json::{Value, json};

use super::ca_errors;
use super::differences;
use super::fixture::{Scene, is_ready};
use super::names;
use crate::support::difference::Difference;
use crate::support::gate::Passage;
use crate::support::purpose;
use crate::support::recorded::waits_for_its_order;

/// A recording, carried out again.
pub(super) struct Play {
    pub(super) trace: &'static str,
    pub(super) act: fn(&Scene<'_>),
    pub(super) differences: &'static [&'static [Difference]],
}

/// Recordings that are not played again here, and why.
const LEFT_OUT: [(&str, &str); 3] = [
    (
        "10-ingress",
        "shows the shim that makes Certificates of Ingresses, which is not a part of ours",
    ),
    ("14-leader-election", "the Lease alone, which has tests of its own"),
    ("17-sixty-one", "shows the pace, and ours is another one on purpose"),
];

/// What a Challenge and its Order remember of us beyond cert-manager's schema, in annotations.
pub(super) const MEMORY: [Difference; 2] = [
    Difference {
        about: "Challenge *, managed by",
        theirs: "cert-manager-challenges Apply, *",
        ours: "cert-manager-challenges Apply, cert-manager-challenges Update, *",
        why: "what we must remember beyond the schema is in annotations",
    },
    Difference {
        about: "Order *, managed by",
        theirs: "cert-manager-certificaterequests-issuer-acme Update, cert-manager-orders Update status",
        ours: "cert-manager-certificaterequests-issuer-acme Update, cert-manager-orders Update, cert-manager-orders Update status",
        why: "what we must remember beyond the schema is in annotations",
    },
];

pub(super) const PLAYS: &[Play] = &[
    Play { trace: "01-http01-single", act: one_name, differences: &[&MEMORY] },
    Play { trace: "02-http01-two-names", act: two_names, differences: &[&MEMORY] },
    Play {
        trace: "03-http01-self-check-fails",
        act: self_check_fails,
        differences: &[&MEMORY, &[purpose::ACCEPTED]],
    },
    Play {
        trace: "04-http01-ca-refuses",
        act: refused_validation,
        differences: &[&MEMORY, &[INVALID, INVALID_REASON]],
    },
    Play {
        trace: "05-dns01-wildcard-apex",
        act: names::wildcard_and_apex,
        differences: &[&MEMORY],
    },
    Play {
        trace: "06-no-solver-matches",
        act: no_solver,
        differences: &[&MEMORY, &[purpose::NO_SOLVER]],
    },
    Play {
        trace: "07-issuer-errors",
        act: ca_errors::issuer_errors,
        differences: &[&MEMORY, &differences::ISSUERS],
    },
    Play { trace: "08-certificate-deleted", act: deleted_certificate, differences: &[&MEMORY] },
    Play { trace: "09-renewal", act: two_renewals, differences: &[&MEMORY, &purpose::RENEWALS] },
    Play { trace: "12-cluster-issuer", act: cluster_issuer, differences: &[&MEMORY] },
    Play {
        trace: "13-spec-change-while-pending",
        act: changed_names,
        differences: &[&MEMORY, &[purpose::ONE_INGRESS]],
    },
    Play { trace: "15-gateway-httproute", act: http_route, differences: &[&MEMORY] },
    Play {
        trace: "16-order-deleted",
        act: deleted_orders,
        differences: &[&MEMORY, &[INVALID, purpose::ACCEPTED, purpose::ONE_INGRESS], &TRIED_AGAIN],
    },
    Play {
        trace: "18-finalize-with-location",
        act: ca_errors::named_order,
        differences: &[&MEMORY],
    },
    Play {
        trace: "19-dns01-clean-up-error",
        act: names::clean_up_fails,
        differences: &[&MEMORY, &[names::WHERE_IT_LACKS]],
    },
    Play {
        trace: "21-same-name-twice",
        act: same_name_twice,
        differences: &[&MEMORY, &purpose::HELD_BACK, &[KEPT_WAITING]],
    },
    Play {
        trace: "22-ca-errors",
        act: ca_errors::ca_errors,
        differences: &[&MEMORY, &differences::ERRORS],
    },
];

/// The one in which nobody approves but a person.
pub(super) const DENIED: Play = Play {
    trace: "11-request-denied",
    act: ca_errors::denied_request,
    differences: &[&differences::DENIED],
};

/// The one in which the controllers are killed, once: ours have no five passes in the middle of which to kill them again.
pub(super) const KILLED: Play = Play {
    trace: "20-controller-killed",
    act: until_the_self_check_fails,
    differences: &[&MEMORY, &[purpose::ACCEPTED]],
};

/// An Order that the CA has refused: here its reason is the problem that Pebble gives for the order.
pub(super) const INVALID: Difference = Difference {
    about: "",
    theirs: r#"order is in "invalid" state: "#,
    ours: r#"order is in "invalid" state: 403 urn:ietf:params:acme:error:unauthorized: <detail>"#,
    why: "an invalid Order has its reason in its status, with the CA's problem",
};
const INVALID_REASON: Difference = Difference {
    about: "Order *eason",
    theirs: "-",
    ours: "*403 urn:ietf:params:acme:error:unauthorized: <detail>",
    why: "an invalid Order has its reason in its status, with the CA's problem",
};

/// Deleting the failed Order is a wish for another try, so nobody has to delete the request and to trigger it by hand.
const TRIED_AGAIN: [Difference; 3] = [
    Difference {
        about: "Certificate web, Issuing",
        theirs: "* > False Failed * > True ManuallyTriggered \"Certificate re-issuance manually triggered\" > -",
        ours: "* > False Failed * > True DoesNotExist \"Issuing certificate as Secret does not exist\" > -",
        why: "deleting a failed Order is a retry",
    },
    Difference {
        about: "Certificate web, managed by",
        theirs: "*, kubectl-patch Update status",
        ours: "*, kubectl-client-side-apply Update",
        why: "deleting a failed Order is a retry",
    },
    Difference {
        about: "Order web-1-347714117, reason",
        theirs: "- > gone > - > gone > -",
        ours: "- > gone > - > 403 urn:ietf:params:acme:error:unauthorized: <detail> > gone > -",
        why: "an invalid Order has its reason in its status, with the CA's problem",
    },
];

/// The first challenge must not pass before the second one is there.
const KEPT_WAITING: Difference = Difference {
    about: "Challenge one-1-3228917918-<same.t21.example.test>, reason",
    theirs: "- > Successfully authorized domain > gone",
    ours: "- > Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200' > - > Successfully authorized domain > gone",
    why: "ours would be through before the second Certificate is applied: 404 until then",
};

fn one_name(scene: &Scene<'_>) {
    scene.begin(&["web"]);
    scene.until_issued("web", 1);
}

fn two_names(scene: &Scene<'_>) {
    scene.begin(&["two"]);
    scene.until_issued("two", 1);
    scene.apply("CertificateRequest", "byhand", 1);
    scene.until("CertificateRequest", "byhand", is_ready);
    scene.until_clean();
}

fn until_the_self_check_fails(scene: &Scene<'_>) {
    scene.self_check.set(Passage::Missing);
    scene.begin(&["web"]);
    scene.until("Challenge", "web", |challenge| !challenge["status"]["reason"].is_null());
    scene.until("CertificateRequest", "web", waits_for_its_order);
}

fn self_check_fails(scene: &Scene<'_>) {
    until_the_self_check_fails(scene);
    scene.self_check.set(Passage::Patient);
    scene.until_issued("web", 1);
}

fn refused_validation(scene: &Scene<'_>) {
    scene.validation.set(Passage::Wrong);
    scene.begin(&["web"]);
    scene.until("Certificate", "web", |c| c["status"]["failedIssuanceAttempts"] == 1);
    scene.until_clean();
}

fn no_solver(scene: &Scene<'_>) {
    scene.begin(&["web"]);
    scene.until_event("Solver", "web");
    scene.apply("Issuer", "acme", 2);
    scene.until_issued("web", 1);
}

fn deleted_certificate(scene: &Scene<'_>) {
    until_the_self_check_fails(scene);
    scene.delete("certificate/web");
    for kind in ["Certificate", "CertificateRequest", "Order", "Challenge"] {
        scene.until_none(kind);
    }
    scene.until_clean();
}

fn two_renewals(scene: &Scene<'_>) {
    scene.begin(&["web"]);
    scene.until_issued("web", 1);
    for revision in 2..=3 {
        scene.add_condition("Certificate", "web", &manually_triggered());
        scene.until_issued("web", revision);
    }
}

fn cluster_issuer(scene: &Scene<'_>) {
    scene.apply("ClusterIssuer", "trace-12-acme", 1);
    scene.until("ClusterIssuer", "trace-12-acme", is_ready);
    scene.apply("Certificate", "web", 1);
    scene.until_issued("web", 1);
    scene.delete("clusterissuer/trace-12-acme");
    scene.kubectl.run(&["delete", "secret/trace-12-acme-account", "--namespace=cert-manager"]);
}

fn changed_names(scene: &Scene<'_>) {
    until_the_self_check_fails(scene);
    scene.apply("Certificate", "web", 2);
    scene.until_gone("Order", "web-1-3485123724");
    // The first Challenge may look again before it goes: it must not pass.
    let namespace = scene.namespace.name();
    scene.witness.until("the deletion of the first challenge", namespace, |objects| {
        let is_at_work = |challenge: &&Value| {
            let metadata = &challenge["metadata"];
            metadata["name"].as_str().unwrap().starts_with("web-1-3485123724-")
                && metadata["deletionTimestamp"].is_null()
        };
        let all = objects.of("Challenge", namespace);
        (!all.iter().any(is_at_work)).then_some(())
    });
    scene.self_check.set(Passage::Patient);
    scene.until_issued("web", 1);
}

fn http_route(scene: &Scene<'_>) {
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
        "spec": {
            "gatewayClassName": "none",
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    });
    scene.kubectl.apply(&gateway.to_string());
    scene.begin(&["web"]);
    scene.until_issued("web", 1);
}

fn deleted_orders(scene: &Scene<'_>) {
    const ORDER: &str = "order/web-1-347714117";
    scene.self_check.set(Passage::Missing);
    scene.begin(&["web"]);
    // The new Challenge may have to wait for the clean-up of the old one at first.
    let waits = |challenge: &Value| {
        let reason = challenge["status"]["reason"].as_str().unwrap_or_default();
        reason.starts_with("Waiting for HTTP-01 challenge propagation: ")
    };
    let first = scene.until("Challenge", "web", waits);
    scene.until("CertificateRequest", "web", waits_for_its_order);
    scene.delete(ORDER);
    scene.until("Challenge", "web", |challenge| {
        challenge["metadata"]["uid"] != first["metadata"]["uid"] && waits(challenge)
    });
    scene.until_gone("Challenge", first["metadata"]["name"].as_str().unwrap());
    scene.validation.set(Passage::Wrong);
    scene.self_check.set(Passage::Patient);
    scene.until("Certificate", "web", |c| c["status"]["failedIssuanceAttempts"] == 1);
    scene.until_clean();
    scene.validation.set(Passage::Open);
    scene.delete(ORDER);
    scene.until_issued("web", 1);
}

fn same_name_twice(scene: &Scene<'_>) {
    scene.self_check.set(Passage::Missing);
    scene.begin(&["one"]);
    scene.until("Challenge", "one", |challenge| !challenge["status"]["reason"].is_null());
    scene.apply("Certificate", "two", 1);
    scene.until("Challenge", "two", |challenge| !challenge["status"]["reason"].is_null());
    scene.self_check.set(Passage::Patient);
    scene.until_issued("one", 1);
    scene.until_issued("two", 1);
}

/// What `cmctl renew` adds.
pub(super) fn manually_triggered() -> Value {
    json!({
        "type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
        "message": "Certificate re-issuance manually triggered",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    })
}

#[test]
fn every_recording_is_played_or_left_out_for_a_reason() {
    let played = PLAYS.iter().map(|play| play.trace).chain([DENIED.trace, KILLED.trace]);
    let mut all: Vec<&str> = played.chain(LEFT_OUT.map(|(trace, _)| trace)).collect();
    all.sort_unstable();
    let numbers: Vec<usize> = all.iter().map(|trace| trace[..2].parse().unwrap()).collect();
    assert_eq!(numbers, (1..=22).collect::<Vec<_>>());
}
