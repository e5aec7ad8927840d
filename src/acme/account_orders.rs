//! The list of an account's orders (RFC 8555 §7.1.2.1), which some CAs keep and Boulder does not.

use serde::Deserialize;

use super::error::AcmeError;
use super::post::Payload;
use super::session::Session;
use crate::http::exchange::Reply;

/// Most orders that are taken of a list.
const MOST: usize = 200;

#[derive(Deserialize)]
struct WithOrders {
    orders: Option<String>,
}

#[derive(Deserialize)]
struct OrderList {
    #[serde(default)]
    orders: Vec<String>,
}

impl Session {
    /// URLs of the orders that the CA lists for the account, the first page of them; none where it keeps no list.
    ///
    /// # Errors
    /// Fails when the account is unknown, or the CA does not answer, or not usefully.
    pub async fn listed_orders(&self) -> Result<Vec<String>, AcmeError> {
        let account = self.account().await?;
        let reply = self.send("account", &account, Payload::Read).await?;
        let Some(list) = read::<WithOrders>(&reply).and_then(|account| account.orders) else {
            return Ok(Vec::new());
        };
        let reply = self.send("orders", &self.absolute(&reply, &list)?, Payload::Read).await?;
        let listed = read::<OrderList>(&reply).map(|list| list.orders).unwrap_or_default();
        listed.iter().take(MOST).map(|url| self.absolute(&reply, url)).collect()
    }
}

/// What cannot be read is no list.
fn read<T: for<'de> Deserialize<'de>>(reply: &Reply) -> Option<T> {
    serde_json::from_slice(&reply.body).ok()
}
