//! ACME account of an issuer: the account of the key in the Secret, and orders without an Order object. A key is looked
//! up (`onlyReturnExisting`, RFC 8555 §7.3.1; creates nothing) only if it differs from the registered key.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;

use super::investigator::Investigator;
use crate::acme::{AccountKey, Acme as _, OrderReply, Registration, Session};
use crate::controllers::accounts::{account_key, tls_of};
use crate::diagnosis::case::authority::{AccountCase, AuthorityOrder};
use crate::diagnosis::case::issuer::IssuerCase;
use crate::model::issuer::AcmeIssuer;
use crate::model::{Key, Kind, ObjectName, Order, Secret};
use crate::store::Scope;
use crate::store::resources::Resources;

/// Largest number of orders of one account that are read.
const MAX_ORDERS: usize = 20;

impl Investigator {
    /// Reads the account of an issuer at its CA; `None` if no account was registered or its key cannot be read.
    pub(super) async fn account(
        &self,
        of: &IssuerCase,
        asked: &BTreeSet<Key>,
    ) -> Option<AccountCase> {
        let issuer = of.issuer.as_ref()?;
        let acme = issuer.spec.acme.as_ref()?;
        let status = issuer.status.acme.as_ref().filter(|status| !status.uri.is_empty())?;
        let key = self.account_key(acme, issuer.secret_namespace(&self.cluster_resource_namespace));
        let key = key.await?;
        let is_another =
            !status.last_private_key_hash.is_empty() && status.last_private_key_hash != key.hash();
        let known = (!is_another).then(|| status.uri.clone());
        let session = self.clients.session(&acme.server, &tls_of(acme), key, known).ok()?;
        let existing = Registration { only_return_existing: true, ..Registration::default() };
        let of_key = async {
            if !is_another {
                return None;
            }
            let found = self.outside(session.register(&existing)).await;
            found.ok()?.ok().map(|account| account.url)
        };
        let left = async {
            // The list costs one request for each order.
            if is_another || !asked.contains(&of.key) {
                return Vec::new();
            }
            Box::pin(self.left_orders(&session)).await.unwrap_or_default()
        };
        let (of_key, left_orders) = tokio::join!(of_key, left);
        let recorded = status.uri.clone();
        Some(AccountCase { at: self.now, recorded, of_key, left_orders })
    }

    async fn account_key(&self, acme: &AcmeIssuer, namespace: &str) -> Option<AccountKey> {
        let name = ObjectName::new(namespace, &acme.private_key_secret_ref.name);
        let secrets = Resources::<Secret>::new(Arc::clone(self.store.as_ref()?), Kind::Secret);
        // A Secret that may not be read is reported with the issuer.
        let secret = secrets.get(&name).await.ok().flatten()?;
        account_key(acme, &secret).ok()
    }

    /// Reads the pending orders of the account that no Order of the store stands for.
    async fn left_orders(&self, session: &Session) -> Option<Vec<AuthorityOrder>> {
        let listed = self.outside(Box::pin(session.listed_orders())).await.ok()?.ok()?;
        let orders = Resources::<Order>::new(Arc::clone(self.store.as_ref()?), Kind::Order);
        // If only a part of the Orders can be read, an order may belong to one of the others.
        let all = orders.list(&Scope::all().brief()).await.ok()?;
        let known: BTreeSet<&str> = all.iter().map(|order| order.status.url.as_str()).collect();
        let left = listed.iter().filter(|url| !known.contains(url.as_str())).take(MAX_ORDERS);
        let read = left.map(|url| async move {
            let reply = self.outside(session.order(url)).await.ok()?.ok()?;
            let OrderReply { status, expires, error: problem, .. } = reply;
            Some(AuthorityOrder { url: url.clone(), status, expires, problem, at: self.now })
        });
        let read = join_all(read).await;
        Some(read.into_iter().flatten().filter(|held| held.status == "pending").collect())
    }
}
