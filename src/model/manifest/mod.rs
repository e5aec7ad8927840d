//! Manifests: YAML or JSON text to typed objects, with file, line and column in every complaint.
//!
//! A set is read as a whole before its objects are used, and every mistake in the set is reported at once.

mod complaint;
pub mod conversion;
mod draft;
mod fields;
mod schema;
pub mod set;
mod tree;
mod yaml;

pub use self::complaint::{Complaint, Location, Source};
pub(crate) use self::draft::Draft;
pub(crate) use self::fields::USAGES;
pub use self::tree::Position;
pub(crate) use self::tree::{Content, FieldEntry, Node};

use serde::Deserialize;

use self::complaint::{Show, excerpt};
use self::draft::DocumentKind;
use self::set::Namespaces;
use super::field::{FieldPath, Remark};
use super::ingress::IngressLike;
use super::validation::{self, Validation};
use super::{Certificate, CertificateRequest, Issuer, Kind, Record, Secret};

/// One object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The object as JSON: what the user wrote, in `v1`, with its namespace; defaults are not filled in.
    pub record: Record,
    /// Start of the object.
    pub location: Location,
}

/// Object of a kind that this program does not read: left alone, and named in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Kind as written.
    pub kind: String,
    /// Name, empty when there is none.
    pub name: String,
    /// Start of the object.
    pub location: Location,
    /// Annotation that would make cert-manager create a Certificate for the object.
    pub asks_for_certificate: Option<&'static str>,
}

/// Objects, warnings and skipped objects of a set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set {
    /// The objects, in the order of the sources.
    pub documents: Vec<Document>,
    /// Objects that were left alone.
    pub skipped: Vec<Skipped>,
    /// Warnings about parts that are allowed, but hardly do what was meant.
    pub warnings: Vec<Complaint>,
}

/// Most mistakes that are reported; a user with more mends these first.
const MAX_ERRORS: usize = 500;

/// Reads a set of manifests.
///
/// Old API versions are converted, with a warning. Exported objects lose what their cluster wrote
/// (`status`, `uid`, `resourceVersion`, owners and the like), with a warning.
///
/// # Errors
/// Fails with every complaint about the set, in the order of the text.
pub fn read(sources: &[Source], namespaces: Namespaces<'_>) -> Result<Set, Vec<Complaint>> {
    let lines = sources.iter().map(|source| source.text.lines().collect()).collect();
    let shows = sources.iter().map(|source| show_of_text(&source.text)).collect();
    let mut reading = Reading { sources, lines, shows, errors: Vec::new(), set: Set::default() };
    let mut drafts = reading.drafts();
    for draft in &mut drafts {
        draft.strip();
        set::settle_namespace(draft, &namespaces);
        set::check_name(draft);
    }
    conversion::convert(&mut drafts);
    set::check_twice(&mut drafts, sources);
    set::check_common_names(&mut drafts);
    for draft in drafts {
        reading.finish(draft);
    }
    if reading.errors.is_empty() {
        return Ok(reading.set);
    }
    let order = |complaint: &Complaint| {
        let file = sources.iter().position(|source| source.name == complaint.location.file);
        (file, complaint.location.at)
    };
    reading.errors.sort_by_key(order);
    Err(reading.errors)
}

struct Reading<'a> {
    sources: &'a [Source],
    /// Lines of each source, for the excerpts of complaints.
    lines: Vec<Vec<&'a str>>,
    /// Part of each source's lines that may be shown before the objects are known.
    shows: Vec<Show>,
    errors: Vec<Complaint>,
    set: Set,
}

