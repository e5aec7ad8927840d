//! One small blocking HTTP/1.0 exchange, for management interfaces; works inside and outside of async tests.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Returns the body of `https://localhost:PORT/PATH`, trusting only the given CA.
pub fn get_tls(port: u16, path: &str, ca_pem: &str) -> io::Result<String> {
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\nUser-Agent: kubectl-acme-tests\r\n\r\n"
    );
    exchange_tls(port, ca_pem, &request)
}

/// Posts JSON to `https://localhost:PORT/PATH`, trusting only the given CA, and returns the body.
pub fn post_tls(
    port: u16,
    path: &str,
    json: &serde_json::Value,
    ca_pem: &str,
) -> io::Result<String> {
    let body = json.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.0\r\nHost: localhost:{port}\r\nUser-Agent: kubectl-acme-tests\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    exchange_tls(port, ca_pem, &request)
}

fn exchange_tls(port: u16, ca_pem: &str, request: &str) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes()).map_err(io::Error::other)?;
    roots.add(ca).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().map_err(io::Error::other)?;
    let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    exchange(StreamOwned::new(tls, connect(port)?), request)
}

/// Returns the body of `http://HOST/PATH` as the server at a loopback port gives it.
pub fn get(port: u16, host: &str, path: &str) -> io::Result<String> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    exchange(connect(port)?, &request)
}

/// Posts JSON to `http://127.0.0.1:PORT/PATH` and returns the body.
pub fn post(port: u16, path: &str, json: &serde_json::Value) -> io::Result<String> {
    let body = json.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    exchange(connect(port)?, &request)
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| io::Error::other("an answer without a head"))?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        return Err(io::Error::other(format!("{status}: {}", body.trim())));
    }
    Ok(body.to_owned())
}
