//! A loopback address with port 53 before a server that listens elsewhere: BIND takes only addresses that an interface
//! has. It notes what is asked, and can fall silent, or spoil what passes as old servers and load balancers do.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_resolver::proto::rr::RecordType;

use super::{PATIENCE, PORT};

/// How often it looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);

/// How a question came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In one datagram.
    Udp,
    /// Over a connection.
    Tcp,
}

/// One question, or update, that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Absolute name; of an update, its zone.
    pub name: String,
    /// Type; of an update, SOA.
    pub kind: RecordType,
    /// Query or update.
    pub code: OpCode,
    /// How it came.
    pub transport: Transport,
}

/// How answers are spoilt by what stands before a server that is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoilt {
    /// Whoever comes by TCP is hung up on.
    NoTcp,
    /// Questions with EDNS are an error of form.
    NoEdns,
    /// The name in the question comes back in lower case.
    LowerCase,
    /// Questions for that type get that code.
    Coded(RecordType, ResponseCode),
}

#[derive(Debug, Default)]
struct State {
    over: AtomicBool,
    silent: AtomicBool,
    spoilt: Mutex<Option<Spoilt>>,
    asked: Mutex<Vec<Asked>>,
}

/// Passes questions on until it goes.
#[derive(Debug)]
pub(super) struct Relay(Arc<State>);

impl Relay {
    /// Listens on port 53 of the addresses for a server on a port of 127.0.0.1.
    pub(super) fn start(addresses: &[IpAddr], port: u16) -> Self {
        let state = Arc::new(State::default());
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        for address in addresses {
            let fault = |error| format!("cannot listen on {address}, port {PORT}: {error}");
            let udp = UdpSocket::bind((*address, PORT)).map_err(fault).unwrap();
            let tcp = TcpListener::bind((*address, PORT)).map_err(fault).unwrap();
            udp.set_read_timeout(Some(LOOK)).unwrap();
            tcp.set_nonblocking(true).unwrap();
            let (for_udp, for_tcp) = (Arc::clone(&state), Arc::clone(&state));
            thread::spawn(move || serve_udp(&Arc::new(udp), server, &for_udp));
            thread::spawn(move || serve_tcp(&tcp, server, &for_tcp));
        }
        Self(state)
    }

    /// Whether questions are noted and dropped from now on.
    pub(super) fn be_silent(&self, silent: bool) {
        self.0.silent.store(silent, Ordering::Relaxed);
    }

    /// What spoils answers from now on.
    pub(super) fn spoil(&self, spoilt: Option<Spoilt>) {
        *self.0.spoilt.lock().unwrap() = spoilt;
    }

    /// What was asked so far, in order.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.0.asked.lock().unwrap().clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

impl State {
    /// Notes a question; says whether to pass it on.
    fn passes(&self, packet: &[u8], transport: Transport) -> bool {
        if let Ok(message) = Message::from_vec(packet)
            && let Some(query) = message.queries.first()
        {
            self.asked.lock().unwrap().push(Asked {
                name: query.name().to_string(),
                kind: query.query_type(),
                code: message.metadata.op_code,
                transport,
            });
        }
        !self.silent.load(Ordering::Relaxed)
    }

    fn spoilt(&self) -> Option<Spoilt> {
        *self.spoilt.lock().unwrap()
    }

    /// What is said in the server's place, if anything is.
    fn spoils(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let question = Message::from_vec(packet).ok()?;
        let code = match self.spoilt()? {
            Spoilt::NoEdns => question.edns.is_some().then_some(ResponseCode::FormErr)?,
            Spoilt::Coded(kind, code) => {
                (question.queries.first()?.query_type() == kind).then_some(code)?
            }
            Spoilt::NoTcp | Spoilt::LowerCase => return None,
        };
        let mut answer = Message::new(question.metadata.id, MessageType::Response, OpCode::Query);
        answer.metadata.response_code = code;
        answer.metadata.authoritative = true;
        answer.metadata.recursion_desired = question.metadata.recursion_desired;
        for query in question.queries {
            answer.add_query(query);
        }
        answer.to_vec().ok()
    }

    /// The question as the server is asked it: it gives the name back as it was asked.
    fn passed(&self, packet: &[u8]) -> Vec<u8> {
        if self.spoilt() != Some(Spoilt::LowerCase) {
            return packet.to_vec();
        }
        let mut question = Message::from_vec(packet).unwrap();
        for query in &mut question.queries {
            let name = query.name().to_lowercase();
            query.set_name(name);
        }
        question.to_vec().unwrap()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

fn serve_udp(socket: &Arc<UdpSocket>, server: SocketAddr, state: &Arc<State>) {
    let mut packet = [0; 4096];
    while !state.is_over() {
        let Ok((length, from)) = socket.recv_from(&mut packet) else { continue };
        let question = packet[..length].to_vec();
        if state.passes(&question, Transport::Udp) {
            if let Some(answer) = state.spoils(&question) {
                socket.send_to(&answer, from).ok();
                continue;
            }
            let (socket, question) = (Arc::clone(socket), state.passed(&question));
            thread::spawn(move || answer_udp(&socket, from, &question, server));
        }
    }
}

fn answer_udp(
    socket: &UdpSocket,
    from: SocketAddr,
    question: &[u8],
    server: SocketAddr,
) -> io::Result<()> {
    let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    back.connect(server)?;
    back.set_read_timeout(Some(PATIENCE))?;
    back.send(question)?;
    let mut packet = vec![0; 65_535];
    let length = back.recv(&mut packet)?;
    socket.send_to(&packet[..length], from).map(drop)
}

fn serve_tcp(listener: &TcpListener, server: SocketAddr, state: &Arc<State>) {
    while !state.is_over() {
        match listener.accept() {
            Ok(_) if state.spoilt() == Some(Spoilt::NoTcp) => {}
            Ok((client, _)) => {
                let state = Arc::clone(state);
                thread::spawn(move || pass_stream(client, server, &state));
            }
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Passes whole questions there, and back whatever comes.
fn pass_stream(mut client: TcpStream, server: SocketAddr, state: &State) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let mut there = TcpStream::connect(server)?;
    let (mut back, mut to_client) = (there.try_clone()?, client.try_clone()?);
    let mut spoilt_to = client.try_clone()?;
    thread::spawn(move || {
        io::copy(&mut back, &mut to_client).ok();
        to_client.shutdown(Shutdown::Both).ok();
    });
    let mut length = [0; 2];
    while client.read_exact(&mut length).is_ok() {
        let mut question = vec![0; u16::from_be_bytes(length).into()];
        client.read_exact(&mut question)?;
        if !state.passes(&question, Transport::Tcp) {
            continue;
        }
        if let Some(answer) = state.spoils(&question) {
            let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
            spoilt_to.write_all(&[&length[..], &answer].concat())?;
        } else {
            let question = state.passed(&question);
            let length = u16::try_from(question.len()).unwrap().to_be_bytes();
            there.write_all(&[&length[..], &question].concat())?;
        }
    }
    there.shutdown(Shutdown::Write)
}