impl Reading<'_> {
    /// Reads every source into drafts; documents that are not read, or cannot be read, are put aside.
    fn drafts(&mut self) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for (index, source) in self.sources.iter().enumerate() {
            for document in yaml::documents(&source.text) {
                if self.errors.len() >= MAX_ERRORS {
                    return drafts;
                }
                match document {
                    Ok(node) => {
                        let nodes = draft::expand(node);
                        drafts.extend(nodes.into_iter().filter_map(|node| self.draft(index, node)));
                    }
                    Err(broken) => {
                        let mut remark = Remark::new(FieldPath::default(), broken.message);
                        remark.hint = broken.hint.map(str::to_owned);
                        let show = self.shows[index];
                        self.errors.push(self.complaint(index, broken.at, "", remark, show));
                    }
                }
            }
        }
        drafts
    }

    fn draft(&mut self, source: usize, node: Node) -> Option<Draft> {
        match draft::identify(&node) {
            Ok(DocumentKind::Ours(kind, version)) => {
                Some(Draft { source, kind, version, node, found: schema::Findings::default() })
            }
            Ok(DocumentKind::Foreign(kind)) => {
                let location = self.location(source, node.at);
                let name = node.text_of("metadata.name").to_owned();
                let asks_for_certificate = draft::asks_for_certificate(&node);
                self.set.skipped.push(Skipped { kind, name, location, asks_for_certificate });
                None
            }
            Err(_) if self.errors.len() >= MAX_ERRORS => None,
            Err(remark) => {
                let title = draft::title(node.text_of("kind"), &node);
                let at = node.find(&remark.path, remark.matter);
                let show = *self.shows.get(source)?;
                self.errors.push(self.complaint(source, at, &title, remark, show));
                None
            }
        }
    }

    /// Checks one object by itself and adds the object to the set.
    fn finish(&mut self, mut draft: Draft) {
        let object = draft.check_fields();
        let verdict = verdict(draft.kind, &object).unwrap_or_else(|error| {
            draft.found.error(&FieldPath::default(), format!("cannot be read: {error}"));
            Validation::default()
        });
        for error in verdict.errors {
            draft.found.refuse(error);
        }
        draft.found.warnings.extend(verdict.warnings);
        let show = if draft.kind == Kind::Secret { Show::NamesOnly } else { Show::Everything };
        let complaints = |remarks: &[Remark], most: usize| -> Vec<Complaint> {
            let title = draft.title();
            remarks
                .iter()
                .take(most)
                .map(|remark| {
                    let at = draft.node.find(&remark.path, remark.matter);
                    self.complaint(draft.source, at, &title, remark.clone(), show)
                })
                .collect()
        };
        let room = MAX_ERRORS.saturating_sub(self.errors.len());
        let errors = complaints(&draft.found.errors, room);
        let warnings = complaints(&draft.found.warnings, MAX_ERRORS);
        self.errors.extend(errors);
        self.set.warnings.extend(warnings);
        if let Some(record) = Record::new(object) {
            let location = self.location(draft.source, draft.node.at);
            self.set.documents.push(Document { record, location });
        }
    }

    fn location(&self, source: usize, at: Position) -> Location {
        let file = self.sources.get(source).map(|source| source.name.clone()).unwrap_or_default();
        Location { file, at }
    }

    fn complaint(
        &self,
        source: usize,
        at: Position,
        object: &str,
        mut remark: Remark,
        show: Show,
    ) -> Complaint {
        // Text from a file is shown on terminals, which would obey control characters.
        let plain = |text: &str| text.replace(char::is_control, "\u{fffd}");
        remark.message = plain(&remark.message);
        let line = self.lines.get(source).and_then(|lines| lines.get(at.line.saturating_sub(1)));
        Complaint {
            location: self.location(source, at),
            object: plain(object),
            remark,
            excerpt: excerpt(line.unwrap_or(&""), at, show),
        }
    }
}

