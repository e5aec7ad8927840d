//! Hints for a solver that could not put its answer up, or take it down.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{answer, store};
use crate::solvers::remedy::{PortFault, Remedy, RootFault};

/// Returns the hints for a remedy, one line each.
pub fn lines(remedy: &Remedy) -> Vec<String> {
    let line = match remedy {
        Remedy::InWords(words) => words.to_string(),
        Remedy::AllowPrograms => "check what the program does, then add --dns01-allow-exec".to_owned(),
        Remedy::ProgramsOnThisMachine => {
            "with --local and --dns01-allow-exec this machine runs the program".to_owned()
        }
        Remedy::RecordByHand => {
            "add --dns01-manual (with --local), or name a provider in the solver of the issuer"
                .to_owned()
        }
        Remedy::BuildWithProviders => {
            "use a published build, or build it with: cargo build --release --features many-providers"
                .to_owned()
        }
        Remedy::WebhookAddress { group } => {
            format!("name the webhook's address: --dns01-webhook {group}=URL")
        }
        Remedy::WebhookService { group } => {
            format!("kubectl get apiservice v1alpha1.{group} shows whether the webhook runs")
        }
        Remedy::DocumentRoot(fault) => document_root(*fault).to_owned(),
        Remedy::HttpPort { address, fault } => return http_port(*address, *fault),
        Remedy::TlsPort => "end the program that has the port, or forward port 443 to another port of this machine and \
                            listen there: --tls-alpn-listen 0.0.0.0:8443; for low ports run as root, or sudo setcap \
                            'cap_net_bind_service=+ep' PROGRAM; behind a web server that needs port 443, use http-01 or \
                            a type by DNS record"
            .to_owned(),
        Remedy::Ingress { name, namespace } => format!(
            "create Ingress {name} in namespace {namespace}, or change http01.ingress.name of the issuer's solver"
        ),
        Remedy::Zone(symptom) => answer::zone(*symptom).unwrap_or_default().to_owned(),
        Remedy::Store(error) => return store::lines(error),
        Remedy::Alias { record, end, follows, beside } => {
            let alias = if *follows {
                format!("{record} is a CNAME, and the record is written at its target, {end}")
            } else {
                format!(
                    "{record} is a CNAME to {end}: with cnameStrategy: Follow the record is written there"
                )
            };
            let beside = beside.iter().flat_map(|remedy| lines(remedy));
            beside.chain([alias]).collect::<Vec<_>>().join("; ")
        }
    };
    vec![line]
}

fn document_root(fault: RootFault) -> &'static str {
    match fault {
        RootFault::Missing => {
            "name the document root of the web server that answers for these names: --http01-webroot DIR"
        }
        RootFault::Forbidden => {
            "run as a user who may write there, or name another document root: --http01-webroot DIR"
        }
        RootFault::ReadOnly => "name a folder that can be written: --http01-webroot DIR",
        RootFault::Full => "make room there, or name another document root: --http01-webroot DIR",
    }
}

/// Returns the hints for a port that cannot be listened on; the hint for the fault itself comes last.
fn http_port(address: SocketAddr, fault: PortFault) -> Vec<String> {
    let port = address.port();
    let host = if address.ip().is_unspecified() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        address.ip()
    };
    let elsewhere = SocketAddr::new(host, if port == 8080 { 8081 } else { 8080 });
    let of_all = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    if fault == PortFault::Elsewhere {
        return vec![format!(
            "listen on an address of this machine, or on all of them: --http01-listen {of_all}"
        )];
    }
    let mut ways = vec![
        format!(
            "forward port 80 to another port of this machine and listen there: --http01-listen {elsewhere}"
        ),
        format!("let the web server on port {port} serve the answers: --http01-webroot DIR"),
    ];
    match fault {
        PortFault::Forbidden => ways.push(
            "run as root, or allow this program low ports: sudo setcap 'cap_net_bind_service=+ep' PROGRAM"
                .to_owned(),
        ),
        PortFault::Taken => ways.push(format!(
            "end the program that listens there; sudo ss -ltnp 'sport = :{port}' names it"
        )),
        PortFault::Elsewhere | PortFault::Other => {}
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the last hint if port 80 is refused for that reason.
    #[track_caller]
    fn check_way_out(fault: PortFault, expected: &str) {
        let ways = http_port(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80)), fault);
        assert!(ways[0].ends_with("--http01-listen 0.0.0.0:8080"));
        assert!(ways.last().is_some_and(|way| way.contains(expected)), "{ways:?}");
        assert_eq!(ways.iter().any(|way| way.contains("setcap")), fault == PortFault::Forbidden);
    }

    #[test]
    fn a_right_is_offered_only_where_one_is_missing() {
        check_way_out(PortFault::Forbidden, "setcap");
        check_way_out(PortFault::Taken, "end the program that listens there; sudo ss -ltnp");
        check_way_out(PortFault::Other, "--http01-webroot DIR");
    }

    #[test]
    fn an_address_of_another_machine_is_not_offered_again() {
        let ways = http_port("192.0.2.1:80".parse().unwrap(), PortFault::Elsewhere);
        assert_eq!(
            ways,
            ["listen on an address of this machine, or on all of them: --http01-listen 0.0.0.0:80"]
        );
    }
}
