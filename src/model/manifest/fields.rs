//! Fields of the kinds that manifests may hold, by the API reference of cert-manager 1.21.
//!
//! This grammar is written by hand. Deriving the grammar from the model's structs was weighed: the structs take a
//! cluster's content as it is (words, lengths and keys as text, all of it optional), and know neither required fields,
//! nor old names, nor what to do instead; attributes for each would be longer than these lines. Facts that are stated
//! twice are held by tests: against the structs by manifests that hold every field, against cert-manager's own
//! definitions by `tests/fixtures/definitions/fields.txt`, which `tests/it/local/definitions.rs` makes of them.

use super::schema::Shape::{
    Any, Base64, Choice, Flag, Gone, Length, List, Map, Object, Renamed, Text, Whole,
};
use super::schema::{Field, Shape, may, must};
use crate::model::key::Kind;

/// Returns the fields of an object of the given kind; `None` for kinds that are not read from manifests.
pub(crate) fn of(kind: Kind) -> Option<Shape> {
    match kind {
        Kind::Certificate => Some(CERTIFICATE),
        Kind::CertificateRequest => Some(CERTIFICATE_REQUEST),
        Kind::ClusterIssuer | Kind::Issuer => Some(ISSUER),
        Kind::Gateway | Kind::Ingress | Kind::ListenerSet => Some(ASKING),
        Kind::Secret => Some(SECRET),
        Kind::Challenge | Kind::Event | Kind::Order => None,
    }
}

const CERTIFICATE: Shape = Object(&[
    must("apiVersion", Text),
    must("kind", Text),
    must("metadata", METADATA),
    must("spec", Object(CERTIFICATE_SPEC)),
]);

const CERTIFICATE_REQUEST: Shape = Object(&[
    must("apiVersion", Text),
    must("kind", Text),
    must("metadata", METADATA),
    must("spec", Object(CERTIFICATE_REQUEST_SPEC)),
]);

const ISSUER: Shape = Object(&[
    must("apiVersion", Text),
    must("kind", Text),
    must("metadata", METADATA),
    must("spec", ISSUER_SPEC),
]);

/// Fields of an Ingress, a Gateway or a ListenerSet; parts that are not about certificates are not checked.
const ASKING: Shape = Object(&[
    must("apiVersion", Text),
    must("kind", Text),
    must("metadata", METADATA),
    must("spec", Any),
]);

const SECRET: Shape = Object(&[
    must("apiVersion", Text),
    must("kind", Text),
    must("metadata", METADATA),
    may("type", Text),
    may("data", Map(&Base64)),
    may("stringData", Map(&Text)),
    may("immutable", Flag),
]);

const METADATA: Shape = Object(&[
    may("name", Text),
    may("generateName", Text),
    may("namespace", Text),
    may("labels", LABELS),
    may("annotations", LABELS),
]);

const LABELS: Shape = Map(&Text);
const NAMES: Shape = List(&Text);
const SECRET_KEY: Shape = Object(&[must("name", Text), may("key", Text)]);

const ISSUER_REF: Shape = Object(&[must("name", Text), may("kind", Text), may("group", Text)]);

/// Spec of a CertificateRequest. cert-manager's webhook writes the fields of the requester, and refuses another requester.
const CERTIFICATE_REQUEST_SPEC: &[Field] = &[
    must("request", Base64),
    must("issuerRef", ISSUER_REF),
    may("duration", Length),
    may("isCA", Flag),
    may("usages", List(&Choice(USAGES))),
    may("username", Text),
    may("uid", Text),
    may("groups", NAMES),
    may("extra", Map(&NAMES)),
    may("csr", Renamed("request")),
];

const CERTIFICATE_SPEC: &[Field] = &[
    may("subject", SUBJECT),
    may("literalSubject", Text),
    may("commonName", Text),
    may("duration", Length),
    may("renewBefore", Length),
    may("renewBeforePercentage", Whole(0)),
    may("renewal", RENEWAL),
    may("dnsNames", NAMES),
    may("ipAddresses", NAMES),
    may("uris", NAMES),
    may("otherNames", List(&Object(&[may("oid", Text), may("utf8Value", Text)]))),
    may("emailAddresses", NAMES),
    must("secretName", Text),
    may("secretTemplate", Object(&[may("annotations", LABELS), may("labels", LABELS)])),
    may("keystores", KEYSTORES),
    must("issuerRef", ISSUER_REF),
    may("isCA", Flag),
    may("usages", List(&Choice(USAGES))),
    may("privateKey", PRIVATE_KEY),
    may("signatureAlgorithm", Choice(SIGNATURES)),
    may("encodeUsagesInRequest", Flag),
    may("revisionHistoryLimit", Whole(0)),
    may("additionalOutputFormats", List(&Object(&[must("type", Choice(&["DER", "CombinedPEM"]))]))),
    may("nameConstraints", NAME_CONSTRAINTS),
    may("organization", Renamed("subject.organizations")),
    may("keyAlgorithm", Renamed("privateKey.algorithm")),
    may("keySize", Renamed("privateKey.size")),
    may("keyEncoding", Renamed("privateKey.encoding")),
    may("uriSANs", Renamed("uris")),
    may("emailSANs", Renamed("emailAddresses")),
    may("acme", Gone("name the domains in the issuer: spec.acme.solvers[].selector.dnsNames")),
];

