//! How much is said on stderr: each step, both sides of each request, nothing but what somebody should look at, or
//! documents for collectors; and never a secret.

use std::collections::{BTreeMap, BTreeSet};

use kubectl_acme::ca::{Config, MacKey};
use kubectl_acme::model::{Blob, Kind};
use serde_json::{Value, from_value};

use super::account::{KEY, bind, secret};
use super::site::Site;
use crate::support::bed::free_port;
use crate::support::outcome;

/// A machine whose CA wants an external account, and looks for the answers where nobody is.
fn unseen() -> Site {
    let keys = BTreeMap::from([("kid-1".to_owned(), MacKey::new(vec![7; 32]))]);
    let config = Config::default();
    let config = Config { external_accounts: keys, external_account_required: true, ..config };
    let site = Site::seen_but(&config, free_port(), &[("www.example.com", 1)]);
    bind(&site, &secret(KEY));
    site
}

/// What must not be read in a log: keys and their lines, the answers of challenges.
fn secrets(site: &Site) -> BTreeSet<String> {
    let state = site.path("state");
    let mut secrets = BTreeSet::from([KEY.to_owned()]);
    for object in outcome::stored(&state, Kind::Secret) {
        for (name, value) in object["data"].as_object().into_iter().flatten() {
            let Blob(bytes) = from_value(value.clone()).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            // A certificate is for everybody.
            let is_public = ["tls.crt", "ca.crt"].contains(&name.as_str());
            secrets.extend(text.lines().filter(|_| !is_public).map(str::to_owned));
            secrets.insert(value.as_str().unwrap().to_owned());
        }
    }
    for challenge in outcome::stored(&state, Kind::Challenge) {
        let text = |field: &str| challenge["spec"][field].as_str().unwrap().to_owned();
        secrets.extend([text("token"), text("key")]);
    }
    secrets.retain(|text| text.len() > 8 && !text.starts_with("-----"));
    secrets
}

#[test]
fn both_sides_of_each_request_are_shown_without_a_secret() {
    let site = unseen();
    let said = site.run(site.order("-vv --force-conflicts"));
    assert_eq!(said.code, Some(4), "{}", said.talk);
    for shown in [
        "urn:ietf:params:acme:error:connection",
        "what=newAccount",
        "\"externalAccountBinding\":\"***\"",
        "header: {\"kid\":\"",
        "header: {\"thumbprint\":\"",
        "payload: {\"identifiers\":[{\"type\":\"dns\",\"value\":\"www.example.com\"}]}",
        "\"token\":\"***\"",
        "location=",
    ] {
        assert!(said.talk.contains(shown), "{shown} is not in\n{}", said.talk);
    }
    let secrets = secrets(&site);
    assert!(secrets.len() > 5, "{secrets:?}");
    let lines = said.talk.lines().filter(|line| is_logged(line));
    for line in lines {
        let told = secrets.iter().find(|secret| line.contains(secret.as_str()));
        assert_eq!(told, None, "{line}");
        assert!(!line.contains("\"signature\"") && !line.contains("eyJ"), "{line}");
    }
}

/// Tells whether a line is of the log, and not of the conversation, which tells errors in the words of the CA.
fn is_logged(line: &str) -> bool {
    let of_event = [" INFO ", " DEBUG ", " WARN "].iter().any(|level| line.contains(level));
    of_event || line.starts_with("  ")
}

#[test]
fn each_step_is_a_line() {
    let site = Site::new();
    let said = site.run(site.order("-v"));
    assert_eq!(said.code, Some(0), "{}", said.talk);
    for step in [
        "INFO acme: asked the CA method=GET what=directory status=200 took=",
        "INFO acme: asked the CA method=POST what=newOrder status=201 took=",
        "what=authorization",
        "what=challenge",
        "what=finalize",
        "what=certificate",
        "INFO controllers: the answer is up domain=www.example.com kind=HTTP-01",
        "INFO controllers: the self-check sees the answer domain=www.example.com",
        "INFO store: wrote object=\"Certificate default/web\" change=applied",
        "INFO store: wrote object=\"Secret default/web-tls\" change=",
    ] {
        assert!(said.talk.contains(step), "{step} is not in\n{}", said.talk);
    }
    assert!(!said.talk.contains("payload:"), "{}", said.talk);
}