/// Reads an object whose fields were checked, and validates the object.
fn verdict(kind: Kind, object: &serde_json::Value) -> Result<Validation, serde_json::Error> {
    Ok(match kind {
        Kind::Certificate => validation::certificate(&Certificate::deserialize(object)?),
        Kind::CertificateRequest => {
            validation::certificate_request(&CertificateRequest::deserialize(object)?)
        }
        Kind::ClusterIssuer | Kind::Issuer => validation::issuer(&Issuer::deserialize(object)?),
        Kind::Secret => Secret::deserialize(object).map(|_| Validation::default())?,
        Kind::Gateway | Kind::Ingress | Kind::ListenerSet => {
            IngressLike::deserialize_as(kind, object).map(|_| Validation::default())?
        }
        Kind::Challenge | Kind::Event | Kind::Order => Validation::default(),
    })
}

/// Decides which parts of a text's lines may be shown before the objects are known: names only if there may be a Secret.
fn show_of_text(text: &str) -> Show {
    let secret = |line: &str| {
        line.contains("PRIVATE KEY") || line.contains("kind") && line.contains("Secret")
    };
    if text.lines().any(secret) { Show::NamesOnly } else { Show::Everything }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const LOCAL: Namespaces<'_> = Namespaces { given: None, default: "default" };

    fn source(text: &str) -> Source {
        Source { name: "m.yaml".into(), text: text.into() }
    }

    fn show(complaints: &[Complaint]) -> Vec<String> {
        let show = |c: &Complaint| match c.hint() {
            Some(hint) => format!("{c} | {hint}"),
            None => c.to_string(),
        };
        complaints.iter().map(show).collect()
    }

    /// Errors about a text, or else its warnings.
    fn check(text: &str) -> Vec<String> {
        match read(&[source(text)], LOCAL) {
            Ok(set) => show(&set.warnings),
            Err(errors) => show(&errors),
        }
    }

    /// Objects of a text that has no errors.
    fn objects(text: &str) -> Vec<Value> {
        let set = read(&[source(text)], LOCAL).unwrap();
        set.documents.into_iter().map(|document| document.record.object).collect()
    }

    const ISSUER: &str = "
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: ca}
spec:
  acme:
    server: https://ca.example/dir
    privateKeySecretRef: {name: account}
    solvers:
    - http01: {ingress: {}}
";
    const CERTIFICATE: &str = "
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec:
  secretName: web-tls
  dnsNames: [www.example.com]
  issuerRef: {name: ca}
