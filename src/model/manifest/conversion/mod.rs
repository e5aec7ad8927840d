//! Conversion of old API versions to `v1` (cert-manager up to 0.16, and up to 1.5 for users who never changed their files).
//!
//! Conversion works on the tree, so that complaints about a field still have its line. A field with a counterpart is
//! moved there with a warning; a field without one is refused with the name of the field that must change.

mod acme_config;
mod ingress;
mod renames;

use super::{Draft, Node};

/// Converts every draft that is written in an old version.
///
/// Takes the whole set, because up to 0.10 the solvers of an Issuer were chosen in its Certificates.
pub(crate) fn convert(drafts: &mut [Draft]) {
    let mut changes = acme_config::move_to_issuers(drafts);
    changes.resize(drafts.len(), Vec::new());
    for (draft, mut changes) in drafts.iter_mut().zip(changes) {
        let Some(version) = draft.version else { continue };
        changes.extend(renames::rename(draft, version));
        let now = draft.kind.api_version();
        let was = draft.node.text_of("apiVersion").to_owned();
        let mut message = format!("{was} is an old version, read as {now}");
        if !changes.is_empty() {
            message = format!("{message}: {}", changes.join("; "));
        }
        draft.warn("apiVersion", message);
        if let Some(field) = draft.node.get_mut("apiVersion") {
            *field = Node::text(field.at, now);
        }
    }
}

