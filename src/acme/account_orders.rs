//! The list of an account's orders (RFC 8555 §7.1.2.1), which some CAs keep and Boulder does not.

use super::error::AcmeError;
use super::post::Payload;
use super::session::Session;
use super::wire;

/// Most orders that are taken of a list.
const LISTED_MAX: usize = 200;

impl Session {
    /// URLs of the orders that the CA lists for the account, the first page of them; none where it keeps no list.
    ///
    /// # Errors
    /// Fails when the account is unknown, or the CA does not answer, or not usefully.
    pub async fn listed_orders(&self) -> Result<Vec<String>, AcmeError> {
        let account = self.account().await?;
        let reply = self.send("account", &account, Payload::Read).await?;
        let list = wire::account(&reply.body).ok().and_then(|account| account.orders);
        let Some(list) = list else { return Ok(Vec::new()) };
        let reply = self.send("orders", &self.absolute(&reply, &list)?, Payload::Read).await?;
        let listed = wire::orders(&reply.body).unwrap_or_default();
        listed.iter().take(LISTED_MAX).map(|url| self.absolute(&reply, url)).collect()
    }
}
