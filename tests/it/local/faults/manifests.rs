//! Manifests and flags that cannot be: the CA never hears of them, and nothing is stored.

use std::process::Command;

use kubectl_acme::model::Kind;

use super::site::Site;

/// Runs with a changed manifest and flags; the CA must not have heard of it, and nothing may have been written.
#[track_caller]
fn check(change: impl FnOnce(&Site), more: &str, code: i32, complaint: &str) {
    let site = Site::new();
    change(&site);
    site.run(site.order(more)).check(code, complaint);
    assert_eq!(site.proxy.counts().total(), 0);
    assert_eq!(site.results(), [""; 0]);
    for kind in [Kind::Secret, Kind::Issuer, Kind::Certificate] {
        assert_eq!(site.stored(kind), [""; 0]);
    }
}

fn replace(from: &str, to: &str) -> impl FnOnce(&Site) {
    move |site| site.change(from, to)
}

#[test]
fn a_name_that_is_misspelt_is_told_with_its_place() {
    check(
        replace("dnsNames", "dnsName"),
        "",
        2,
        "\
error: site.yaml:21:3: Certificate web: spec.dnsName: unknown field, did you mean dnsNames?
",
    );
}

#[test]
fn a_manifest_that_is_no_yaml_is_told_with_its_place() {
    check(
        replace("spec:\n  secretName", "spec: [\n  secretName"),
        "",
        2,
        "\
error: site.yaml:21:11: this does not continue what stands above
hint: check the indentation: fields of one object begin in the same column
",
    );
}

#[test]
fn an_unknown_issuer_is_told_before_anything_is_asked() {
    check(replace("issuerRef:\n    name: acme", "issuerRef:\n    name: acne"), "", 2, "\
error: Certificate default/web refers to Issuer default/acne, which is neither in these manifests nor in the store
hint: did you mean Issuer default/acme, which exists?
hint: issuerRef.kind is Issuer unless it says ClusterIssuer
");
}

#[test]
fn an_issuer_of_another_type_is_left_to_cert_manager() {
    check(
        |site| {
            let manifest = site.manifest();
            let (_, certificate) = manifest.split_once("---\n").unwrap();
            let issuer = "apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata:\n  name: acme\nspec:\n  selfSigned: {}\n---\n";
            site.give(&format!("{issuer}{certificate}"));
        },
        "",
        2,
        "\
error: Issuer default/acme is of type selfSigned: on this machine only acme is served
hint: a cluster with cert-manager serves the other types
",
    );
}

#[test]
fn a_wildcard_needs_dns01() {
    check(replace("[www.example.com]", "['*.example.com']"), "", 9, "\
error: Certificate default/web: *.example.com: wildcards need DNS-01, and no dns01 solver of Issuer default/acme fits
hint: add a dns01 solver to Issuer default/acme, or widen the selector of another
");
}

#[test]
fn a_dns01_solver_without_its_secret_is_refused() {
    let dns01 = "dns01:\n        rfc2136:\n          nameserver: 127.0.0.1:53\n          tsigSecretSecretRef: {name: tsig, key: key}\n          tsigKeyName: k";
    check(replace("http01:\n        ingress: {}", dns01), "", 9, "\
error: Certificate default/web: www.example.com: the dns01 solver of Issuer default/acme lacks its Secret: secrets \"tsig\" not found in namespace \"default\"
hint: add a manifest of Secret tsig, with the key key, in namespace default
");
}

#[test]
fn a_name_that_no_solver_fits_is_refused() {
    let narrow = "selector:\n        dnsZones: [example.org]\n      http01:\n        ingress: {}";
    check(replace("http01:\n        ingress: {}", narrow), "", 9, "\
error: Certificate default/web: www.example.com: no configured challenge solvers can be used for this challenge (solvers of Issuer default/acme)
hint: add a solver to Issuer default/acme, or widen its selector
");
}

#[test]
fn two_certificates_may_not_share_a_folder_of_out() {
    check(
        |site| {
            let manifest = site.manifest();
            let (_, certificate) = manifest.split_once("---\n").unwrap();
            let second = certificate.replace("name: web\n", "name: shop\n");
            site.give(&format!("{manifest}---\n{second}"));
        },
        "",
        2,
        "\
error: site.yaml:31:15: Certificate shop: spec.secretName: Certificate web at site.yaml:20:15 writes the same Secret
hint: give one of the two another secretName
",
    );
}

#[test]
fn nothing_to_issue_is_told() {
    check(
        |site| site.give("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n"),
        "",
        2,
        "\
error: nothing to issue: the input holds no Certificate, CertificateRequest, Issuer, ClusterIssuer or Secret, nor an Ingress, Gateway or ListenerSet that asks for one
hint: examples/ holds manifests to begin with; --domain NAME needs none
",
    );
}

#[test]
fn a_missing_file_is_told() {
    check(
        |site| std::fs::remove_file(site.path("site.yaml")).unwrap(),
        "",
        2,
        "\
error: cannot read site.yaml: there is no such file or folder
",
    );
}

#[test]
fn without_a_store_both_ways_are_named() {
    let site = Site::new();
    for local in [None, Some(""), Some("0"), Some("False"), Some("no"), Some("off")] {
        let mut order = site.order("");
        order
            .env_remove("KUBECTL_ACME_LOCAL")
            .envs(local.map(|local| ("KUBECTL_ACME_LOCAL", local)));
        order.env_remove("KUBECONFIG").env("HOME", site.path("home"));
        site.run(order).check(
            2,
            "\
error: no store chosen: --local is not given, and there is neither a kubeconfig (KUBECONFIG, ~/.kube/config) nor a Pod around us
hint: --local keeps everything on this machine (or KUBECTL_ACME_LOCAL=1)
hint: --kubeconfig FILE, KUBECONFIG or ~/.kube/config names a cluster
",
        );
    }
}

#[test]
fn a_local_store_has_no_context() {
    check(
        |_| {},
        "--local=state --context prod",
        2,
        "\
error: --local cannot be used with --context: one names this machine, the other a cluster
",
    );
}

#[test]
fn what_is_typed_beats_the_environment() {
    let site = Site::new();
    let with = |mut command: Command, name: &str, value: &str| {
        command.env(name, value);
        site.run(command)
    };
    with(site.order("--dry-run=client"), "KUBECTL_ACME_DOMAIN", "other.example").check(0, "");
    let domain = site.program("order --domain other.example --dry-run=client -o name");
    let made = with(domain, "KUBECTL_ACME_FILENAME", "site.yaml");
    assert!(made.result.contains("certificate.cert-manager.io/other-example"), "{made:?}");
    let mut both = site.program("order --dry-run=client");
    both.env("KUBECTL_ACME_FILENAME", "site.yaml");
    let refused = with(both, "KUBECTL_ACME_DOMAIN", "other.example");
    assert!(refused.talk.contains("cannot be used with"), "{refused:?}");
}

#[test]
fn usage_shows_only_what_was_typed() {
    let site = Site::new();
    for command in ["challenge", "certificate"] {
        let help = site.run(site.program(command));
        help.check(2, "");
        assert!(
            help.talk.contains(&format!("Usage: kubectl-acme {command} [OPTIONS] <COMMAND>")),
            "{help:?}"
        );
    }
    let refused = site.run(site.program("get --bogus"));
    assert!(refused.talk.contains("Usage: kubectl-acme get [OPTIONS]"), "{refused:?}");
    assert!(!refused.talk.contains("--local"), "{refused:?}");
}
