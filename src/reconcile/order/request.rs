//! Order: what its CA is asked for.

use std::fmt;

/// A request to the CA about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRequest {
    /// newOrder (RFC 8555 §7.4).
    Create,
    /// The reading of the order.
    Fetch,
    /// The reading of its authorizations (RFC 8555 §7.5).
    FetchAuthorizations,
    /// The signing request.
    Finalize,
    /// The download of the chain (RFC 8555 §7.4.2).
    Download,
}

impl fmt::Display for OrderRequest {
    /// In cert-manager's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create Order",
            Self::Fetch => "retrieve Order resource",
            Self::FetchAuthorizations => "fetch authorization",
            Self::Finalize => "finalize Order",
            Self::Download => "retrieve signed certificate",
        })
    }
}
