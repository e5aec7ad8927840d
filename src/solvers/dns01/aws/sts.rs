//! AWS's token service: temporary keys of a role.

use http::Method;

use super::signature::Keys;
use super::xml::{self, explain};
use super::{Endpoints, signature};
use crate::solvers::SolveError;
use crate::solvers::dns01::api::{Api, ApiRefusal, ApiReply, Connection, Request};
use crate::solvers::dns01::credential::Credential;
use jiff::Timestamp;

/// Name of the sessions in AWS's records, as with cert-manager.
pub(super) const SESSION_NAME: &str = "cert-manager";
const VERSION: &str = "2011-06-15";

/// The token service.
#[derive(Debug)]
pub(super) struct Sts {
    api: Api,
    region: String,
}

impl Sts {
    pub(super) fn new(endpoints: &Endpoints, connection: &Connection) -> Result<Self, SolveError> {
        let api = Api::new(&endpoints.sts, connection, explain)?.confidential();
        Ok(Self { api, region: endpoints.sts_region.clone() })
    }

    /// Assumes a role with these keys.
    pub(super) async fn assume(&self, role: &str, keys: &Keys) -> Result<Keys, SolveError> {
        let fields = [("RoleArn", role), ("RoleSessionName", SESSION_NAME)];
        let sign = |request: &mut Request| {
            signature::sign(request, keys, &self.region, "sts", Timestamp::now());
        };
        let request = self.request("AssumeRole", &fields);
        read(role, self.api.send_signed(request, &sign).await)
    }

    /// Assumes a role with a token of an issuer that AWS trusts.
    pub(super) async fn assume_with_token(
        &self,
        role: &str,
        session: &str,
        token: &Credential,
    ) -> Result<Keys, SolveError> {
        let fields =
            [("RoleArn", role), ("RoleSessionName", session), ("WebIdentityToken", token.expose())];
        read(role, self.api.send(self.request("AssumeRoleWithWebIdentity", &fields)).await)
    }

    fn request(&self, action: &str, fields: &[(&str, &str)]) -> Request {
        let fields = [&[("Action", action), ("Version", VERSION)], fields].concat();
        self.api.request(Method::POST, "/").form(&fields)
    }
}

fn read(role: &str, sent: Result<ApiReply, ApiRefusal>) -> Result<Keys, SolveError> {
    let failed = |refusal: ApiRefusal| {
        let hint = "its trust policy must allow this identity to assume it";
        refusal.into_error(format!("unable to assume role {role}"), hint)
    };
    let reply = sent.map_err(failed)?;
    let read = || {
        let body = std::str::from_utf8(&reply.body).ok()?;
        Some(Keys {
            id: xml::first(body, "AccessKeyId")?,
            secret: Credential::new(&xml::first(body, "SecretAccessKey")?),
            session: Some(Credential::new(&xml::first(body, "SessionToken")?)),
            expires: xml::first(body, "Expiration").and_then(|end| end.parse().ok()),
        })
    };
    read().ok_or_else(|| failed(ApiRefusal::unread("its answer is not the XML that was expected")))
}
