//! Rehearsals: the same manifests, names and solvers against a CA of our own; nothing is spent, nothing is kept.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use serde_json::{Value, json};

use super::drive::DriveArgs;
use super::failure::{Failure, Kind as FailureKind};
use crate::ca::{self, Config, Server};
use crate::fetch::Fetcher;
use crate::model::{Blob, Kind, Record};
use crate::solvers::Solver;
use crate::solvers::http01::listener::Listener;

/// What names lead to in a rehearsal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Rehearse {
    /// Every name leads to our own listener on a free port: no DNS, no root
    Loopback,
    /// Names and ports are those of the real thing
    Real,
}

/// A CA of our own with the means to answer and to look at challenges.
#[derive(Debug)]
pub struct Rehearsal {
    /// The CA.
    pub server: Server,
    /// What answers HTTP-01.
    pub http01: Arc<dyn Solver>,
    /// What self-check and CA look with.
    pub fetcher: Fetcher,
}

impl Rehearsal {
    /// Starts the CA.
    ///
    /// # Errors
    /// Fails when a port is not permitted or taken.
    pub async fn start(how: Rehearse, args: &DriveArgs) -> Result<Self, Failure> {
        let mut fetcher = args.fetcher().await?;
        let http01 = match how {
            Rehearse::Real => args.http01(None).await?,
            Rehearse::Loopback => {
                let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let listener = Listener::bind(&[free])
                    .await
                    .map_err(|why| Failure::new(FailureKind::Solver, why.to_string()))?;
                let port = listener.addresses().first().map(SocketAddr::port);
                let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
                fetcher.overrides.hosts.insert("*".to_owned(), (loopback, port));
                Arc::new(listener)
            }
        };
        let server =
            ca::serve(Config::default(), Arc::new(fetcher.clone())).await.map_err(|why| {
                Failure::new(
                    FailureKind::Unexpected,
                    format!("cannot start the rehearsal CA: {why}"),
                )
            })?;
        Ok(Self { server, http01, fetcher })
    }

    /// Points an Issuer to the rehearsal CA; other objects stay as they are.
    pub fn redirect(&self, record: &mut Record) {
        if !matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer) {
            return;
        }
        let Some(Value::Object(acme)) = record.object.pointer_mut("/spec/acme") else { return };
        acme.insert("server".to_owned(), self.server.directory_url().into());
        let roots = Blob(self.server.tls_root_pem().as_bytes().to_vec());
        acme.insert("caBundle".to_owned(), json!(roots));
        // What concerns the real CA only: trust, binding, its chains and its profiles.
        for field in ["skipTLSVerify", "externalAccountBinding", "preferredChain", "profile"] {
            acme.remove(field);
        }
    }
}
