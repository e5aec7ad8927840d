//! Orders one certificate with rustls-acme, which answers TLS-ALPN-01: rustls DIRECTORY ROOT WEBROOT NAME...

use std::{env, error::Error, sync::Arc};

use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use rustls_acme::{AcmeConfig, EventOk, caches::DirCache};
use tokio_rustls::LazyConfigAcceptor;
use tokio_stream::StreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [directory, root, _, names @ ..] = words.as_slice() else {
        return Err("words are missing".into());
    };
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| "there is a provider already")?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(root)?)?;
    let trust = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let mut state = AcmeConfig::new_with_client_config(names, Arc::new(trust))
        .directory(directory)
        .cache(DirCache::new("certificates"))
        .state();
    let answers = state.challenge_rustls_config();
    let listener = tokio::net::TcpListener::bind((names[0].as_str(), 443)).await?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answers = answers.clone();
            tokio::spawn(async move {
                let asked =
                    LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await;
                if let Ok(asked) = asked {
                    asked.into_stream(answers).await.ok();
                }
            });
        }
    });
    while let Some(event) = state.next().await {
        match event {
            Ok(EventOk::CertCacheStore) => return Ok(()),
            Ok(event) => eprintln!("{event:?}"),
            // It begins again by itself.
            Err(error) => eprintln!("{error:?}"),
        }
    }
    Err("it gave up".into())
}