const SUBJECT: Shape = Object(&[
    may("organizations", NAMES),
    may("countries", NAMES),
    may("organizationalUnits", NAMES),
    may("localities", NAMES),
    may("provinces", NAMES),
    may("streetAddresses", NAMES),
    may("postalCodes", NAMES),
    may("serialNumber", Text),
]);

const RENEWAL: Shape = Object(&[
    may("policy", Choice(&["RenewBefore", "Disabled"])),
    may(
        "windows",
        List(&Object(&[must("cron", Text), must("windowDuration", Length), may("timezone", Text)])),
    ),
]);

const KEYSTORES: Shape = Object(&[
    may(
        "jks",
        Object(&[
            must("create", Flag),
            may("alias", Text),
            may("passwordSecretRef", SECRET_KEY),
            may("password", Text),
        ]),
    ),
    may(
        "pkcs12",
        Object(&[
            must("create", Flag),
            may("profile", Choice(&["LegacyRC2", "LegacyDES", "Modern2023", "Modern2026"])),
            may("passwordSecretRef", SECRET_KEY),
            may("password", Text),
        ]),
    ),
]);

const PRIVATE_KEY: Shape = Object(&[
    may("rotationPolicy", Choice(&["Never", "Always"])),
    may("encoding", Choice(&["PKCS1", "PKCS8"])),
    may("algorithm", Choice(&["RSA", "ECDSA", "Ed25519"])),
    may("size", Whole(0)),
]);

const NAME_CONSTRAINTS: Shape = Object(&[
    may("critical", Flag),
    may("permitted", CONSTRAINED_NAMES),
    may("excluded", CONSTRAINED_NAMES),
]);

const CONSTRAINED_NAMES: Shape = Object(&[
    may("dnsDomains", NAMES),
    may("ipRanges", NAMES),
    may("emailAddresses", NAMES),
    may("uriDomains", NAMES),
]);

const SIGNATURES: &[&str] = &[
    "SHA256WithRSA",
    "SHA384WithRSA",
    "SHA512WithRSA",
    "ECDSAWithSHA256",
    "ECDSAWithSHA384",
    "ECDSAWithSHA512",
    "PureEd25519",
];

/// Words for the usages of a key.
pub(crate) const USAGES: &[&str] = &[
    "signing",
    "digital signature",
    "content commitment",
    "key encipherment",
    "key agreement",
    "data encipherment",
    "cert sign",
    "crl sign",
    "encipher only",
    "decipher only",
    "any",
    "server auth",
    "client auth",
    "code signing",
    "email protection",
    "s/mime",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "timestamping",
    "ocsp signing",
    "microsoft sgc",
    "netscape sgc",
];

const ISSUER_SPEC: Shape = Object(&[
    may("acme", ACME),
    may("ca", Any),
    may("vault", Any),
    may("selfSigned", Any),
    may("venafi", Any),
]);

const ACME: Shape = Object(&[
    may("email", Text),
    must("server", Text),
    may("preferredChain", Text),
    may("caBundle", Base64),
    may("skipTLSVerify", Flag),
    may(
        "externalAccountBinding",
        Object(&[
            must("keyID", Text),
            must("keySecretRef", SECRET_KEY),
            may("keyAlgorithm", Choice(&["HS256", "HS384", "HS512"])),
        ]),
    ),
    must("privateKeySecretRef", SECRET_KEY),
    may("solvers", List(&SOLVER)),
    may("disableAccountKeyGeneration", Flag),
    may("enableDurationFeature", Flag),
    may("profile", Text),
    may("renewalInformationSource", Choice(&["ARI", "None"])),
    may("http01", Gone("write an entry http01 under solvers")),
    may("dns01", Gone("write an entry dns01 under solvers for each provider")),
]);

