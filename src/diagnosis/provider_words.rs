//! What DNS providers say, in the words of cert-manager, of its libraries and of this program's own solvers.

/// Why a DNS provider does not take a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderFault {
    /// Credentials that are wrong, or may not do it.
    Denied,
    /// Their zones have none for the name.
    NoZone,
    /// Too many requests, or an outage.
    Busy,
    /// There is no way to the API.
    Unreachable,
    /// The API does not take requests from this address.
    AddressRefused,
    /// acme-dns has no account for the domain.
    NotRegistered,
    /// A name server refuses a dynamic update, with a code of RFC 2136 or RFC 8945.
    Update,
}

/// Why a DNS provider does not take a record, by what cert-manager, its libraries and this program's own solvers say.
pub fn provider_fault(said: &str) -> Option<ProviderFault> {
    let said = said.to_lowercase();
    let says = |marks: &&[&str]| marks.iter().any(|mark| said.contains(mark));
    PROVIDER.iter().find(|(marks, _)| says(marks)).map(|(_, fault)| *fault)
}

/// What is told first decides.
const PROVIDER: &[(&[&str], ProviderFault)] = &[
    (&["account credentials not found for domain"], ProviderFault::NotRegistered),
    (
        &["server replied: ", "notauth", "notzone", "badkey", "badsig", "badtime"],
        ProviderFault::Update,
    ),
    (
        &[
            "http 429",
            "error 429",
            "status 429",
            "status code: 429",
            "too many requests",
            "rate exceeded",
            "rate limit",
            "throttling",
            "quota exceeded",
            "http 500",
            "http 502",
            "http 503",
            "http 504",
            "error 503",
            "status code: 503",
            "service unavailable",
        ],
        ProviderFault::Busy,
    ),
    (
        &[
            "ip address is not allowed",
            "ip not allowed",
            "ip is not in the",
            "ip is not whitelisted",
            "invalid request ip",
            "from this ip",
            "cannot use the access token from location",
        ],
        ProviderFault::AddressRefused,
    ),
    (
        &[
            "found no zones",
            "not found in route 53",
            "no matching googlecloud domain",
            "no zone",
            "zone not found",
            "domain not found",
        ],
        ProviderFault::NoZone,
    ),
    (
        &[
            "accessdenied",
            "not authorized to perform",
            "assumerole",
            "invalidclienttokenid",
            "signaturedoesnotmatch",
            "unrecognizedclient",
            "redacted aws sdk error",
            "redacted azure",
            "redacted digitalocean",
            "aadsts",
            "clientid was omitted",
            "authorizationfailed",
            "error 403",
            "http 403",
            "http 401",
            "status code: 401",
            "status code: 403",
            "(6003)",
            "(9103)",
            "(9109)",
            "(10000)",
            "6003:",
            "9103:",
            "9109:",
            "10000:",
            "authentication error",
            "invalid access token",
            "unable to authenticate",
            "invalid request headers",
            "are both present",
            "permission_denied",
            "forbidden",
            "unauthorized",
        ],
        ProviderFault::Denied,
    ),
    (
        &[
            "dial tcp",
            "i/o timeout",
            "connection refused",
            "connection reset",
            "no connection within",
            "no answer within",
            "no such host",
            "tls handshake",
            "x509: ",
            "invalid peer certificate",
        ],
        ProviderFault::Unreachable,
    ),
];
