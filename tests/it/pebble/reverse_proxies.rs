//! Web servers that have port 80, in front of our listener: each with the configuration of `examples/reverse-proxy` as it stands
//! there, then with what people add to it, then with what breaks it.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use kubectl_acme::ca::Config;
use serde_json::json;

use crate::support::bed::{Server, free_port};
use crate::support::ca::TestCa;
use crate::support::cluster::eventually;
use crate::support::lab;
use crate::support::terminal::{Said, Terminal, certificate, issuer};

const NAME: &str = "www.example.com";
/// Where the examples let the listener be.
const LISTENER: &str = "127.0.0.1:8080";

/// A web server of Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Software {
    Nginx,
    Apache,
    Haproxy,
    Caddy,
}

impl Software {
    /// The file of the example.
    fn example(self) -> String {
        let file = match self {
            Self::Nginx => "nginx.conf",
            Self::Apache => "apache.conf",
            Self::Haproxy => "haproxy.cfg",
            Self::Caddy => "Caddyfile",
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/reverse-proxy");
        fs::read_to_string(folder.join(file)).unwrap()
    }

    /// A site on that port in place of port 80, with what the package's own configuration has around it.
    fn whole(self, site: &str, port: u16, folder: &Path) -> String {
        let folder = folder.display();
        match self {
            Self::Nginx => {
                let site = site.replace("listen 80;", &format!("listen 127.0.0.1:{port};"));
                // The folder is this user's alone.
                format!(
                    "user root; daemon off; pid {folder}/pid; error_log {folder}/error.log;\n\
                     events {{}}\nhttp {{\naccess_log off; client_body_temp_path {folder}/body; \
                     proxy_temp_path {folder}/proxied;\n{site}}}\n"
                )
            }
            Self::Apache => {
                let site = site.replace("*:80", &format!("127.0.0.1:{port}"));
                let modules = ["mpm_event", "authz_core", "alias", "proxy", "proxy_http"];
                let modules = modules
                    .map(|it| {
                        format!("LoadModule {it}_module /usr/lib/apache2/modules/mod_{it}.so")
                    })
                    .join("\n");
                format!(
                    "ServerRoot {folder}\nDefaultRuntimeDir {folder}\nPidFile {folder}/pid\n\
                     ErrorLog {folder}/error.log\nServerName localhost\n{modules}\n\
                     User www-data\nGroup www-data\nListen 127.0.0.1:{port}\n{site}"
                )
            }
            Self::Haproxy => site.replace("bind :80", &format!("bind 127.0.0.1:{port}")),
            Self::Caddy => {
                let host = format!("http://{NAME}");
                let bound = format!("{host}:{port} {{\n\tbind 127.0.0.1");
                let site = site.replace(&format!("{host} {{"), &bound);
                format!("{{\n\tadmin off\n\tauto_https off\n}}\n{site}")
            }
        }
    }

    fn command(self, file: &Path) -> Command {
        let mut command = match self {
            Self::Nginx => Command::new("/usr/sbin/nginx"),
            Self::Apache => Command::new("/usr/sbin/apache2"),
            Self::Haproxy => Command::new("/usr/sbin/haproxy"),
            Self::Caddy => Command::new("caddy"),
        };
        match self {
            Self::Nginx => command.arg("-c").arg(file),
            Self::Apache => command.args(["-X", "-f"]).arg(file),
            Self::Haproxy => command.args(["-db", "-f"]).arg(file),
            Self::Caddy => {
                command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
                command.env("HOME", file.parent().unwrap())
            }
        };
        command
    }
}

/// A CA that is led to a web server, which is led to the listener of whoever orders.
struct Bed {
    ca: TestCa,
    terminal: Terminal,
    listener: u16,
    /// Ends with the test.
    _front: Server,
}

impl Bed {
    /// Starts everything; `change` makes the site of the example's.
    async fn start(software: Software, change: impl FnOnce(String) -> String) -> Self {
        let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
        let (terminal, listener) = (Terminal::elsewhere(), free_port());
        let site = change(software.example());
        Self::with_site(software, &site, ca, terminal, listener)
    }

