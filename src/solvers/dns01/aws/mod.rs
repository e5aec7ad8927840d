//! Authentication at AWS: keys, their sources, and signatures made with the keys.

mod ambient;
mod endpoints;
mod signature;
mod sts;
pub(super) mod xml;

use std::fmt;

use jiff::Timestamp;

pub use self::endpoints::Endpoints;
use self::signature::Keys;
use self::sts::Sts;
use super::api::{Api, ApiRefusal, ApiReply, Connection, Request};
use super::credential::{Ambient, Credential};
use super::memory::{CachePlace, SharedCache};
use crate::solvers::SolveError;

/// Cached keys of the process.
static KEYS: SharedCache<Keys> = SharedCache::new();

/// Initial identity at AWS.
#[derive(Clone, Debug)]
pub enum AwsLogin {
    /// Keys of a user.
    Keys {
        /// Access key.
        id: Credential,
        /// Secret access key.
        secret: Credential,
    },
    /// Surroundings of the process.
    Ambient(Ambient),
    /// A token of a cluster's ServiceAccount; a role must be assumed with it.
    WebIdentity {
        /// Owner of the token, equal for all tokens of one ServiceAccount and audience.
        owner: String,
        /// Token.
        token: Credential,
    },
}

/// Signer of requests to one service, with keys that are fetched when needed, and kept while they are good.
pub(super) struct AwsSigner {
    login: AwsLogin,
    /// Role to assume; no role if empty.
    role: String,
    service: &'static str,
    region: String,
    sts: Sts,
    connection: Connection,
    keys: CachePlace<Keys>,
}

impl AwsSigner {
    /// Prepares for a service in that region, without any request.
    pub(super) fn new(
        login: AwsLogin,
        role: &str,
        service: &'static str,
        endpoints: &Endpoints,
        connection: &Connection,
    ) -> Result<Self, SolveError> {
        let mut owner = vec!["AWS", role, &endpoints.sts];
        match &login {
            AwsLogin::Keys { id, secret } => owner.extend([id.expose(), secret.expose()]),
            AwsLogin::Ambient(ambient) => owner.extend(ambient.parts()),
            AwsLogin::WebIdentity { owner: whose, .. } => owner.push(whose),
        }
        let keys = KEYS.place(owner);
        Ok(Self {
            login,
            role: role.to_owned(),
            service,
            region: endpoints.signing_region.clone(),
            sts: Sts::new(endpoints, connection)?,
            connection: connection.clone(),
            keys,
        })
    }

    /// Returns the keys to sign with now.
    async fn keys(&self) -> Result<Keys, SolveError> {
        let mut kept = self.keys.lock().await;
        if let Some(keys) = kept.as_ref().filter(|keys| keys.are_good_at(Timestamp::now())) {
            return Ok(keys.clone());
        }
        let keys = self.fetch().await?;
        *kept = Some(keys.clone());
        Ok(keys)
    }

    async fn fetch(&self) -> Result<Keys, SolveError> {
        let own = match &self.login {
            AwsLogin::Keys { id, secret } => Keys {
                id: id.expose().to_owned(),
                secret: secret.clone(),
                session: None,
                expires: None,
            },
            AwsLogin::Ambient(ambient) => {
                ambient::keys(ambient, &self.sts, &self.connection).await?
            }
            AwsLogin::WebIdentity { token, .. } => {
                return self.sts.assume_with_token(&self.role, sts::SESSION_NAME, token).await;
            }
        };
        if self.role.is_empty() {
            return Ok(own);
        }
        self.sts.assume(&self.role, &own).await
    }

    /// Signs and sends a request; the caller turns a refusal into an error.
    pub(super) async fn send(
        &self,
        api: &Api,
        request: Request,
        what: &str,
    ) -> Result<Result<ApiReply, ApiRefusal>, SolveError> {
        let keys = self.keys().await.map_err(|error| error.within(what))?;
        let sign = |request: &mut Request| {
            signature::sign(request, &keys, &self.region, self.service, Timestamp::now());
        };
        let sent = api.send_signed(request, &sign).await;
        if matches!(&sent, Err(refusal) if refusal.is_denial() || refusal.code.contains("Expired"))
        {
            // Keys may have been withdrawn before their time; the next try fetches others.
            *self.keys.lock().await = None;
        }
        Ok(sent)
    }
}

impl fmt::Debug for AwsSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({}, {})", self.service, self.region)
    }
}

#[cfg(test)]
mod tests {
    use crate::solvers::dns01::aws::xml::explain;

    #[test]
    fn errors_name_no_moments() {
        for (said, expected) in [
            (
                "Token expired: current date/time 1763683200 must be before the expiration date/time 1763683100",
                "Expired: Token expired",
            ),
            (
                "Signature expired: 20261121T010203Z is now earlier than",
                "Expired: the clock of this machine is wrong",
            ),
            ("No such role.", "Expired: No such role."),
            ("", "Expired"),
        ] {
            let body = format!("<Error><Code>Expired</Code><Message>{said}</Message></Error>");
            assert_eq!(explain(body.as_bytes()).unwrap().message, expected);
        }
    }
}
