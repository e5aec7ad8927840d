//! Where we differ from cert-manager on purpose, recording by recording, whatever the store.

use super::difference::Difference;

/// Who speaks.
pub const OUR_NAME: Difference = Difference {
    about: "",
    theirs: ", nobody in particular",
    ours: ", kubectl-acme",
    why: "reportingInstance says kubectl-acme",
};

/// In every recording of an issuance: who speaks, and how often it is said that a request waits for approval.
pub const EVERYWHERE: &[Difference] = &[
    OUR_NAME,
    Difference {
        about: "CertificateRequest *, event Normal WaitingForApproval: *",
        theirs: "cert-manager-certificaterequests-issuer-acme, cert-manager-certificaterequests-issuer-ca, *",
        ours: "cert-manager-certificaterequests-issuer-acme",
        why: "one event WaitingForApproval, not one from each issuer type",
    },
];

/// 03, 16: a check that failed passes.
pub const ACCEPTED: Difference = Difference {
    about: "Challenge *, reason",
    theirs: "- > Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200' > *",
    ours: "- > Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200' > - > *",
    why: "nothing blocks, so the acceptance is written before its result is known, and what the check said is no longer true",
};

/// 06: no solver fits.
pub const NO_SOLVER: Difference = Difference {
    about: "Order web-1-3415098818, reason",
    theirs: "-",
    ours: "- > Failed to determine a valid solver configuration for the set of domains on the Order: no configured challenge solvers can be used for this challenge > -",
    why: "that no solver fits is in the Order's reason",
};

/// 09: the CA reuses the authorization, and is told what is replaced.
pub const RENEWALS: [Difference; 4] = [
    Difference {
        about: "Order web-2-1182851421, at last /spec/replaces",
        theirs: "-",
        ours: "*",
        why: "a renewal says which certificate it replaces, so that it counts towards no limit",
    },
    Difference {
        about: "Order web-3-1182851421, at last /spec/replaces",
        theirs: "-",
        ours: "*",
        why: "a renewal says which certificate it replaces, so that it counts towards no limit",
    },
    Difference {
        about: "Order web-2-1182851421, at last /status/authorizations/0/*",
        theirs: "*",
        ours: "-",
        why: "2N+5 requests, so an order that is born ready is finalized without reading its authorizations",
    },
    Difference {
        about: "Order web-3-1182851421, at last /status/authorizations/0/*",
        theirs: "*",
        ours: "-",
        why: "2N+5 requests, so an order that is born ready is finalized without reading its authorizations",
    },
];

/// 13, 16: the Challenge goes while its self-check fails.
pub const ONE_INGRESS: Difference = Difference {
    about: "Challenge *, reason",
    theirs: "- > Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200' > Waiting for HTTP-01 challenge propagation: multiple existing challenge solver ingresses *",
    ours: "- > Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200' > gone",
    why: "exactly one of each solver object",
};

/// 21: the second of two challenges for one name.
pub const HELD_BACK: [Difference; 2] = [
    Difference {
        about: "Challenge two-1-3228917918-<same.t21.example.test>, processing",
        theirs: "- > true > gone",
        ours: "- > false > true > gone",
        why: "a challenge that is held back says what it waits for",
    },
    Difference {
        about: "Challenge two-1-3228917918-<same.t21.example.test>, reason",
        theirs: "- > Successfully authorized domain > gone",
        ours: "- > Waiting for challenge trace-21/one-1-3228917918-<same.t21.example.test>: one HTTP-01 challenge for same.t21.example.test at a time > - > Successfully authorized domain > gone",
        why: "a challenge that is held back says what it waits for",
    },
];
