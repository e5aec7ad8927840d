//! Sockets of this program's listeners: on the named addresses, or on all addresses of this machine.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use super::SolveError;
use super::remedy::{PortFault, Remedy};

/// Reason if this user may not use an address.
const FORBIDDEN: &str = "permission denied";
/// Reason if another program has the address.
const TAKEN: &str = "another program listens there";

/// Listens on all these addresses, or on none: the first address that fails is the error.
pub(super) async fn at(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, SolveError> {
    let mut sockets = Vec::new();
    for address in addresses {
        let socket = TcpListener::bind(address).await;
        sockets.push(socket.map_err(|error| listen_error(*address, &error))?);
    }
    Ok(sockets)
}

/// Listens on a port of all addresses, IPv6 and IPv4, as far as this machine has them.
pub(super) async fn everywhere(port: u16) -> Result<Vec<TcpListener>, SolveError> {
    let six = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let four = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let first = match TcpListener::bind(six).await {
        Ok(socket) => socket,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::AddrInUse
            ) =>
        {
            return Err(listen_error(six, &error));
        }
        // A machine without IPv6 fails in several ways.
        Err(_) => return at(&[four]).await,
    };
    let port = first.local_addr().map_or(port, |address| address.port());
    match TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await {
        Ok(second) => Ok(vec![first, second]),
        // The first socket takes IPv4 connections too.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(vec![first]),
        Err(error) => Err(listen_error(four, &error)),
    }
}

/// Returns the address of a socket, with its real port.
pub(super) fn address(socket: &TcpListener) -> Result<SocketAddr, SolveError> {
    socket
        .local_addr()
        .map_err(|error| SolveError::passing("cannot listen", error.kind().to_string()))
}

/// Returns the chosen addresses of a listener; none if they are all addresses of this machine, at the port of the protocol.
pub(super) fn chosen(addresses: &[SocketAddr], usual: u16) -> Vec<SocketAddr> {
    let is_usual = |one: &SocketAddr| one.ip().is_unspecified() && one.port() == usual;
    if addresses.iter().all(is_usual) { Vec::new() } else { addresses.to_vec() }
}

fn listen_error(address: SocketAddr, error: &io::Error) -> SolveError {
    let (why, fault) = match error.kind() {
        io::ErrorKind::PermissionDenied => (FORBIDDEN.to_owned(), PortFault::Forbidden),
        io::ErrorKind::AddrInUse => (TAKEN.to_owned(), PortFault::Taken),
        io::ErrorKind::AddrNotAvailable => {
            ("this machine does not have that address".to_owned(), PortFault::Elsewhere)
        }
        kind => (kind.to_string(), PortFault::Other),
    };
    let remedy = Remedy::HttpPort { address, fault };
    SolveError::lasting(format!("cannot listen on {address}"), why).advised(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_address_is_said_to_need_permission() {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80));
        let error = listen_error(address, &io::ErrorKind::PermissionDenied.into());
        assert_eq!(error.to_string(), "cannot listen on 0.0.0.0:80: permission denied");
    }
}