/// Returns the current name of an annotation that cert-manager read up to 0.10.
pub fn new_annotation(name: &str) -> Option<&'static str> {
    renames::new_annotation(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::model::manifest::set::Namespaces;
    use crate::model::manifest::{Set, Source, read};

    const LOCAL: Namespaces<'_> = Namespaces { given: None, default: "default" };

    /// Reads texts as files named by their number.
    fn convert(texts: &[&str]) -> Result<Set, Vec<String>> {
        let sources: Vec<Source> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| Source { name: format!("{n}.yaml"), text: (*text).to_owned() })
            .collect();
        read(&sources, LOCAL).map_err(|errors| {
            let show = |e: &crate::model::manifest::Complaint| match e.hint() {
                Some(hint) => format!("{e} | {hint}"),
                None => e.to_string(),
            };
            errors.iter().map(show).collect()
        })
    }

    fn warnings(set: &Set) -> Vec<String> {
        set.warnings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_quick_start_converts() {
        let set = convert(&[
            include_str!("../../../../tests/fixtures/manifests/quick-start/staging-issuer.yaml"),
            include_str!("../../../../tests/fixtures/manifests/quick-start/production-issuer.yaml"),
            include_str!("../../../../tests/fixtures/manifests/quick-start/deployment.yaml"),
            include_str!("../../../../tests/fixtures/manifests/quick-start/service.yaml"),
            include_str!("../../../../tests/fixtures/manifests/quick-start/ingress-tls.yaml"),
        ])
        .unwrap();
        assert_eq!(
            set.documents[0].record.object,
            json!({"apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "letsencrypt-staging", "namespace": "default"},
            "spec": {"acme": {
                "server": "https://acme-staging-v02.api.letsencrypt.org/directory",
                "email": "user@example.com",
                "privateKeySecretRef": {"name": "letsencrypt-staging"},
                "solvers": [{"http01": {"ingress": {"class": "nginx"}}}],
            }}})
        );
        assert_eq!(set.documents[1].record.key.to_string(), "Issuer default/letsencrypt-prod");
        let skipped: Vec<&str> = set.skipped.iter().map(|s| s.kind.as_str()).collect();
        assert_eq!(skipped, ["Deployment", "Service"]);
        assert_eq!(set.documents[2].record.key.to_string(), "Ingress default/kuard");
        assert_eq!(
            warnings(&set),
            [
                "0.yaml:1:16: Issuer letsencrypt-staging: apiVersion: certmanager.k8s.io/v1alpha1 is an old version, read as cert-manager.io/v1",
                "1.yaml:1:16: Issuer letsencrypt-prod: apiVersion: certmanager.k8s.io/v1alpha1 is an old version, read as cert-manager.io/v1",
                "4.yaml:1:13: Ingress kuard: apiVersion: extensions/v1beta1 is an old version, read as networking.k8s.io/v1: serviceName and servicePort of backends are now service",
            ]
        );
    }

    #[test]
    fn shell_text_that_came_along_is_told() {
        let text =
            include_str!("../../../../tests/fixtures/manifests/quick-start/pasted-with-shell.txt");
        assert_eq!(convert(&[text]), Err(vec![
            "0.yaml:19:1: this is a shell command, not YAML | leave it out: it came along when the manifest was copied".to_owned()
        ]));
    }

    #[test]
    fn the_choice_of_solvers_moves_to_the_issuer() {
        let set =
            convert(&[include_str!("../../../../tests/fixtures/manifests/old-acme-config.yaml")])
                .unwrap();
        let specs: Vec<_> = set.documents.iter().map(|d| d.record.object["spec"].clone()).collect();
        assert_eq!(
            specs[0]["acme"],
            json!({"server": "https://acme-v02.api.letsencrypt.org/directory", "email": "me@example.com",
            "privateKeySecretRef": {"name": "letsencrypt"},
            "solvers": [
                {"selector": {"dnsNames": ["www.example.com", "shop.example.com"]},
                 "http01": {"ingress": {"class": "nginx", "serviceType": "ClusterIP"}}},
                {"selector": {"dnsNames": ["*.example.com"]},
                 "dns01": {"cnameStrategy": "Follow", "cloudDNS": {"project": "project-1",
                    "serviceAccountSecretRef": {"name": "google", "key": "key.json"}}}},
            ]})
        );
        assert_eq!(
            specs[1],
            json!({"secretName": "web-tls", "dnsNames": ["www.example.com", "*.example.com"],
                "issuerRef": {"name": "letsencrypt", "kind": "ClusterIssuer"},
                "subject": {"organizations": ["Example"]},
                "privateKey": {"algorithm": "RSA", "size": 4096, "encoding": "PKCS8"}})
        );
        assert_eq!(
            set.documents[1].record.object["metadata"]["annotations"],
            json!({"cert-manager.io/issuer-kind": "ClusterIssuer"})
        );
        assert_eq!(
            warnings(&set),
            [
                "0.yaml:2:13: ClusterIssuer letsencrypt: apiVersion: certmanager.k8s.io/v1alpha1 is an old version, read as cert-manager.io/v1: the choice of Certificate web is now in spec.acme.solvers; the choice of Certificate shop is now in spec.acme.solvers; provider unused is left out: no Certificate of this set uses it; spec.acme.solvers[1].dns01.clouddns is now cloudDNS",
                "0.yaml:25:13: Certificate web: apiVersion: certmanager.k8s.io/v1alpha1 is an old version, read as cert-manager.io/v1: spec.acme.config moved to ClusterIssuer letsencrypt; annotation certmanager.k8s.io/issuer-kind is now cert-manager.io/issuer-kind; annotation certmanager.k8s.io/acme-challenge-type is gone: the issuer's solvers decide; spec.organization is now spec.subject.organizations; spec.keyAlgorithm is now spec.privateKey.algorithm; spec.keySize is now spec.privateKey.size; spec.keyEncoding is now spec.privateKey.encoding",
                "0.yaml:41:14: Certificate web: spec.dnsNames[0]: \"www.example.com\" is covered by *.example.com, and some CAs (Let's Encrypt) refuse an order for both: leave one out",
                "0.yaml:51:13: Certificate shop: apiVersion: certmanager.k8s.io/v1alpha1 is an old version, read as cert-manager.io/v1: spec.acme.config moved to ClusterIssuer letsencrypt",
            ]
        );
    }

    #[test]
    fn later_versions_convert_field_by_field() {
        let set =
            convert(&[include_str!("../../../../tests/fixtures/manifests/old-versions.yaml")])
                .unwrap();
        let specs: Vec<_> = set.documents.iter().map(|d| d.record.object["spec"].clone()).collect();
        assert_eq!(
            specs[0],
            json!({"secretName": "alpha2-tls", "dnsNames": ["alpha2.example.com"], "issuerRef": {"name": "old"},
                "subject": {"countries": ["DE"], "organizations": ["Example"]},
                "privateKey": {"algorithm": "ECDSA", "size": 256},
                "uris": ["spiffe://a/b"], "emailAddresses": ["me@example.com"]})
        );
        assert_eq!(specs[1]["privateKey"], json!({"encoding": "PKCS1"}));
        assert_eq!(specs[2]["privateKey"], json!({"algorithm": "RSA"}));
        assert_eq!(specs[2]["uris"], json!(["spiffe://a/b"]));
        let solvers = &specs[3]["acme"]["solvers"];
        assert_eq!(solvers[0]["dns01"]["azureDNS"]["subscriptionID"], "subscription");
        assert_eq!(solvers[1]["dns01"]["acmeDNS"]["host"], "https://auth.example");
        assert_eq!(set.warnings.len(), 4);
    }

    const OLD_ISSUER: &str = "
apiVersion: certmanager.k8s.io/v1alpha1
kind: Issuer
metadata: {name: le}
spec:
  acme:
    server: https://ca.example/dir
    privateKeySecretRef: {name: le}
";
    const OLD_CERTIFICATE: &str = "
apiVersion: certmanager.k8s.io/v1alpha1
kind: Certificate
metadata: {name: web}
spec:
  secretName: web-tls
  dnsNames: [a.example]
  issuerRef: {name: le}
  acme:
    config:
    - domains: [a.example]
      http01: {ingress: web}
";

    #[test]
    fn an_issuer_with_http01_alone_serves_every_name_by_it() {
        let issuer = format!("{OLD_ISSUER}    http01: {{}}\n");
        let set = convert(&[&issuer]).unwrap();
        let acme = &set.documents[0].record.object["spec"]["acme"];
        assert_eq!(acme["solvers"], json!([{"http01": {"ingress": {}}}]));
        assert_eq!(acme.get("http01"), None);
    }

    #[test]
    fn what_cannot_be_converted_is_refused_with_its_field() {
        let providers = format!(
            "{OLD_ISSUER}    dns01:\n      providers:\n      - name: g\n        clouddns: {{project: p}}\n"
        );
        let new_issuer = OLD_ISSUER.replace("certmanager.k8s.io/v1alpha1", "cert-manager.io/v1");
        let unknown = OLD_CERTIFICATE.replace("http01: {ingress: web}", "dns01: {provider: x}");
        let neither = OLD_CERTIFICATE.replace("      http01: {ingress: web}\n", "");
        let twice = format!(
            "{OLD_CERTIFICATE}    - domains: [b.example, a.example]\n      http01: {{ingress: other}}\n"
        );
        let both = OLD_CERTIFICATE.replace(
            "  acme:\n    config:\n    - domains: [a.example]\n      http01: {ingress: web}\n",
            "  keySize: 2048\n  privateKey: {size: 4096}\n",
        );
        let alone = "0.yaml:10:5: Certificate web: spec.acme.config: belongs into Issuer le, which is not in this set | give both files together, or name the domains in the issuer: spec.acme.solvers[].selector.dnsNames";
        for (texts, expected) in [
            (vec![OLD_CERTIFICATE], alone),
            (
                vec![OLD_CERTIFICATE, &new_issuer],
                "0.yaml:10:5: Certificate web: spec.acme.config: belongs into Issuer le, which is not of v1alpha1 | name the domains in the issuer: spec.acme.solvers[].selector.dnsNames",
            ),
            (
                vec![&providers],
                "0.yaml:9:5: Issuer le: spec.acme.dns01: which names its providers serve is said in Certificates, and none of this set says it | give the Certificates too, or write an entry dns01 under spec.acme.solvers",
            ),
            (
                vec![&unknown, OLD_ISSUER],
                "0.yaml:12:25: Certificate web: spec.acme.config[0].dns01.provider: the issuer has no provider \"x\"",
            ),
            (
                vec![&neither, OLD_ISSUER],
                "0.yaml:11:7: Certificate web: spec.acme.config[0]: http01 or dns01 is required",
            ),
            (
                vec![&twice, OLD_ISSUER],
                "0.yaml:13:28: Certificate web: spec.acme.config[1].domains[1]: Issuer le has another solver for a.example already",
            ),
            (
                vec![&both],
                "0.yaml:9:12: Certificate web: spec.keySize: is the old name of spec.privateKey.size, which is there too",
            ),
        ] {
            let errors = convert(&texts).unwrap_err();
            assert_eq!(errors, [expected]);
        }
    }

    #[test]
    fn old_fields_in_v1_are_refused_with_their_successor() {
        let text = "
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec:
  secretName: web-tls
  dnsNames: [a.example]
  issuerRef: {name: le}
  keyAlgorithm: ecdsa
  acme: {config: []}
";
        assert_eq!(convert(&[text]), Err(vec![
            "0.yaml:9:3: Certificate web: spec.keyAlgorithm: was renamed: write privateKey.algorithm".to_owned(),
            "0.yaml:10:3: Certificate web: spec.acme: is gone since v1alpha2 | name the domains in the issuer: spec.acme.solvers[].selector.dnsNames".to_owned(),
        ]));
    }
}
