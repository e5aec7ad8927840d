//! Where the recordings with something wrong from the start differ on purpose, and where a Certificate goes on that failed there.

use crate::support::difference::{Difference, Instead};

/// What goes on here.
pub(super) const INSTEAD: [Instead; 6] = [
    Instead {
        fails: ("07-issuer-errors", "web"),
        like: ("01-http01-single", "web"),
        words: &[
            ("trace-01", "trace-07"),
            ("www.t01.example.test", "www.t07.example.test"),
            ("web-1-1995685109", "web-1-1029704283"),
        ],
        facts: &[("acme", "forgotten")],
        why: "only refusals are terminal, and an account that the CA has forgotten is registered anew",
    },
    waited_for("neworder-429", &[("neworder-503", "neworder-429"), ("-3284400180", "-4010978357")]),
    waited_for("accept-429", &[("neworder-503", "accept-429"), ("-3284400180", "-4200132847")]),
    waited_for("finalize-429", &[("neworder-503", "finalize-429"), ("-3284400180", "-1736801281")]),
    read_again("authz-404", &[("neworder-503", "authz-404"), ("-3284400180", "-1767858066")]),
    read_again("download-404", &[("neworder-503", "download-404"), ("-3284400180", "-1545496524")]),
];

const fn read_again(
    fails: &'static str,
    words: &'static [(&'static str, &'static str)],
) -> Instead {
    Instead { why: LAGS, ..waited_for(fails, words) }
}

const fn waited_for(
    fails: &'static str,
    words: &'static [(&'static str, &'static str)],
) -> Instead {
    Instead {
        fails: ("22-ca-errors", fails),
        like: ("22-ca-errors", "neworder-503"),
        words,
        facts: &[],
        why: "429 waits for Retry-After; only refusals are terminal",
    }
}

/// Recording 07.
pub(super) const ISSUERS: [Difference; 16] = [
    Difference {
        about: "Issuer bad-email, managed by",
        theirs: "cert-manager-issuers Update status, kubectl-client-side-apply Update",
        ours: "cert-manager-issuers Update, cert-manager-issuers Update status, kubectl-client-side-apply Update",
        why: "the CA's problem is kept in an annotation, beside the message that quotes it",
    },
    both("Issuer bad-email, event Warning ErrRegisterACMEAccount: *", "cert-manager-issuers"),
    both("Issuer bad-email, event Warning ErrRegisterACMEAccount: *", "the same, kubectl-acme"),
    both("events of Issuer bad-email", "ErrRegisterACMEAccount"),
    Difference {
        about: "Issuer ec-key, Ready",
        theirs: "- > False ErrVerifyACMEAccount \"ACME private key in \"ec-key-account\" is not of type RSA\"",
        ours: "- > True ACMEAccountRegistered \"The ACME account was registered with the ACME server\"",
        why: ANY_KEY,
    },
    Difference {
        about: "Issuer ec-key, at last /status/acme/*",
        theirs: "-",
        ours: "*",
        why: ANY_KEY,
    },
    Difference {
        about: "Issuer ec-key, at last /status/conditions/Ready/message",
        theirs: "ACME private key in \"ec-key-account\" is not of type RSA",
        ours: "The ACME account was registered with the ACME server",
        why: ANY_KEY,
    },
    Difference {
        about: "Issuer ec-key, at last /status/conditions/Ready/reason",
        theirs: "ErrVerifyACMEAccount",
        ours: "ACMEAccountRegistered",
        why: ANY_KEY,
    },
    Difference {
        about: "Issuer ec-key, at last /status/conditions/Ready/status",
        theirs: "False",
        ours: "True",
        why: ANY_KEY,
    },
    Difference {
        about: "Issuer forgotten, Ready",
        theirs: "- > True ACMEAccountRegistered \"The ACME account was registered with the ACME server\"",
        ours: "- > True ACMEAccountRegistered \"The ACME account was registered with the ACME server\" > - > True ACMEAccountRegistered \"The ACME account was registered with the ACME server\"",
        why: "an account that the CA has forgotten is registered anew, and nothing asks for an order before",
    },
    Difference {
        about: "Issuer upper-email, at last /status/acme/uri",
        theirs: "-",
        ours: "<url>",
        why: "an Issuer is set up once, and so its account's address is kept",
    },
    in_our_words(
        "error decoding private key PEM block: no PEM data was found in given input",
        "cannot read private key: there is no PEM block of a private key",
    ),
    in_our_words(
        "Get \"https://localhost:14999/dir\": dial tcp 127.0.0.1:14999: connect: connection refused",
        "cannot read https://localhost:1/dir: Connection refused",
    ),
    in_our_words(
        "Get \"https://localhost:14500/dir\": tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of \"x509: invalid signature: parent certificate cannot sign this kind of certificate\" while trying to verify candidate authority certificate \"localhost\")",
        "cannot read https://localhost:14500/dir: the server's certificate is not trusted: it is signed by nobody who is trusted here",
    ),
    remembered("Issuer unreachable, managed by"),
    remembered("Issuer untrusted, managed by"),
];

