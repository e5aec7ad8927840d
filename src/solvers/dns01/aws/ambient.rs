//! Keys from the surroundings of the process, in the order of AWS's own tools: variables, a token
//! in a file, the credentials file, the container, the machine.

use http::header::AUTHORIZATION;
use http::{HeaderName, Method};
use jiff::Timestamp;
use serde::Deserialize;

use super::signature::Keys;
use super::sts::{SESSION_NAME, Sts};
use crate::solvers::SolveError;
use crate::solvers::dns01::api::{Api, ApiRefusal, ApiReply, Connection};
use crate::solvers::dns01::credential::{Ambient, Credential, read_credential, read_file};

/// Server that gives ECS containers their keys.
const CONTAINER_METADATA_URL: &str = "http://169.254.170.2";
/// Server that gives EC2 machines their keys.
const MACHINE_METADATA_URL: &str = "http://169.254.169.254";

/// Keys in the form in which containers and machines get them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    access_key_id: String,
    secret_access_key: String,
    token: String,
    expiration: Timestamp,
}

/// Finds keys, in the first place that has any.
pub(super) async fn keys(
    ambient: &Ambient,
    sts: &Sts,
    connection: &Connection,
) -> Result<Keys, SolveError> {
    if let (Some(id), Some(secret)) =
        (ambient.variable("AWS_ACCESS_KEY_ID"), ambient.variable("AWS_SECRET_ACCESS_KEY"))
    {
        let session = ambient.variable("AWS_SESSION_TOKEN").map(Credential::new);
        return Ok(Keys {
            id: id.to_owned(),
            secret: Credential::new(secret),
            session,
            expires: None,
        });
    }
    if let Some(file) = ambient.variable("AWS_WEB_IDENTITY_TOKEN_FILE") {
        let Some(role) = ambient.variable("AWS_ROLE_ARN") else {
            return Err(nothing("AWS_WEB_IDENTITY_TOKEN_FILE is set, AWS_ROLE_ARN is not"));
        };
        let session = ambient.variable("AWS_ROLE_SESSION_NAME").unwrap_or(SESSION_NAME);
        return sts.assume_with_token(role, session, &read_credential(file).await?).await;
    }
    if let Some(keys) = from_file(ambient).await {
        return Ok(keys);
    }
    if let Some((base, path)) = container(ambient)? {
        return from_container(ambient, &base, &path, connection).await;
    }
    if ambient.variable("AWS_EC2_METADATA_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true"))
    {
        return Err(nothing("there are none, and AWS_EC2_METADATA_DISABLED is set"));
    }
    from_machine(ambient, connection).await
}

fn nothing(why: &str) -> SolveError {
    SolveError::lasting("cannot get ambient AWS credentials", why.to_owned())
}

/// Reads the keys of the profile in the credentials file; `None` if there is no such file or profile.
async fn from_file(ambient: &Ambient) -> Option<Keys> {
    let path = match ambient.variable("AWS_SHARED_CREDENTIALS_FILE") {
        Some(path) => path.to_owned(),
        None => format!("{}/.aws/credentials", ambient.variable("HOME")?),
    };
    let text = read_file(&path).await.ok()?;
    profile(&text, ambient.variable("AWS_PROFILE").unwrap_or("default"))
}

/// Reads `[profile]` with `aws_access_key_id = …` below it.
fn profile(text: &str, name: &str) -> Option<Keys> {
    let header = |line: &str| line.trim().strip_prefix('[').is_some();
    let wanted = |line: &str| line.trim().trim_matches(['[', ']']).trim() == name;
    let lines = text.lines().skip_while(|line| !header(line) || !wanted(line)).skip(1);
    let (mut id, mut secret, mut session) = (None, None, None);
    for line in lines.take_while(|line| !header(line)) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let place = match key.trim() {
            "aws_access_key_id" => &mut id,
            "aws_secret_access_key" => &mut secret,
            "aws_session_token" => &mut session,
            _ => continue,
        };
        *place = Some(Credential::new(value));
    }
    Some(Keys { id: id?.expose().to_owned(), secret: secret?, session, expires: None })
}

