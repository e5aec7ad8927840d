//! `--csr`: a signing request of somebody's own in place of names.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::context::blocking::{Interrupted, Left, aside};
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk;
use crate::model::Blob;
use crate::model::quick_order::SignedRequest;
use crate::objects::own_request;
use crate::store::folder::explain;

/// Longest signing request that is read, in bytes: Boulder takes no longer body.
const LIMIT: u64 = 50_000;

/// A signing request as it was given, and the names that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenRequest {
    /// Names and addresses, as it has them.
    pub names: Vec<String>,
    /// What a CertificateRequest says of it.
    pub request: SignedRequest,
}

/// Reads a signing request, PEM or DER; `-` is standard input.
///
/// # Errors
/// Fails when it cannot be read, is not signed by its key, or names nothing that an ACME CA certifies; and when a signal came.
pub async fn read(path: &Path, interrupted: &Interrupted) -> Result<GivenRequest, Failure> {
    let place = format!("--csr {}", path.display());
    let here = path.to_owned();
    let bytes = match aside(interrupted, Duration::ZERO, move || bytes(&here)).await {
        Ok(bytes) => {
            bytes.map_err(|why| Failure::usage(format!("cannot use {place}: {}", explain(&why))))?
        }
        Err(Left::Signal(kind)) => return Err(Failure::interrupted(kind)),
        Err(Left::Panic) => {
            return Err(Failure::new(FailureKind::Unexpected, "reading a file panicked"));
        }
    };
    given(&bytes)
        .map_err(|(why, hint)| Failure::usage(format!("cannot use {place}: {why}")).hint(hint))
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        return disk::read_bytes(io::stdin(), LIMIT);
    }
    disk::read_bytes(File::open(path)?, LIMIT)
}

fn given(bytes: &[u8]) -> Result<GivenRequest, (String, &'static str)> {
    let request = own_request::read(bytes)?;
    Ok(GivenRequest {
        names: request.names.identifiers(),
        request: SignedRequest { pem: Blob(request.to_pem().into_bytes()), usages: request.usages },
    })
}