/// Recording 11.
pub(super) const DENIED: [Difference; 4] = [
    in_our_words(
        "error decoding certificate request PEM block: no PEM data was found in given input",
        "there is no PEM block of a certificate request",
    ),
    in_our_words(
        "asn1: structure error: tags don't match (16 vs {class:1 tag:8 length:101 isCompound:true}) {optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false} certificateRequest @2",
        "it is damaged",
    ),
    Difference {
        about: "CertificateRequest *, managed by",
        theirs: "cert-manager-certificaterequests-issuer-venafi Update status, *",
        ours: "cert-manager-certificaterequests-issuer-acme Update status, *",
        why: "whichever of their five issuer controllers is first writes what all of them would",
    },
    Difference {
        about: "CertificateRequest noissuer, event Normal IssuerNotFound: *",
        theirs: "cert-manager-certificaterequests-issuer-acme, cert-manager-certificaterequests-issuer-ca, *",
        ours: "cert-manager-certificaterequests-issuer-acme",
        why: "one event, not one from each issuer type",
    },
];

/// Recording 22.
const LAGS: &str = "a replica of the CA may lag behind what another one has named: it is read again for half a minute";
pub(super) const ERRORS: [Difference; 46] = [
    Difference {
        about: "creation of authz",
        theirs: "Certificate authz-404, CertificateRequest authz-404-1, Order authz-404-1-1767858066, Certificate authz-500, *",
        ours: "Certificate authz-404, CertificateRequest authz-404-1, Order authz-404-1-1767858066, Challenge authz-404-1-1767858066-<authz-404.t22.example.test>, Certificate authz-500, *",
        why: LAGS,
    },
    Difference {
        about: "Order authz-404-1-1767858066, reason",
        theirs: "-",
        ours: "- > Failed to fetch authorization: * is not there yet: the CA has named it a moment ago, and answers HTTP 404: injected malformed > -",
        why: LAGS,
    },
    Difference {
        about: "Order download-404-1-1545496524, reason",
        theirs: "-",
        ours: "- > Failed to retrieve signed certificate: * is not there yet: the CA has named it a moment ago, and answers HTTP 404: injected malformed > -",
        why: LAGS,
    },
    both("Issuer limited, event Warning ErrRegisterACMEAccount: *", "cert-manager-issuers"),
    both("Issuer limited, event Warning ErrRegisterACMEAccount: *", "the same, kubectl-acme"),
    both("events of Issuer limited", "ErrRegisterACMEAccount"),
    remembered("Issuer acme, managed by"),
    remembered("Issuer limited, managed by"),
    until(
        "Issuer acme, Ready",
        "- > False ErrRegisterACMEAccount \"Failed to register ACME account: 503 : upstream is away\" > True *",
        "- > False ErrRegisterACMEAccount \"Failed to register ACME account: 503 : upstream is away; next try at <time>\" > True *",
    ),
    until(
        "Order neworder-503-1-3284400180, reason",
        "-",
        "- > Failed to create Order: 503 : upstream is away; next try at <time> > -",
    ),
    until(
        "Order neworder-429-1-4010978357, reason",
        "-",
        "- > Failed to create Order: 429 urn:ietf:params:acme:error:rateLimited: <detail> > -",
    ),
    until(
        "Order finalize-429-1-1736801281, reason",
        "-",
        "- > Failed to finalize Order: 429 urn:ietf:params:acme:error:rateLimited: <detail> > -",
    ),
    until(
        "Order authz-500-1-2043032427, reason",
        "-",
        "- > Failed to fetch authorization: 500 urn:ietf:params:acme:error:serverInternal: <detail> > -",
    ),
    until(
        "Order finalize-500-1-2887148795, reason",
        "-",
        "- > Failed to finalize Order: 500 urn:ietf:params:acme:error:serverInternal: <detail> > -",
    ),
    until(
        "Order download-500-1-1508205237, reason",
        "-",
        "- > Failed to retrieve signed certificate: 500 urn:ietf:params:acme:error:serverInternal: <detail> > -",
    ),
    until(
        "Challenge accept-429-1-4200132847-<accept-429.t22.example.test>, reason",
        "- > Successfully authorized domain > gone",
        "- > Error accepting challenge: 429 urn:ietf:params:acme:error:rateLimited: <detail> > - > Successfully authorized domain > gone",
    ),
    until(
        "creation of neworder",
        "Certificate neworder-429, CertificateRequest neworder-429-1, Order neworder-429-1-4010978357, Certificate neworder-503, *",
        "Certificate neworder-429, CertificateRequest neworder-429-1, Order neworder-429-1-4010978357, Challenge neworder-429-1-4010978357-<neworder-429.t22.example.test>, Certificate neworder-503, *",
    ),
    Difference {
        about: "Challenge accept-500-1-623400645-<accept-500.t22.example.test>, reason",
        theirs: "- > Error accepting challenge: 500 urn:ietf:params:acme:error:serverInternal: <detail> > Successfully authorized domain > gone",
        ours: "- > Error accepting challenge: 500 urn:ietf:params:acme:error:serverInternal: <detail> > - > Successfully authorized domain > gone",
        why: "a 5xx is no refusal: it is tried again within seconds, and what is past is not said any more while the CA looks",
    },
    Difference {
        about: "Challenge accept-malformed-1-4011914579-<accept-malformed.t22.example.test>, event Warning Failed: *",
        theirs: "-",
        ours: "cert-manager-challenges",
        why: TOLD,
    },
    Difference {
        about: "Challenge accept-malformed-1-4011914579-<accept-malformed.t22.example.test>, event Warning Failed: *",
        theirs: "-",
        ours: "the same, kubectl-acme",
        why: TOLD,
    },
    Difference {
        about: "events of Challenge accept-malformed-1-4011914579-<accept-malformed.t22.example.test>",
        theirs: "Started > Presented",
        ours: "Started > Presented > Failed",
        why: TOLD,
    },
    ended(
        "Certificate accept-malformed, Issuing",
        "- > True DoesNotExist \"Issuing certificate as Secret does not exist\"",
        "- > True DoesNotExist \"Issuing certificate as Secret does not exist\" > False Failed \"The certificate request has failed to complete and will be retried: *: Error accepting challenge: 400 *",
    ),
    ended(
        "Certificate accept-malformed, at last /status/conditions/Issuing/message",
        "Issuing certificate as Secret does not exist",
        "The certificate request has failed to complete and will be retried: *: Error accepting challenge: 400 *",
    ),
    ended(
        "Certificate accept-malformed, at last /status/conditions/Issuing/reason",
        "DoesNotExist",
        "Failed",
    ),
    ended(
        "Certificate accept-malformed, at last /status/conditions/Issuing/status",
        "True",
        "False",
    ),
    ended("Certificate accept-malformed, at last /status/failedIssuanceAttempts", "-", "1"),
    ended("Certificate accept-malformed, at last /status/lastFailureTime", "-", "<time>"),
    ended(
        "Certificate accept-malformed, at last /status/nextPrivateKeySecretName",
        "accept-malformed-<random>",
        "-",
    ),
    ended(
        "Certificate accept-malformed, event Warning Failed: *",
        "-",
        "cert-manager-certificates-issuing",
    ),
    ended("Certificate accept-malformed, event Warning Failed: *", "-", "the same, kubectl-acme"),
    ended("Certificate accept-malformed, failedIssuanceAttempts", "-", "- > 1"),
    ended(
        "Certificate accept-malformed, managed by",
        "cert-manager-certificates-key-manager Update status, *",
        "cert-manager-certificates-issuing Update status, cert-manager-certificates-key-manager Update status, *",
    ),
    ended(
        "Certificate accept-malformed, nextPrivateKeySecretName",
        "- > accept-malformed-<random>",
        "- > accept-malformed-<random> > -",
    ),
    ended(
        "CertificateRequest accept-malformed-1, Ready",
        "* > False Pending \"Waiting on certificate issuance from order trace-22/accept-malformed-1-4011914579: \"pending\"\"",
        "* > False Pending \"Waiting on certificate issuance from order trace-22/accept-malformed-1-4011914579: \"pending\"\" > False Failed \"Failed to wait for order resource *",
    ),
    ended(
        "CertificateRequest accept-malformed-1, at last /status/conditions/Ready/message",
        "Waiting on certificate issuance from order trace-22/accept-malformed-1-4011914579: \"pending\"",
        "Failed to wait for order resource *: Error accepting challenge: 400 *",
    ),
    ended(
        "CertificateRequest accept-malformed-1, at last /status/conditions/Ready/reason",
        "Pending",
        "Failed",
    ),
    ended("CertificateRequest accept-malformed-1, at last /status/failureTime", "-", "<time>"),
    ended(
        "CertificateRequest accept-malformed-1, event Warning OrderFailed: *",
        "-",
        "cert-manager-certificaterequests-issuer-acme",
    ),
    ended(
        "CertificateRequest accept-malformed-1, event Warning OrderFailed: *",
        "-",
        "the same, kubectl-acme",
    ),
    ended("Order accept-malformed-1-4011914579, at last /status/failureTime", "-", "<time>"),
    ended(
        "Order accept-malformed-1-4011914579, at last /status/reason",
        "-",
        "challenge for accept-malformed.t22.example.test: Error accepting challenge: 400 *",
    ),
    ended("Order accept-malformed-1-4011914579, at last /status/state", "pending", "errored"),
    ended(
        "Order accept-malformed-1-4011914579, reason",
        "-",
        "- > challenge for accept-malformed.t22.example.test: Error accepting challenge: 400 *",
    ),
    ended("Order accept-malformed-1-4011914579, state", "- > pending", "- > pending > errored"),
    ended(
        "events of Certificate accept-malformed",
        "Issuing > Generated > Requested",
        "Issuing > Generated > Requested > Failed",
    ),
    ended(
        "events of CertificateRequest accept-malformed-1",
        "OrderCreated",
        "OrderCreated > OrderFailed",
    ),
];