const SOLVER: Shape = Object(&[
    may(
        "selector",
        Object(&[may("matchLabels", LABELS), may("dnsNames", NAMES), may("dnsZones", NAMES)]),
    ),
    may("http01", HTTP01),
    may("dns01", DNS01),
    may("waitInsteadOfSelfCheck", Length),
]);

const SERVICE_TYPE: Shape = Choice(&["ClusterIP", "NodePort"]);
const TEMPLATE_METADATA: Shape = Object(&[may("annotations", LABELS), may("labels", LABELS)]);

const HTTP01: Shape = Object(&[
    may(
        "ingress",
        Object(&[
            may("serviceType", SERVICE_TYPE),
            may("ingressClassName", Text),
            may("class", Text),
            may("name", Text),
            may("podTemplate", POD_TEMPLATE),
            may("ingressTemplate", Object(&[may("metadata", TEMPLATE_METADATA)])),
        ]),
    ),
    may(
        "gatewayHTTPRoute",
        Object(&[
            may("serviceType", SERVICE_TYPE),
            may("labels", LABELS),
            may("parentRefs", List(&PARENT_REFERENCE)),
            may("podTemplate", POD_TEMPLATE),
        ]),
    ),
]);

const PARENT_REFERENCE: Shape = Object(&[
    may("group", Text),
    may("kind", Text),
    may("namespace", Text),
    must("name", Text),
    may("sectionName", Text),
    may("port", Whole(1)),
]);

const POD_TEMPLATE: Shape = Object(&[
    may("metadata", TEMPLATE_METADATA),
    may(
        "spec",
        Object(&[
            may("nodeSelector", LABELS),
            may("affinity", Any),
            may("tolerations", List(&Any)),
            may("priorityClassName", Text),
            may("serviceAccountName", Text),
            may("imagePullSecrets", List(&Any)),
            may("securityContext", Any),
            may("resources", Any),
        ]),
    ),
]);

const DNS01: Shape = Object(&[
    may("cnameStrategy", Choice(&["None", "Follow"])),
    may("nameservers", NAMES),
    may(
        "akamai",
        Object(&[
            must("serviceConsumerDomain", Text),
            must("clientTokenSecretRef", SECRET_KEY),
            must("clientSecretSecretRef", SECRET_KEY),
            must("accessTokenSecretRef", SECRET_KEY),
        ]),
    ),
    may(
        "cloudDNS",
        Object(&[
            may("serviceAccountSecretRef", SECRET_KEY),
            must("project", Text),
            may("hostedZoneName", Text),
        ]),
    ),
    may(
        "cloudflare",
        Object(&[
            may("email", Text),
            may("apiKeySecretRef", SECRET_KEY),
            may("apiTokenSecretRef", SECRET_KEY),
        ]),
    ),
    may(
        "route53",
        Object(&[
            may("auth", Any),
            may("accessKeyID", Text),
            may("accessKeyIDSecretRef", SECRET_KEY),
            may("secretAccessKeySecretRef", SECRET_KEY),
            may("role", Text),
            may("hostedZoneID", Text),
            may("region", Text),
        ]),
    ),
    may("azureDNS", AZURE_DNS),
    may("digitalocean", Object(&[must("tokenSecretRef", SECRET_KEY)])),
    may("acmeDNS", Object(&[must("host", Text), must("accountSecretRef", SECRET_KEY)])),
    may(
        "rfc2136",
        Object(&[
            must("nameserver", Text),
            may("tsigSecretSecretRef", SECRET_KEY),
            may("tsigKeyName", Text),
            may("tsigAlgorithm", Text),
            may("protocol", Choice(&["UDP", "TCP"])),
        ]),
    ),
    may(
        "webhook",
        Object(&[must("groupName", Text), must("solverName", Text), may("config", Any)]),
    ),
    may("clouddns", Renamed("cloudDNS")),
    may("azuredns", Renamed("azureDNS")),
    may("acmedns", Renamed("acmeDNS")),
]);

