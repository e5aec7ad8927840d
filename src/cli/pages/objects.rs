//! Pages of `order`, `challenge` and `certificate` and the commands below them.

use super::page::{ASKS, CHECKS, CommandPage, LOOKS, READS, WORKS, WRITES};

/// Pages of `order`, `challenge`, `certificate` and their commands, each command before the commands below it.
pub(super) const PAGES: &[CommandPage] = &[
    CommandPage {
        path: "order",
        examples: &[
            (
                "Issue what is due in the cluster, and wait",
                "order -f issuer.yaml -f certificate.yaml",
            ),
            ("The same on this machine", "order -f issuer.yaml -f certificate.yaml --local"),
            (
                "Try it out: no DNS, no root, nothing spent",
                "order -f manifests/ --local --rehearse=loopback",
            ),
            ("Without manifests", "order --domain www.example.com --local"),
            ("Orders, and every change", "order get --local -w"),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "order create",
        examples: &[
            ("Every manifest of a folder", "order create -f manifests/ -R --local"),
            (
                "Rehearse what is due, and issue it only after success",
                "order create -f manifests/ --local --rehearse-first",
            ),
            (
                "Several names from a test CA, answered by files of a web server",
                "order create --domain a.example,b.example --local \\\n    --server letsencrypt-staging --http01-webroot /var/www/html",
            ),
            (
                "The manifests for a name",
                "order create --domain a.example --dry-run=client -o yaml",
            ),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "order get",
        examples: &[
            ("Orders of a namespace, and every change", "order get -n web -w"),
            ("One order as YAML", "order get web-1-2960432719 --local -o yaml"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "order retry",
        examples: &[
            ("A fresh order for one that failed", "order retry web-1-2960432719 --local"),
            ("For everything that is not ready", "order retry -A"),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "order resume",
        examples: &[("Continue after an interruption", "order resume web-1-2960432719 --local")],
        ends: WORKS,
    },
    CommandPage {
        path: "order delete",
        examples: &[("An order with its challenges", "order delete web-1-2960432719 --local")],
        ends: WRITES,
    },
    CommandPage {
        path: "challenge",
        examples: &[
            ("All challenges with their reasons", "challenge get -A -o wide"),
            (
                "Check one answer as the CA would",
                "challenge check web-1-2960432719-4128531 --local",
            ),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "challenge get",
        examples: &[
            ("All challenges, and every change", "challenge get -n web -w"),
            ("One as JSON", "challenge get web-1-2960432719-4128531 --local -o json"),
        ],
        ends: READS,
    },
    CommandPage {
        path: "challenge check",
        examples: &[
            (
                "Check one answer, with the command line that does the same",
                "challenge check web-1-2960432719-4128531 \\\n    --local --show-commands",
            ),
            ("Ask another resolver", "challenge check web-1-2960432719-4128531 --dns 9.9.9.9:53"),
        ],
        ends: LOOKS,
    },
    CommandPage {
        path: "challenge present",
        examples: &[(
            "Put up one answer on another port, behind a proxy",
            "challenge present web-1-2960432719-4128531 \\\n    --local --http01-listen 127.0.0.1:8080",
        )],
        ends: WRITES,
    },
    CommandPage {
        path: "challenge cleanup",
        examples: &[("Take one answer down", "challenge cleanup web-1-2960432719-4128531 --local")],
        ends: WRITES,
    },
    CommandPage {
        path: "certificate",
        examples: &[("Renew now", "certificate renew www-example-com --local")],
        ends: WORKS,
    },
    CommandPage {
        path: "certificate get",
        examples: &[("When certificates expire", "certificate get -A")],
        ends: READS,
    },
    CommandPage {
        path: "certificate check",
        examples: &[
            ("Certificates to replace in a whole cluster", "certificate check -A"),
            (
                "The same every night, at most ten certificates in an hour",
                "certificate check -A --renew --max-per-hour 10",
            ),
            (
                "Serial numbers that a CA has announced, and what servers show",
                "certificate check -A --serials incident.txt --hosts hosts.txt",
            ),
            ("For a spreadsheet", "certificate check -A -o csv"),
        ],
        ends: CHECKS,
    },
    CommandPage {
        path: "certificate show",
        examples: &[
            (
                "What was issued, and whether it fits the Certificate",
                "certificate show web -n shop",
            ),
            (
                "The certificate in a Secret, and one in a file",
                "certificate show secret/web-tls ./tls.crt",
            ),
            ("A folder that --out has written", "certificate show out/web-tls/"),
            (
                "A server's certificate, and whether clients trust it",
                "certificate show www.example.com:443",
            ),
        ],
        ends: READS,
    },
    CommandPage {
        path: "certificate renew",
        examples: &[
            ("Renew now, due or not", "certificate renew www-example-com --local"),
            ("Several of a namespace", "certificate renew web mail -n shop --timeout 5m"),
            ("All with a label, in every namespace", "certificate renew -A -l tier=front"),
        ],
        ends: WORKS,
    },
    CommandPage {
        path: "certificate revoke",
        examples: &[
            (
                "By the account of its Issuer, because the key leaked",
                "certificate revoke web -n shop --reason keyCompromise",
            ),
            (
                "A file whose account is lost, by its own key",
                "certificate revoke tls.crt --key=tls.key \\\n    --issuer letsencrypt",
            ),
        ],
        ends: ASKS,
    },
    CommandPage {
        path: "certificate approve",
        examples: &[
            ("Approve a request", "certificate approve web -n shop"),
            (
                "One request by its name, with a reason",
                "certificate approve web-1 -n shop --reason PolicyChecked",
            ),
        ],
        ends: WRITES,
    },
    CommandPage {
        path: "certificate deny",
        examples: &[("Deny a request for good", "certificate deny web-1 -n shop")],
        ends: WRITES,
    },
];