#[test]
fn a_quiet_run_leaves_the_product_alone() {
    let site = Site::new();
    let said = site.run(site.order("-q"));
    assert_eq!((said.code, said.talk.as_str()), (Some(0), ""));
    assert!(said.result.contains("web"), "{}", said.result);
    site.change("www.example.com", "www.example.com, www.example.com");
    let refused = site.run(site.program("order -q -f nowhere.yaml"));
    assert!(refused.talk.starts_with("error: "), "{}", refused.talk);
}

#[test]
fn whatever_run_says_is_a_document_where_that_is_asked_for() {
    let site = Site::new();
    assert_eq!(site.run(site.order("")).code, Some(0));
    let run = site.start("run", site.program("run -v --log-format json"));
    run.says("next renewal: Certificate default/web at ");
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{}", ended.talk);
    for line in ended.talk.lines() {
        let document: Value =
            serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        for field in ["time", "level", "target", "message", "fields"] {
            assert!(document.get(field).is_some(), "{field} is not in {line}");
        }
        assert_ne!(document["level"], "error", "{line}");
    }
    assert!(ended.talk.contains("stopped by Ctrl-C; everything so far is kept"), "{}", ended.talk);
}

#[test]
fn a_variable_is_named_when_it_is_wrong() {
    let site = Site::new();
    let refused = |variables: &[(&str, &str)], words: &str| {
        let mut command = site.program(words);
        command.envs(variables.iter().copied());
        let said = site.run(command);
        assert_eq!(said.code, Some(2), "{}", said.talk);
        said.complaint()
    };
    let order = "order -f site.yaml";
    for (variables, words, expected) in [
        (
            &[("KUBECTL_ACME_TIMEOUT", "xyz")][..],
            order,
            "error: invalid value 'xyz' for 'KUBECTL_ACME_TIMEOUT (--timeout)': \"xyz\" is not a duration such as 90s, 10m or 1h30m",
        ),
        (
            &[("KUBECTL_ACME_COLOR", "pink")],
            "version",
            "error: invalid value 'pink' for 'KUBECTL_ACME_COLOR (--color)'\n",
        ),
        (
            &[("KUBECTL_ACME_VERBOSE", "1"), ("KUBECTL_ACME_QUIET", "1")],
            "version",
            "error: KUBECTL_ACME_VERBOSE cannot be used with KUBECTL_ACME_QUIET: one asks for more output, the other for less",
        ),
        (
            &[("KUBECTL_ACME_LOG", "loud")],
            "version",
            "error: cannot use KUBECTL_ACME_LOG (--log) loud: \"loud\" is neither a level nor a name",
        ),
        (&[("KUBECTL_ACME_DNS", "::::")], order, "error: cannot use KUBECTL_ACME_DNS (--dns) "),
        (
            &[("KUBECTL_ACME_CONTEXT", "kind")],
            "version",
            "error: KUBECTL_ACME_LOCAL (--local) cannot be used with KUBECTL_ACME_CONTEXT (--context): one names this machine, the other a cluster",
        ),
        (
            &[("KUBECTL_ACME_DOMAIN", "a.example"), ("KUBECTL_ACME_FILENAME", "site.yaml")],
            "order",
            "error: the argument 'KUBECTL_ACME_FILENAME (--filename)' cannot be used with 'KUBECTL_ACME_DOMAIN (--domain)'",
        ),
    ] {
        let said = refused(variables, words);
        assert!(said.starts_with(expected), "{said}");
    }
}
