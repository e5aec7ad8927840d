//! The list of an account's orders (RFC 8555 §7.1.2.1), which some CAs keep and Boulder does not.

use super::error::AcmeError;
use super::post::Payload;
use super::session::Session;
use super::wire;

/// Largest number of orders read from a list.
const LISTED_MAX: usize = 200;

impl Session {
    /// Reads the URLs of the orders that the CA lists for the account, first page only; empty if the CA keeps no list.
    ///
    /// # Errors
    /// Fails if the account is unknown, or the CA gives no usable answer.
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