const AZURE_DNS: Shape = Object(&[
    may("clientID", Text),
    may("clientSecretSecretRef", SECRET_KEY),
    must("subscriptionID", Text),
    may("tenantID", Text),
    must("resourceGroupName", Text),
    may("hostedZoneName", Text),
    may(
        "environment",
        Choice(&[
            "AzurePublicCloud",
            "AzureChinaCloud",
            "AzureGermanCloud",
            "AzureUSGovernmentCloud",
        ]),
    ),
    may("managedIdentity", Any),
    may("zoneType", Choice(&["AzurePublicZone", "AzurePrivateZone"])),
]);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::tree::Node;
    use super::super::yaml;
    use super::*;

    /// Fields of the shape that stand in none of the nodes.
    fn absent(shape: Shape, nodes: &[&Node], path: &str, found: &mut Vec<String>) {
        match shape {
            List(item) => {
                let items: Vec<&Node> = nodes.iter().flat_map(|node| node.items()).collect();
                absent(*item, &items, path, found);
            }
            Object(fields) => {
                for field in fields {
                    let path = format!("{path}.{}", field.name);
                    let below: Vec<&Node> =
                        nodes.iter().filter_map(|node| node.get(field.name)).collect();
                    let old = matches!(field.shape, Renamed(_) | Gone(_));
                    if old == below.is_empty() {
                        absent(field.shape, &below, &path, found);
                    } else {
                        found.push(path);
                    }
                }
            }
            Any | Base64 | Choice(_) | Flag | Gone(_) | Length | Map(_) | Renamed(_) | Text
            | Whole(_) => {}
        }
    }

    /// A line for each field of a shape, as the list has it: its path, what it holds, and the words that it takes.
    fn lines(fields: &[Field], path: &str, found: &mut Vec<String>) {
        for field in fields {
            let path = format!("{path}.{}", field.name);
            let holds = match field.shape {
                Any => "any",
                Base64 => "bytes",
                Choice(_) | Length | Text => "string",
                Flag => "boolean",
                Gone(_) | Renamed(_) => continue,
                List(_) => "array",
                Map(_) | Object(_) => "object",
                Whole(_) => "integer",
            };
            let item = if let List(item) = field.shape { item } else { &field.shape };
            let mut words = if let Choice(words) = item { words.to_vec() } else { Vec::new() };
            words.sort_unstable();
            let words: Vec<String> = words.iter().map(|word| format!(" '{word}'")).collect();
            let required = if field.required { " required" } else { "" };
            found.push(format!("{path} {holds}{required}{}", words.concat()));
            if let Object(fields) = item {
                lines(fields, &path, found);
            }
        }
    }

    #[test]
    fn the_fields_are_those_of_cert_managers_definitions() {
        let theirs = include_str!("../../../tests/fixtures/definitions/fields.txt");
        let mut ours = Vec::new();
        lines(CERTIFICATE_SPEC, "", &mut ours);
        let Object(issuer) = ISSUER_SPEC else { panic!("{ISSUER_SPEC:?}") };
        lines(issuer, "", &mut ours);
        // The definition takes any text, and cert-manager's webhook only these.
        let only = " 'ClusterIP' 'NodePort'";
        let ours: Vec<String> = ours.iter().map(|line| line.replace(only, "")).collect();
        let ours: BTreeSet<&str> = ours.iter().map(String::as_str).collect();
        let theirs: BTreeSet<&str> = theirs.lines().collect();
        assert_eq!(theirs.difference(&ours).collect::<Vec<_>>(), [] as [&&str; 0]);
        // Read here, and no fields of cert-manager 1.21: its definitions leave them out of what is applied.
        let own = [
            ".acme.renewalInformationSource string 'ARI' 'None'",
            ".acme.solvers.dns01.nameservers array",
        ];
        assert_eq!(ours.difference(&theirs).copied().collect::<Vec<_>>(), own);
    }

    #[test]
    fn the_fixtures_hold_every_field() {
        let certificates =
            include_str!("../../../tests/fixtures/manifests/every-field-certificate.yaml");
        let issuers = include_str!("../../../tests/fixtures/manifests/every-field-issuer.yaml");
        for (kind, text) in
            [(Kind::Certificate, certificates), (Kind::Issuer, issuers), (Kind::Secret, issuers)]
        {
            let nodes: Vec<Node> = yaml::documents(text).into_iter().map(Result::unwrap).collect();
            let of_kind: Vec<&Node> =
                nodes.iter().filter(|node| node.text_of("kind").ends_with(kind.as_str())).collect();
            let mut found = Vec::new();
            absent(of(kind).unwrap(), &of_kind, "", &mut found);
            // Refused, left to others, or the same shape as one that is there.
            let left_out = [".generateName", ".ca", ".vault", ".selfSigned", ".venafi"];
            found.retain(|path| !left_out.iter().any(|end| path.ends_with(end)));
            let same = [".excluded.", ".gatewayHTTPRoute.podTemplate."];
            found.retain(|path| !same.iter().any(|part| path.contains(part)));
            found.retain(|path| kind == Kind::Certificate || !path.starts_with(".metadata."));
            assert_eq!(found, [] as [&str; 0], "{kind}");
        }
    }
}