/// Returns the server and the path that give this container its keys, if variables name them.
fn container(ambient: &Ambient) -> Result<Option<(String, String)>, SolveError> {
    if let Some(path) = ambient.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        return Ok(Some((CONTAINER_METADATA_URL.to_owned(), path.to_owned())));
    }
    let Some(full) = ambient.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") else {
        return Ok(None);
    };
    let url = url::Url::parse(full).ok();
    // Keys must not be asked for in the clear across a network.
    let url = url.filter(|url| url.scheme() == "https" || Connection::is_near(url));
    let Some(url) = url else {
        return Err(nothing("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor a local URL"));
    };
    let path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    Ok(Some((url[..url::Position::BeforePath].to_owned(), path)))
}

async fn from_container(
    ambient: &Ambient,
    base: &str,
    path: &str,
    connection: &Connection,
) -> Result<Keys, SolveError> {
    let api = Api::new(base, connection, |_| None)?.confidential();
    let token = match ambient.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(read_credential(file).await?),
        None => ambient.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(Credential::new),
    };
    let mut request = api.request(Method::GET, path);
    if let Some(token) = token {
        request = request.secret_header(AUTHORIZATION, token.expose());
    }
    read(api.send(request).await, "the container's credentials")
}

/// Gets keys from version 2 of the metadata service, which requires a token of its own first.
async fn from_machine(ambient: &Ambient, connection: &Connection) -> Result<Keys, SolveError> {
    let base =
        ambient.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or(MACHINE_METADATA_URL);
    let api = Api::new(base, connection, |_| None)?.confidential();
    let life = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
    let request = api.request(Method::PUT, "/latest/api/token").header(life, "21600");
    let token = text(api.send(request).await)?;
    let ask = |path: &str| {
        let name = HeaderName::from_static("x-aws-ec2-metadata-token");
        api.send(api.request(Method::GET, path).secret_header(name, token.expose()))
    };
    let path = "/latest/meta-data/iam/security-credentials/";
    let role = text(ask(path).await)?;
    let role = role.expose().lines().next().unwrap_or_default();
    read(ask(&format!("{path}{role}")).await, "the machine's credentials")
}

fn text(sent: Result<ApiReply, ApiRefusal>) -> Result<Credential, SolveError> {
    let reply = sent.map_err(|refusal| solve_error(refusal, "the machine's credentials"))?;
    Ok(Credential::new(&String::from_utf8_lossy(&reply.body)))
}

fn read(sent: Result<ApiReply, ApiRefusal>, whose: &str) -> Result<Keys, SolveError> {
    let reply = sent.map_err(|refusal| solve_error(refusal, whose))?;
    let given: Given = reply.json().map_err(|refusal| solve_error(refusal, whose))?;
    Ok(Keys {
        id: given.access_key_id,
        secret: Credential::new(&given.secret_access_key),
        session: Some(Credential::new(&given.token)),
        expires: Some(given.expiration),
    })
}

fn solve_error(refusal: ApiRefusal, whose: &str) -> SolveError {
    refusal.into_error(format!("cannot get {whose} from AWS"), "").advised(
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the solver keys in a Secret",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_among_others() {
        let file = "# mine\n[other]\naws_access_key_id=no\naws_secret_access_key=no\n\n[ default ]\n\
            aws_access_key_id = AKID\naws_secret_access_key = a=b \nregion = x\n[last]\naws_access_key_id=no\n";
        let keys = profile(file, "default").unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.expose()), ("AKID", "a=b"));
        assert!(profile(file, "last").is_none() && profile(file, "none").is_none());
    }

    #[test]
    fn keys_are_not_asked_for_in_the_clear_across_a_network() {
        let place = |url: &str| {
            container(&Ambient::from_iter([("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)]))
        };
        assert!(place("http://192.0.2.1/keys").is_err() && place("keys").is_err());
        let pod = place("http://169.254.170.23/v1/credentials?a=b").unwrap().unwrap();
        assert_eq!(pod, ("http://169.254.170.23".to_owned(), "/v1/credentials?a=b".to_owned()));
        assert!(place("https://keys.example/").is_ok());
    }
}
