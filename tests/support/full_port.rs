//! A port to which connections hang, as behind a firewall that drops packets.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokio::net::TcpSocket;

/// A port whose queue of connections is full, so that packets of others are dropped; it is so until it goes.
pub struct FullPort {
    /// Its number.
    pub port: u16,
    _queue: Vec<TcpStream>,
    _listener: tokio::net::TcpListener,
}

impl FullPort {
    /// Opens it at an address of this machine, from within a runtime.
    pub fn open(address: &str) -> Self {
        let address: SocketAddr = address.parse().unwrap();
        let socket =
            if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.unwrap();
        socket.bind(address).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queue = Vec::new();
        let short = Duration::from_millis(300);
        while let Ok(taken) = TcpStream::connect_timeout(&address, short) {
            queue.push(taken);
            assert!(queue.len() < 64, "the queue of {address} is never full");
        }
        Self { port: address.port(), _queue: queue, _listener: listener }
    }
}
