//! `--csr`: a signing request of the user's own in place of names.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::context::blocking::{Interrupted, Unfinished, aside};
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk;
use crate::model::Blob;
use crate::model::quick_order::SignedRequest;
use crate::objects::own_request;
use crate::store::folder::explain;

/// Longest signing request that is read, in bytes: Boulder accepts no longer body.
const MAX_CSR_BYTES: u64 = 50_000;

/// Signing request as it was given, and the names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenRequest {
    /// Names and addresses, as the request has them.
    pub names: Vec<String>,
    /// Request for the fields of a CertificateRequest.
    pub request: SignedRequest,
}

/// Reads a signing request, PEM or DER; `-` is standard input.
///
/// # Errors
/// Fails if the request cannot be read, is not signed by its key, or names nothing that an ACME CA certifies; and on a signal.
pub async fn read(path: &Path, interrupted: &Interrupted) -> Result<GivenRequest, Failure> {
    let place = format!("--csr {}", path.display());
    let here = path.to_owned();
    let bytes = match aside(interrupted, Duration::ZERO, move || read_bytes(&here)).await {
        Ok(bytes) => {
            bytes.map_err(|why| Failure::usage(format!("cannot use {place}: {}", explain(&why))))?
        }
        Err(Unfinished::Signal(kind)) => return Err(Failure::interrupted(kind)),
        Err(Unfinished::Panic) => {
            return Err(Failure::new(FailureKind::Unexpected, "reading a file panicked"));
        }
    };
    parse(&bytes)
        .map_err(|(why, hint)| Failure::usage(format!("cannot use {place}: {why}")).hint(hint))
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        return disk::read_bytes(io::stdin(), MAX_CSR_BYTES);
    }
    disk::read_bytes(File::open(path)?, MAX_CSR_BYTES)
}

fn parse(bytes: &[u8]) -> Result<GivenRequest, (String, &'static str)> {
    let request = own_request::read(bytes)?;
    Ok(GivenRequest {
        names: request.names.identifiers(),
        request: SignedRequest { pem: Blob(request.to_pem().into_bytes()), usages: request.usages },
    })
}