const TOLD: &str = "a challenge that the CA refuses says so in an event, too";

/// What waits for the moment that the CA has named.
const fn until(about: &'static str, theirs: &'static str, ours: &'static str) -> Difference {
    Difference { about, theirs, ours, why: "429 and 5xx wait for Retry-After and say until when" }
}

/// What ends with a Challenge that has ended badly.
const fn ended(about: &'static str, theirs: &'static str, ours: &'static str) -> Difference {
    Difference {
        about,
        theirs,
        ours,
        why: "every wait is bounded: theirs stays pending for ever (conformance cases 65, 66)",
    }
}

const ANY_KEY: &str = "account keys may be RSA and ECDSA";

/// What only we say.
const fn both(about: &'static str, ours: &'static str) -> Difference {
    Difference {
        about,
        theirs: "-",
        ours,
        why: "an Issuer refused by the CA has a condition and an event",
    }
}

/// A fault that the program finds by itself, told in its own words behind cert-manager's.
const fn in_our_words(theirs: &'static str, ours: &'static str) -> Difference {
    Difference {
        about: "",
        theirs,
        ours,
        why: "the part of Go's libraries in a message is their own; ours says the same in plain words",
    }
}

/// An Issuer that remembers when it may ask again.
const fn remembered(about: &'static str) -> Difference {
    Difference {
        about,
        theirs: "cert-manager-issuers Update status, *",
        ours: "cert-manager-issuers Update, cert-manager-issuers Update status, *",
        why: "what we must remember beyond the schema is in annotations",
    }
}