";

    #[test]
    fn every_field_is_known_and_survives() {
        for text in [
            include_str!("../../../tests/fixtures/manifests/every-field-certificate.yaml"),
            include_str!("../../../tests/fixtures/manifests/every-field-issuer.yaml"),
        ] {
            let set = read(&[source(text)], LOCAL).unwrap();
            for document in &set.documents {
                let Record { key, object } = &document.record;
                let typed = if key.kind == Kind::Certificate {
                    Certificate::deserialize(object).map(|it| json!(it))
                } else if key.kind == Kind::Secret {
                    Secret::deserialize(object).map(|it| json!(it))
                } else {
                    Issuer::deserialize(object).map(|it| json!(it))
                };
                let mut typed = typed.unwrap();
                typed.as_object_mut().unwrap().remove("status");
                assert_eq!(typed, *object);
            }
            let expected = [
                "m.yaml:28:14: Certificate every-field: spec.dnsNames[0]: \"www.example.com\" is covered by *.example.com, and some CAs (Let's Encrypt) refuse an order for both: leave one out",
                "m.yaml:49:9: Certificate every-field: spec.isCA: an ACME server signs no CA certificates",
                "m.yaml:16:21: Issuer every-field: spec.acme.externalAccountBinding.keyAlgorithm: is deprecated and ignored: always HS256",
            ];
            let warnings = show(&set.warnings);
            assert!(warnings.iter().all(|w| expected.contains(&w.as_str())), "{warnings:?}");
        }
    }

    #[test]
    fn every_mistake_of_a_set_is_told_with_its_place() {
        let text = "\
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: web
spec:
  secretname: web-tls
  dnsNames: [ok.example, 'not ok']
  duration: 30m
  privateKey:
    algorithm: rsa
    size: 1024
  issuerRef:
    kind: Isuer
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: ca
spec:
  acme:
    server: letsencrypt
    solvers:
    - http01:
        ingress:
    - http01: {ingress: {}}
      dns01: {webhook: {groupName: g, solverName: s}}
---
a: [
";
        assert_eq!(
            check(text),
            [
                "m.yaml:6:3: Certificate web: spec.secretname: unknown field, did you mean secretName?",
                "m.yaml:7:26: Certificate web: spec.dnsNames[1]: \"not ok\" is not a valid DNS name: only letters, digits, '-' and '.' are allowed",
                "m.yaml:8:13: Certificate web: spec.duration: is 30m0s, must be at least 1h0m0s",
                "m.yaml:10:16: Certificate web: spec.privateKey.algorithm: \"rsa\" is not one of RSA, ECDSA, Ed25519 | did you mean RSA?",
                "m.yaml:11:11: Certificate web: spec.privateKey.size: is 1024, must be between 2048 and 8192 for RSA",
                "m.yaml:12:3: Certificate web: spec.issuerRef.name: is required",
                "m.yaml:13:11: Certificate web: spec.issuerRef.kind: \"Isuer\" must be one of Issuer or ClusterIssuer",
                "m.yaml:20:3: Issuer ca: spec.acme.privateKeySecretRef: is required",
                "m.yaml:21:13: Issuer ca: spec.acme.server: \"letsencrypt\" is not a URL | write the directory, such as https://acme-v02.api.letsencrypt.org/directory",
                "m.yaml:23:7: Issuer ca: spec.acme.solvers[0].http01: no HTTP01 solver type configured | write ingress: {} (with the braces: without them it counts as absent)",
                "m.yaml:25:7: Issuer ca: spec.acme.solvers[1]: may not specify more than one solver type in a single solver | make two entries of the list",
                "m.yaml:28:4: unclosed bracket '['",
            ]
        );
    }

    #[test]
    fn what_is_no_manifest_is_told() {
        for (text, expected) in [
            ("just text", "m.yaml:1:1: expected an object with apiVersion and kind, found text"),
            (
                "replicaCount: 1",
                "m.yaml:1:1: apiVersion: is required | every manifest begins with apiVersion and kind",
            ),
            (
                "apiVersion: v1\nmetadata: {name: a}",
                "m.yaml:1:1: a: kind: is required | every manifest begins with apiVersion and kind",
            ),
            (
                "apiVersion: cert-manager.io/v1\nkind: certificate\nmetadata: {name: a}",
                "m.yaml:2:7: certificate a: kind: unknown kind certificate, did you mean Certificate?",
            ),
            (
                "apiVersion: v1\nkind: Secrets",
                "m.yaml:2:7: Secrets: kind: unknown kind Secrets, did you mean Secret?",
            ),
            (
                "apiVersion: cert-manager.io/v2\nkind: Issuer",
                "m.yaml:1:13: Issuer: apiVersion: there is no version v2 | write cert-manager.io/v1",
            ),
            (
                "apiVersion: acme.cert-manager.io/v1\nkind: Issuer",
                "m.yaml:1:13: Issuer: apiVersion: there is no Issuer in acme.cert-manager.io/v1 | write cert-manager.io/v1",
            ),
            (
                "apiVersion: v1\nkind: Issuer",
                "m.yaml:1:13: Issuer: apiVersion: there is no Issuer in v1 | write cert-manager.io/v1",
            ),
            (
                "apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: {name: a}",
                "m.yaml:1:1: Issuer a: spec: is required",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {namespace: a}",
                "m.yaml:3:1: Secret: metadata.name: is required",
            ),
            ("apiVersion: v1\nkind: Secret", "m.yaml:1:1: Secret: metadata: is required"),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {generateName: a-}",
                "m.yaml:3:26: Secret: metadata.generateName: cannot be used when manifests are applied | write name: every run would make another object",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: A_b}",
                "m.yaml:3:18: Secret A_b: metadata.name: \"A_b\" is not a valid name: only lower-case letters, digits, '-' and '.' are allowed",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: [name]",
                "m.yaml:3:1: Secret: metadata: expected an object, found a list | leave the \"- \" out",
            ),
        ] {
            let found = check(text);
            assert_eq!(found.first().map(String::as_str), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_kinds_are_left_alone_and_named() {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: kuard}}\n---\napiVersion: acme.cert-manager.io/v1\nkind: Order\n---{CERTIFICATE}"
        );
        let set = read(&[source(&text)], LOCAL).unwrap();
        let skipped: Vec<String> = set
            .skipped
            .iter()
            .map(|skipped| format!("{} {} {}", skipped.location, skipped.kind, skipped.name))
            .collect();
        assert_eq!(skipped, ["m.yaml:1:1 Deployment kuard", "m.yaml:5:1 Order "]);
        assert_eq!(set.documents.len(), 1);
        assert_eq!(set.documents[0].location.to_string(), "m.yaml:8:1");
        assert_eq!(set.documents[0].record.key.to_string(), "Certificate default/web");
    }

    #[test]
    fn lists_are_taken_apart() {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},
            {"apiVersion": "v1", "kind": "SecretList", "items": [
                {"metadata": {"name": "b"}},
                {"metadata": {"name": "c"}, "unknown": 1},
            ]},
        ]});
        let set = read(&[source(&list.to_string())], LOCAL).unwrap();
        let keys: Vec<String> = set.documents.iter().map(|d| d.record.key.to_string()).collect();
        assert_eq!(keys, ["Secret default/a", "Secret default/b", "Secret default/c"]);
        assert_eq!(
            show(&set.warnings),
            ["m.yaml:1:168: Secret c: unknown: unknown field, kept but not read"]
        );
    }

    #[test]
    fn an_exported_object_loses_what_its_cluster_wrote() {
        let text = "
apiVersion: v1
kind: Secret
metadata:
  name: a
  uid: 25b7ae77
  resourceVersion: '9092'
  creationTimestamp: null
  ownerReferences: [{kind: Ingress}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', mine: kept}
status: {}
";
        assert_eq!(
            objects(text),
            [json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "a", "namespace": "default", "annotations": {"mine": "kept"}}})]
        );
        assert_eq!(
            check(text),
            [
                "m.yaml:4:1: Secret a: metadata: left out what a cluster had written: metadata.ownerReferences, metadata.resourceVersion, metadata.uid"
            ]
        );
    }

    #[test]
    fn namespaces_are_settled_as_kubectl_settles_them() {
        let with = |written: &str, given: Option<&str>| {
            let text = CERTIFICATE.replace("{name: web}", written);
            let namespaces = Namespaces { given, default: "default" };
            match read(&[source(&text)], namespaces) {
                Ok(set) => set.documents[0].record.key.name.namespace.clone(),
                Err(errors) => show(&errors).join("\n"),
            }
        };
        assert_eq!(with("{name: web}", None), "default");
        assert_eq!(with("{name: web}", Some("shop")), "shop");
        assert_eq!(with("{name: web, namespace: a}", None), "a");
        assert_eq!(with("{name: web, namespace: a}", Some("a")), "a");
        assert_eq!(
            with("{name: web, namespace: a}", Some("b")),
            "m.yaml:4:34: Certificate web: metadata.namespace: the namespace from the provided object \"a\" does not match the namespace \"b\". You must pass '--namespace=a' to perform this operation."
        );
        assert!(with("{name: web, namespace: A}", None).contains("\"A\" is not a valid namespace"));
    }

    #[test]
    fn a_cluster_issuer_has_no_namespace() {
        let text = ISSUER
            .replace("kind: Issuer", "kind: ClusterIssuer")
            .replace("{name: ca}", "{name: ca, namespace: a}");
        let set = read(&[source(&text)], Namespaces { given: Some("b"), default: "c" }).unwrap();
        assert_eq!(set.documents[0].record.key.to_string(), "ClusterIssuer ca");
        assert_eq!(
            show(&set.warnings),
            [
                "m.yaml:4:1: ClusterIssuer ca: metadata: a ClusterIssuer has no namespace, a is ignored"
            ]
        );
    }

    #[test]
    fn nothing_stands_in_a_set_twice() {
        let other = CERTIFICATE.replace("{name: web}", "{name: shop}");
        let elsewhere = CERTIFICATE.replace("{name: web}", "{name: web, namespace: b}");
        let sources = [
            Source { name: "a.yaml".into(), text: format!("{CERTIFICATE}---{elsewhere}") },
            Source { name: "b.yaml".into(), text: format!("{other}---{CERTIFICATE}") },
        ];
        let errors = read(&sources, LOCAL).unwrap_err();
        assert_eq!(
            show(&errors),
            [
                "b.yaml:6:15: Certificate shop: spec.secretName: Certificate web at a.yaml:6:15 writes the same Secret | give one of the two another secretName",
                "b.yaml:12:18: Certificate web: metadata.name: the same object stands at a.yaml:4:18",
            ]
        );
    }

    #[test]
    fn complaints_show_the_line_but_never_a_secret() {
        let text = CERTIFICATE.replace("web-tls", "Web");
        assert_eq!(
            read(&[source(&text)], LOCAL).unwrap_err()[0].excerpt,
            "   6 |   secretName: Web\n     |               ^"
        );
        for text in [
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  key: hunter2!\n",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  key: [hunter2]\n",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  key: a: hunter2\n",
            "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"data\": {\"a\": \"hunter2!\"}}",
            "apiVersion: v2\nkind: Secret\nstringData: {a: hunter2}\n",
        ] {
            for complaint in read(&[source(text)], LOCAL).unwrap_err() {
                let said = format!("{complaint} {:?} {}", complaint.hint(), complaint.excerpt);
                assert!(!said.contains("hunter2"), "{said}");
            }
        }
    }

    #[test]
    fn complaints_carry_no_orders_for_terminals() {
        let text = CERTIFICATE.replace("web-tls", "\"\\e[31mred\"");
        let complaint = &read(&[source(&text)], LOCAL).unwrap_err()[0];
        assert!(
            complaint.to_string().contains("\"\u{fffd}[31mred\" is not a valid name"),
            "{complaint}"
        );
    }

    #[test]
    fn a_secret_says_how_to_write_its_data() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {key: plain text}";
        assert_eq!(
            check(text),
            [
                "m.yaml:4:13: Secret a: data.key: is not base64 | put plain text under stringData, or encode it with base64 -w0"
            ]
        );
    }

    proptest! {
        /// Takes a line out, puts another in, or cuts the text.
        #[test]
        fn damaged_manifests_never_panic(line in 0_usize..90, junk in "[ a-z\\[\\]{}:'\"&*!|>-]{0,12}", cut in any::<bool>()) {
            let text = include_str!("../../../tests/fixtures/manifests/every-field-issuer.yaml");
            let mut lines: Vec<&str> = text.lines().collect();
            lines[line] = &junk;
            if cut { lines.truncate(line + 1); }
            if let Err(errors) = read(&[source(&lines.join("\n"))], LOCAL) {
                prop_assert!(!errors.is_empty());
            }
        }

        #[test]
        fn unknown_fields_survive(key in "x[a-z]{6,12}", text in "[ -~]{0,20}", number in any::<i64>()) {
            let mut object: Value = objects(CERTIFICATE).remove(0);
            let unknown = json!({"text": text, "list": [number, null, true], "empty": {}});
            object["spec"][&key] = unknown.clone();
            object["metadata"][&key] = unknown.clone();
            object[&key] = unknown;
            prop_assert_eq!(objects(&object.to_string()), [object]);
        }
    }
}
