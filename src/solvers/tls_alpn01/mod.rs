//! TLS-ALPN-01: a certificate that only the CA asks for, in a TLS handshake on port 443 (RFC 8737).

mod listener;

use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::sync::OnceCell;

pub use self::listener::Listener;
use super::remedy::Remedy;
use super::{SolveError, Solver, sockets};
use crate::model::{Answer, Challenge};

/// Port that the CA connects to.
const PORT: u16 = 443;

/// Answers TLS-ALPN-01 on sockets that are opened with the first answer, or before.
#[derive(Debug)]
pub struct TlsAlpn01 {
    addresses: Vec<SocketAddr>,
    listener: OnceCell<Listener>,
}

impl TlsAlpn01 {
    /// Answers on these addresses; without any, on port 443 of all addresses of this machine. Nothing listens yet.
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, listener: OnceCell::new() }
    }

    /// Begins to listen, unless the sockets are open already.
    ///
    /// # Errors
    /// Fails if the port is not permitted or taken; the error names a remedy.
    pub async fn open(&self) -> Result<&Listener, SolveError> {
        let open = async {
            let sockets = match &self.addresses[..] {
                [] => sockets::everywhere(PORT).await,
                addresses => sockets::at(addresses).await,
            };
            Listener::serve(sockets.map_err(|error| error.advised(Remedy::TlsPort))?)
        };
        self.listener.get_or_try_init(|| open).await
    }
}

#[async_trait]
impl Solver for TlsAlpn01 {
    async fn present(&self, _: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        self.open().await?.put(answer)
    }

    async fn clean_up(&self, _: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        if let Some(listener) = self.listener.get() {
            listener.retire(answer);
        }
        Ok(())
    }

    fn listens_at(&self) -> Vec<SocketAddr> {
        let addresses = self.listener.get().map(Listener::addresses).unwrap_or_default();
        sockets::chosen(addresses, PORT)
    }

    fn stands(&self, _: &Challenge, answer: &Answer) -> bool {
        self.listener.get().is_some_and(|listener| listener.stands(answer))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::net::TcpListener;

    use super::*;
    use crate::solvers::testing::{answer, challenge};

    #[tokio::test]
    async fn a_taken_port_is_told_when_the_first_answer_is_put_up() {
        let free = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let holder = TcpListener::bind(free).await.unwrap();
        let taken = holder.local_addr().unwrap();
        let solver = TlsAlpn01::new(vec![taken]);
        let error = solver.present(&challenge(), &answer("one")).await.unwrap_err();
        assert!(error.needs_person);
        assert_eq!(
            error.to_string(),
            format!("cannot listen on {taken}: another program listens there")
        );
        assert!(matches!(error.remedy.as_deref(), Some(Remedy::TlsPort)));
        drop(holder);
        solver.present(&challenge(), &answer("one")).await.expect("the next try succeeds");
    }
}
