//! Names that do not lead here, and ports that cannot be had.

use kubectl_acme::ca::Config;

use super::site::Site;
use crate::support::bed::free_port;
use crate::support::empty_dns;

/// Runs with these flags, whose ports are shown as words; returns the machine for what follows.
#[track_caller]
fn check(site: &Site, more: &str, code: i32, complaint: &str) {
    site.run(site.order(more)).check(code, complaint);
    assert_eq!(site.results(), [""; 0]);
}

#[test]
fn a_name_that_does_not_exist_is_told_when_the_time_is_up() {
    let site = Site::new();
    let dns = empty_dns::address();
    check(
        &site,
        &format!("--timeout 5s --dns {dns} --http01-resolve unused.example.com=127.0.0.1"),
        124,
        "\
error: Certificate default/web is not done after 5s: Challenge default/web-1-[hash]: Waiting for HTTP-01 challenge propagation: failed to perform self check GET request 'http://www.example.com/.well-known/acme-challenge/[token]': no such host www.example.com
hint: create an A or AAAA record that points www.example.com to this machine in public DNS, or prove the name by DNS-01; resolvers may cache for minutes that there was none
hint: run the same command again: it goes on where it stopped
",
    );
    assert_eq!(site.proxy.counts().at(crate::support::traffic::Endpoint::Challenge), 0);
    site.issues();
    assert_eq!(site.orders(), 1);
}

#[test]
fn a_closed_port_is_told_when_the_time_is_up() {
    let site = Site::new();
    let closed = free_port();
    let more = format!("--timeout 5s --http01-resolve www.example.com=127.0.0.1:{closed}");
    check(&site, &more, 124, "\
error: Certificate default/web is not done after 5s: Challenge default/web-1-[hash]: Waiting for HTTP-01 challenge propagation: failed to perform self check GET request 'http://www.example.com/.well-known/acme-challenge/[token]': connection refused by 127.0.0.1:[port]
hint: forward port 80 of www.example.com to [listener], where this program listens (by the router, a web server or the firewall), or leave --http01-listen out: nothing accepts connections at port 80
hint: run the same command again: it goes on where it stopped
");
    assert_eq!(site.proxy.counts().at(crate::support::traffic::Endpoint::Challenge), 0);
    site.issues();
    assert_eq!(site.orders(), 1);
}

#[test]
fn a_ca_that_does_not_find_the_answer_is_told_in_its_words() {
    let (here, elsewhere) = (free_port(), free_port());
    let site = Site::seen_at(&Config::default(), elsewhere);
    let here = format!("127.0.0.1:{here}");
    check(&site, &format!("--http01-listen {here} --http01-resolve *={here}"), 4, "\
error: Certificate default/web was not issued: acme: authorization error for www.example.com: 400 urn:ietf:params:acme:error:connection: 127.0.0.1: Fetching http://www.example.com/.well-known/acme-challenge/[token]: Connection refused
hint: forward port 80 of www.example.com to 127.0.0.1:[port], where this program listens (by the router, a web server or the firewall), or leave --http01-listen out: nothing accepts connections at port 80
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
    assert_eq!(site.orders(), 1);
    // Where the CA looks is put right: a person's wish beats the back-off, and a fresh order is made.
    site.issues();
    assert_eq!(site.orders(), 2);
}

#[test]
fn a_port_that_is_taken_is_told_before_the_ca_is_asked() {
    let site = Site::new();
    let taken = site.taken_port();
    check(&site, "", 9, "\
error: cannot listen on [listener]: another program listens there
hint: forward port 80 to another port of this machine and listen there: --http01-listen 127.0.0.1:[port]
hint: let the web server on port [port] serve the answers: --http01-webroot DIR
hint: end the program that listens there; sudo ss -ltnp 'sport = :[port]' names it
");
    assert_eq!(site.proxy.counts().total(), 0);
    drop(taken);
    site.issues();
}

#[test]
fn a_port_that_is_not_permitted_is_told_before_the_ca_is_asked() {
    let site = Site::new();
    let order = site.order_of_nobody("--http01-listen 127.0.0.1:80");
    site.run(order).check(9, "\
error: cannot listen on 127.0.0.1:[port]: permission denied
hint: forward port 80 to another port of this machine and listen there: --http01-listen 127.0.0.1:[port]
hint: let the web server on port [port] serve the answers: --http01-webroot DIR
hint: run as root, or allow this program low ports: sudo setcap 'cap_net_bind_service=+ep' PROGRAM
");
    assert_eq!(site.proxy.counts().total(), 0);
}

#[test]
fn a_document_root_that_cannot_be_written_is_told_before_the_ca_is_asked() {
    let site = Site::new();
    check(
        &site,
        "--http01-webroot missing",
        9,
        "\
error: cannot write to missing: no such folder
hint: name the document root of the web server that answers for these names: --http01-webroot DIR
",
    );
    assert_eq!(site.proxy.counts().total(), 0);
    let site = Site::new();
    let order = site.order_of_nobody("--http01-webroot /");
    site.run(order).check(
        9,
        "\
error: cannot write to /: permission denied
hint: run as a user who may write there, or name another document root: --http01-webroot DIR
",
    );
    assert_eq!(site.proxy.counts().total(), 0);
}

#[test]
fn registering_an_account_takes_no_port() {
    let site = Site::new();
    let _taken = site.taken_port();
    let manifest = site.manifest();
    site.give(manifest.split("---").next().unwrap());
    site.run(site.order("")).check(0, "");
}

#[test]
fn names_that_dns01_alone_answers_take_no_port() {
    let site = Site::new();
    let _taken = site.taken_port();
    site.change("[www.example.com]", "['*.example.com']");
    site.change(
        "    solvers:\n",
        "    solvers:
    - selector: {dnsNames: ['*.example.com']}
      dns01: {rfc2136: {nameserver: 192.0.2.53}}
",
    );
    // Nobody makes the record, here where no resolver answers.
    let said = site
        .run(site.order(&format!("--dns01-manual --timeout 5s --dns {}", empty_dns::address())));
    assert!(!said.talk.contains("cannot listen"), "{}", said.talk);
    assert_eq!(site.orders(), 1, "{}", said.talk);
}

#[test]
fn who_answers_http01_is_told_where_a_solver_asks_for_it() {
    const ANSWERS: &str = "HTTP-01 challenges are answered by this program's own listener";
    let site = Site::new();
    let said = site.run(site.order(""));
    assert!(!said.talk.contains(ANSWERS), "nobody named a class: {}", said.talk);
    site.change("ingress: {}", "ingress: {ingressClassName: nginx}");
    assert!(site.run(site.order("")).talk.contains(ANSWERS));
    let by_dns = "    - dns01: {rfc2136: {nameserver: 192.0.2.53}}\n";
    site.change("    - http01:\n        ingress: {ingressClassName: nginx}\n", by_dns);
    let said = site.run(site.order("--dns01-manual"));
    assert!(!said.talk.contains(ANSWERS), "{}", said.talk);
}