    fn with_site(
        software: Software,
        site: &str,
        ca: TestCa,
        terminal: Terminal,
        listener: u16,
    ) -> Self {
        let site = site.replace(LISTENER, &format!("127.0.0.1:{listener}"));
        let port = ca.http01.port();
        let file = terminal.write("front/site", "");
        fs::write(&file, software.whole(&site, port, file.parent().unwrap())).unwrap();
        let log = terminal.path("front/log");
        let mut front = Server::start(&software.command(&file), &log);
        eventually("the web server", || {
            let said = || fs::read_to_string(&log).unwrap_or_default();
            assert!(front.is_running(), "{software:?}: {}", said());
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Self { ca, terminal, listener, _front: front }
    }

    /// Orders with these flags beside those that lead to the front.
    fn order(&self, timeout: &str, flags: &[&str]) -> Said {
        let acme =
            issuer(&self.ca.server.directory_url(), self.ca.server.tls_root_pem(), json!({}));
        self.terminal.manifests(&[acme, certificate("web", &[NAME], json!({}))]);
        let resolve = format!("--http01-resolve=*=127.0.0.1:{}", self.ca.http01.port());
        let fixed = ["order", "-f", "manifests.yaml", "--out=out", timeout, &resolve];
        self.terminal.run(&[&fixed[..], flags].concat())
    }

    fn listen(&self) -> String {
        format!("--http01-listen=127.0.0.1:{}", self.listener)
    }

    fn issues(&self, what: &str) {
        let said = self.order("--timeout=60s", &[&self.listen()]);
        assert_eq!(said.code, Some(0), "{what}: {said:?}");
    }

    /// Orders in vain, and goes where the last line leads: it names that cause.
    fn is_explained(&self, hint: &str, cause: &str) {
        let mut said = self.order("--timeout=4s", &[&self.listen()]);
        // A front tries its back end again, some seconds apart, before it says what is wrong.
        for timeout in ["--timeout=8s", "--timeout=16s", "--timeout=32s"] {
            if !said.stderr.contains(hint) {
                said = self.order(timeout, &[&self.listen()]);
            }
        }
        assert_eq!(said.code, Some(124), "{said:?}");
        assert!(said.stderr.contains(hint), "{said:?}");
        let why = said.stderr.lines().find(|line| line.contains("kubectl-acme diagnose "));
        let why = why.unwrap_or_else(|| panic!("{said:?}"));
        assert!(why.contains(&format!(" {}", self.listen())), "{why}");
        let line = &why[why.find("kubectl-acme diagnose ").unwrap()..];
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let words = words.iter().map(|word| word.trim_matches('\'')).chain(["-o", "json"]);
        let said = self.terminal.run(&words.collect::<Vec<_>>());
        let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        lab::names_first(&report, cause);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs web servers: run by just pebble"]
async fn every_server_forwards_challenges_as_its_example_says() {
    for software in [Software::Nginx, Software::Apache, Software::Haproxy, Software::Caddy] {
        Bed::start(software, |site| site).await.issues(&format!("{software:?}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs web servers: run by just pebble"]
async fn what_people_add_to_the_examples_does_no_harm() {
    for (software, line, more) in [
        (Software::Nginx, ":8080;", ":8080; proxy_set_header Host $host;"),
        (Software::Nginx, ":8080;", ":8080; proxy_http_version 1.1; proxy_set_header Host a.b;"),
        (Software::Nginx, "location ^~", "location ~ /\\. { deny all; }\n    location ^~"),
        (Software::Apache, "ProxyPass ", "ProxyPreserveHost on\n    ProxyPass "),
        (Software::Haproxy, ":8080", ":8080 send-proxy"),
        (Software::Haproxy, ":8080", ":8080 send-proxy-v2"),
        (Software::Haproxy, ":8080", ":8080 send-proxy-v2-ssl-cn proxy-v2-options unique-id"),
        (Software::Haproxy, ":8080", ":8080 check check-send-proxy send-proxy-v2"),
        (
            Software::Haproxy,
            "server listener",
            "http-request set-header Host x\n    server listener",
        ),
        (Software::Caddy, "reverse_proxy", "reverse_proxy /*"),
    ] {
        let bed = Bed::start(software, |site| {
            assert!(site.contains(line), "{software:?}: {line}");
            site.replacen(line, more, 1)
        });
        bed.await.issues(&format!("{software:?}: {more}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs web servers: run by just pebble"]
async fn what_breaks_the_way_is_named_by_what_came_to_the_listener() {
    let path = "pass the path on as it is";
    let cut = |site: String| site.replace(":8080;", ":8080/;");
    Bed::start(Software::Nginx, cut).await.is_explained(path, "HTTP-38");
    let cut = |site: String| site.replace(":8080/.well-known/acme-challenge/", ":8080/");
    Bed::start(Software::Apache, cut).await.is_explained(path, "HTTP-38");
    let tls = |site: String| site.replace(":8080", ":8080 ssl verify none");
    Bed::start(Software::Haproxy, tls).await.is_explained("it forwards TLS", "HTTP-37");
    let tls = |site: String| site.replace("http://127", "https://127");
    Bed::start(Software::Nginx, tls).await.is_explained("it forwards TLS", "HTTP-37");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs web servers: run by just pebble"]
async fn the_webroot_of_nginx_is_shown_beside_a_rule_against_dots() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/nginx/README.md");
    let page = fs::read_to_string(page).unwrap();
    let site = page.split("```nginx\n").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = Terminal::elsewhere();
    let root = terminal.path("www");
    fs::create_dir(&root).unwrap();
    let root = root.to_str().unwrap().to_owned();
    let site = site.replace("/var/www/html", &root).replacen(
        "location ^~",
        "location ~ /\\. { deny all; }\n    location ^~",
        1,
    );
    assert!(site.contains("deny all"), "{site}");
    let bed = Bed::with_site(Software::Nginx, &site, ca, terminal, free_port());
    let said = bed.order("--timeout=60s", &[&format!("--http01-webroot={root}")]);
    assert_eq!(said.code, Some(0), "{said:?}");
}
