//! Pages of `account` and the commands below it.

use super::page::{ASKS, CommandPage, READS};

/// Pages of `account` and its commands, each command before the commands below it.
pub(super) const PAGES: &[CommandPage] = &[
    CommandPage {
        path: "account",
        examples: &[
            ("Every account, as its CA holds it", "account show --local"),
            ("Another key", "account rollover letsencrypt -n web"),
        ],
        ends: ASKS,
    },
    CommandPage {
        path: "account show",
        examples: &[
            ("Accounts of a namespace, and of all ClusterIssuers", "account show -n web"),
            ("One account, for a program", "account show letsencrypt --local -o json"),
        ],
        ends: ASKS,
    },
    CommandPage {
        path: "account update",
        examples: &[(
            "Another contact",
            "account update letsencrypt --local --email ops@example.com",
        )],
        ends: ASKS,
    },
    CommandPage {
        path: "account rollover",
        examples: &[
            ("Another key of the same kind", "account rollover letsencrypt -n web"),
            (
                "A key of another kind, on this machine",
                "account rollover letsencrypt --local --algorithm ecdsa-p256",
            ),
        ],
        ends: ASKS,
    },
    CommandPage {
        path: "account deactivate",
        examples: &[("End an account for ever", "account deactivate clusterissuer/letsencrypt")],
        ends: ASKS,
    },
    CommandPage {
        path: "account recover",
        examples: &[
            (
                "Find the account of the key in the Issuer's Secret",
                "account recover letsencrypt -n web",
            ),
            (
                "Find the account of an exported key",
                "account recover letsencrypt --local --key account.pem",
            ),
        ],
        ends: ASKS,
    },
    CommandPage {
        path: "account export",
        examples: &[(
            "Keep a key where this machine cannot lose it",
            "account export letsencrypt --local --out account.pem",
        )],
        ends: READS,
    },
    CommandPage {
        path: "account import",
        examples: &[
            ("The account of certbot", "account import letsencrypt --local --key private_key.json"),
            ("Replace another key", "account import letsencrypt --key account.key --replace"),
        ],
        ends: ASKS,
    },
];
