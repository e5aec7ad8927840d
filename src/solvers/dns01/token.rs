//! Bearer tokens of OAuth 2.0 (RFC 6749 §5.1): fetched when they are needed, kept while they are good.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::api::{ApiRefusal, ApiReply, Explanation};
use super::credential::Credential;
use super::memory::{CachePlace, SharedCache};
use super::text::one_line;
use crate::solvers::SolveError;

/// Time before its end at which a token is given up.
const EXPIRY_MARGIN: SignedDuration = SignedDuration::from_mins(5);

/// Token, with its end.
pub(super) struct Token {
    text: Credential,
    end: Timestamp,
}

/// Cached tokens of the process.
static TOKENS: SharedCache<Token> = SharedCache::new();

/// Place of one token in the cache.
pub(super) struct TokenPlace(CachePlace<Token>);

impl Token {
    /// Creates a token that ends at `end`.
    pub(super) fn new(text: Credential, end: Timestamp) -> Self {
        Self { text, end }
    }

    /// Returns the text of the token.
    pub(super) fn text(&self) -> &Credential {
        &self.text
    }

    /// Reads `{"access_token": "…", "expires_in": 3599}`; some servers write the number as text, others the moment as `expires_on`,
    /// in seconds since 1970.
    pub(super) fn read(reply: &ApiReply) -> Result<Self, ApiRefusal> {
        #[derive(Deserialize)]
        struct Granted {
            access_token: String,
            #[serde(default)]
            expires_in: Value,
            #[serde(default)]
            expires_on: Value,
        }
        let Granted { access_token, expires_in, expires_on } = reply.json()?;
        let now = Timestamp::now();
        let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
        let until = || Some(number(&expires_on)?.saturating_sub(now.as_second()));
        let seconds: i64 = number(&expires_in).or_else(until).unwrap_or_default();
        let life = SignedDuration::from_secs(seconds.clamp(0, 86_400));
        Ok(Self { text: Credential::new(&access_token), end: now + life })
    }
}

impl TokenPlace {
    /// Returns the place that belongs to these texts: the server and the credentials.
    pub(super) fn of<'a>(owner: impl IntoIterator<Item = &'a str>) -> Self {
        Self(TOKENS.place(owner))
    }

    /// Returns the cached token while it is good, else a token from `fetch`.
    pub(super) async fn token(
        &self,
        fetch: impl Future<Output = Result<Token, SolveError>> + Send,
    ) -> Result<Credential, SolveError> {
        let mut kept = self.0.lock().await;
        let is_good = |token: &&Token| token.end.duration_since(Timestamp::now()) > EXPIRY_MARGIN;
        if let Some(token) = kept.as_ref().filter(is_good) {
            return Ok(token.text.clone());
        }
        let token = fetch.await?;
        let text = token.text.clone();
        *kept = Some(token);
        Ok(text)
    }

    /// Forgets the token, which may have been withdrawn.
    pub(super) async fn clear(&self) {
        *self.0.lock().await = None;
    }
}

impl fmt::Debug for TokenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenPlace(..)")
    }
}

/// Reads `{"error": "invalid_client", "error_description": "…"}` (RFC 6749 §5.2), as token services write it.
pub(super) fn explain(body: &[u8]) -> Option<Explanation> {
    #[derive(Deserialize)]
    struct Body {
        error: String,
        #[serde(default)]
        error_description: String,
    }
    let Body { error, error_description } = serde_json::from_slice(body).ok()?;
    // The rest of Microsoft's answers differs each time.
    let description = one_line(&error_description);
    let cut = |text: &str, before| text.split(before).next().unwrap_or_default().to_owned();
    let description = cut(&cut(&description, " Trace ID:"), " Current time:");
    let message =
        if description.is_empty() { error.clone() } else { format!("{error}: {description}") };
    Some(Explanation { code: error, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_token_services_are_cut_before_what_differs_each_time() {
        let body = br#"{"error": "invalid_client", "error_description":
            "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1\r\nTimestamp: 2026-11-21"}"#;
        assert_eq!(
            explain(body).unwrap().message,
            "invalid_client: AADSTS7000215: Invalid client secret provided."
        );
        let body = br#"{"error": "invalid_client", "error_description":
            "AADSTS700024: Client assertion is not within its valid time range. Current time: 2026-11-21T01:02:03Z, ..."}"#;
        assert_eq!(
            explain(body).unwrap().message,
            "invalid_client: AADSTS700024: Client assertion is not within its valid time range."
        );
        assert_eq!(explain(br#"{"error": "invalid_grant"}"#).unwrap().message, "invalid_grant");
    }

    #[tokio::test]
    async fn a_token_is_fetched_once_while_it_is_good() {
        let reply = |seconds: &str| ApiReply {
            body: format!(r#"{{"access_token": "t{seconds}", "expires_in": "{seconds}"}}"#)
                .into_bytes(),
        };
        let place = TokenPlace::of(["a test of tokens"]);
        for (seconds, expected) in
            [("60", "t60"), ("3600", "t3600"), ("7200", "t3600"), ("7201", "t3600")]
        {
            let token = place.token(async { Ok(Token::read(&reply(seconds)).unwrap()) }).await;
            assert_eq!(token.unwrap().expose(), expected, "the first is too short-lived to keep");
        }
        place.clear().await;
        let token = place.token(async { Ok(Token::read(&reply("7200")).unwrap()) }).await;
        assert_eq!(token.unwrap().expose(), "t7200");
    }
}
