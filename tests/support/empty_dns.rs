//! A DNS server that knows no name, which programs under test ask in place of that of the machine: no test waits for, or depends
//! on, what others answer.

use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::thread;

/// Where it listens: it answers every question with NXDOMAIN (RFC 1035 §4.1.1), until the test process ends.
pub fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        thread::spawn(move || answer(&socket));
        address
    })
}

fn answer(socket: &UdpSocket) {
    let mut message = [0; 512];
    while let Ok((length, client)) = socket.recv_from(&mut message) {
        // A response with recursion, to the same question, without records.
        message[2] |= 0x80;
        message[3] = 0x80 | 3;
        // Additional records of the question (EDNS) are not answered.
        message[10..12].fill(0);
        let question = 12 + message[12..length].iter().position(|b| *b == 0).unwrap() + 5;
        socket.send_to(&message[..question], client).ok();
    }
}
