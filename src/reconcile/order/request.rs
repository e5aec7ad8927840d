//! Order: requests to the CA.

use std::fmt;

/// A request to the CA about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRequest {
    /// newOrder (RFC 8555 §7.4).
    Create,
    /// Reading of the order.
    Fetch,
    /// Reading of the order's authorizations (RFC 8555 §7.5).
    FetchAuthorizations,
    /// Submission of the signing request.
    Finalize,
    /// Download of the chain (RFC 8555 §7.4.2).
    Download,
}

impl fmt::Display for OrderRequest {
    /// Writes the request in cert-manager's words.
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
