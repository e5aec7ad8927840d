use std::sync::Arc;

use super::super::route53::{AwsLogin, Endpoints, Route53, Route53Settings};
use super::super::{Ambient, Connection, Credential, Provider as _};
use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, OwnZone, keeps_the_contract, record, zones};
use crate::dns::FindZone;
use crate::solvers::SolveError;

/// Three public hosted zones, two of them of one name, and a private one; every text is a record set of its own. Also the token and metadata services.
struct Account {
    values: Vec<String>,
    status: &'static str,
}

/// One element's text.
fn inside<'a>(xml: &'a str, name: &str) -> &'a str {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    xml.split_once(&open).and_then(|(_, rest)| rest.split_once(&close)).map_or("", |(text, _)| text)
}

fn fault(status: u16, code: &str, message: &str) -> Told {
    let body = "<?xml version=\"1.0\"?>\n<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type>";
    let rest = "</Error><RequestId>never twice</RequestId></ErrorResponse>";
    Told::new(status, format!("{body}<Code>{code}</Code><Message>{message}</Message>{rest}"))
}

fn keys(action: &str) -> Told {
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let keys = "<AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>temporary</SecretAccessKey>\
        <SessionToken>session</SessionToken>";
    let end = format!("<Expiration>{end}</Expiration>");
    let result = format!("<{action}Result><Credentials>{keys}{end}</Credentials></{action}Result>");
    Told::new(200, format!("<{action}Response>{result}</{action}Response>"))
}

fn json_keys() -> String {
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    format!(
        r#"{{"Code": "Success", "AccessKeyId": "ASIA", "SecretAccessKey": "s", "Token": "session", "Expiration": "{end}"}}"#
    )
}

impl Fake for Account {
    fn answer(&mut self, request: &Seen) -> Told {
        let method = request.method.as_str();
        match (method, request.uri.path()) {
            ("POST", "/") => keys(&request.parameter("Action").unwrap()),
            ("PUT", "/latest/api/token") => Told::new(200, "imds-token"),
            ("GET", "/latest/meta-data/iam/security-credentials/") => Told::new(200, "node-role"),
            ("GET", "/latest/meta-data/iam/security-credentials/node-role" | "/v1/credentials") => {
                Told::new(200, json_keys())
            }
            ("GET", "/2013-04-01/hostedzonesbyname") => {
                let zone = |name: &str, id: &str, private: bool| {
                    format!(
                        "<HostedZone><Id>/hostedzone/{id}</Id><Name>{name}</Name><Config>\
                        <PrivateZone>{private}</PrivateZone></Config></HostedZone>"
                    )
                };
                let zones = [
                    zone("example.com.", "ZPRIVATE", true),
                    zone("example.com.", "Z1", false),
                    zone("example.com.", "ZOLD", false),
                    zone("example.net.", "Z2", false),
                    zone("_acme-challenge.example.org.", "Z1", false),
                ];
                Told::new(200, format!("<R><HostedZones>{}</HostedZones></R>", zones.concat()))
            }
            ("GET", path @ ("/2013-04-01/hostedzone/Z1" | "/2013-04-01/hostedzone/ZOLD")) => {
                let server =
                    if path.ends_with("/Z1") { "ns-1.awsdns-1.com" } else { "NS-2.awsdns-2.org" };
                let servers =
                    format!("<NameServers><NameServer>{server}</NameServer></NameServers>");
                Told::new(200, format!("<R><DelegationSet>{servers}</DelegationSet></R>"))
            }
            ("GET", "/2013-04-01/hostedzone/Z1/rrset") => Told::new(200, "<R></R>"),
            ("POST", "/2013-04-01/hostedzone/Z1/rrset") => {
                let text = inside(&request.body, "Value").replace("&quot;", "");
                let is_there = self.values.contains(&text);
                match inside(&request.body, "Action") {
                    "UPSERT" if !is_there => self.values.push(text),
                    "DELETE" if !is_there => {
                        return fault(400, "InvalidChangeBatch", "but it was not found");
                    }
                    "DELETE" => self.values.retain(|value| *value != text),
                    _ => {}
                }
                let change = "<Id>/change/C1</Id><Status>PENDING</Status>";
                Told::new(200, format!("<R><ChangeInfo>{change}</ChangeInfo></R>"))
            }
            ("GET", "/2013-04-01/change/C1") => {
                let status = self.status;
                Told::new(200, format!("<R><ChangeInfo><Status>{status}</Status></ChangeInfo></R>"))
            }
            _ => fault(404, "NoSuchHostedZone", "No hosted zone found with ID: Z9"),
        }
    }

    fn values(&self, _: &str) -> Vec<String> {
        self.values.clone()
    }
}

fn user() -> AwsLogin {
    AwsLogin::Keys { id: Credential::new(" AKID\n"), secret: Credential::new("secret\n") }
}

async fn stub() -> Stub<Account> {
    Stub::serve(Account { values: vec!["theirs".to_owned()], status: "PENDING" }).await
}

fn provider(
    stub: &Stub<Account>,
    login: AwsLogin,
    role: &str,
    id: &str,
) -> Result<Route53, SolveError> {
    in_zones(stub, login, role, id, zones())
}

fn in_zones(
    stub: &Stub<Account>,
    login: AwsLogin,
    role: &str,
    id: &str,
    zones: Arc<dyn FindZone>,
) -> Result<Route53, SolveError> {
    let endpoints = Endpoints {
        route53: stub.url.clone(),
        sts: stub.url.clone(),
        ..Endpoints::new("eu-central-1", None).unwrap()
    };
    let settings =
        Route53Settings { login, role: role.to_owned(), hosted_zone_id: id.to_owned(), endpoints };
    Route53::new(settings, zones, &Connection::hasty())
}

fn ambient(stub: &Stub<Account>, variables: &[(&str, &str)]) -> AwsLogin {
    let none = ("AWS_SHARED_CREDENTIALS_FILE", "/nowhere");
    let metadata = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", stub.url.as_str());
    AwsLogin::Ambient([none, metadata].iter().chain(variables).copied().collect::<Ambient>())
}

/// The access key and the session's token of a signed request.
fn signed_by(request: &Seen) -> (&str, &str) {
    let credential = request.header("authorization").split_once("Credential=").unwrap().1;
    (credential.split_once('/').unwrap().0, request.header("x-amz-security-token"))
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let stub = stub().await;
    keeps_the_contract(&provider(&stub, user(), "", "").unwrap(), &stub).await;
}

#[tokio::test]
async fn the_requests_are_those_of_cert_manager() {
    let stub = stub().await;
    let provider = provider(&stub, user(), "", "").unwrap();
    provider.add(&record("one")).await.unwrap();
    let seen = stub.seen();
    let lines: Vec<_> = seen.iter().map(Seen::line).collect();
    let wanted = [
        "GET /2013-04-01/hostedzonesbyname?dnsname=example.com",
        "POST /2013-04-01/hostedzone/Z1/rrset",
    ];
    assert_eq!(lines, wanted);
    assert_eq!(
        seen[1].body,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ChangeResourceRecordSetsRequest \
        xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch><Comment>Managed by cert-manager</Comment>\
        <Changes><Change><Action>UPSERT</Action><ResourceRecordSet><Name>_acme-challenge.www.example.com.</Name>\
        <Type>TXT</Type><SetIdentifier>&quot;one&quot;</SetIdentifier><MultiValueAnswer>true</MultiValueAnswer>\
        <TTL>10</TTL><ResourceRecords><ResourceRecord><Value>&quot;one&quot;</Value></ResourceRecord>\
        </ResourceRecords></ResourceRecordSet></Change></Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
    );
    for request in seen {
        let scope = "/us-east-1/route53/aws4_request, SignedHeaders=";
        assert!(request.header("authorization").starts_with("AWS4-HMAC-SHA256 Credential=AKID/"));
        assert!(request.header("authorization").contains(scope));
    }
}

#[tokio::test]
async fn zones_of_one_name_are_told_with_their_servers() {
    let stub = stub().await;
    let provider = provider(&stub, user(), "", "").unwrap();
    let zones = provider.zones_of_name(NAME).await.unwrap();
    let zones = zones.iter().map(|zone| {
        (zone.id.as_str(), zone.is_private, zone.is_written, zone.name_servers.concat())
    });
    let expected = [
        ("ZPRIVATE", true, false, String::new()),
        ("Z1", false, true, "ns-1.awsdns-1.com.".to_owned()),
        ("ZOLD", false, false, "ns-2.awsdns-2.org.".to_owned()),
    ];
    assert_eq!(zones.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_given_zone_is_not_looked_for() {
    let stub = stub().await;
    let provider = provider(&stub, user(), "", "/hostedzone/Z1").unwrap();
    provider.add(&record("one")).await.unwrap();
    provider.check(NAME).await.unwrap();
    let set = "/2013-04-01/hostedzone/Z1/rrset";
    let list = format!("GET {set}?name=_acme-challenge.www.example.com.&type=TXT&maxitems=1");
    assert_eq!(stub.lines(), [format!("POST {set}"), list]);
}

#[tokio::test]
async fn a_change_is_followed_until_it_is_everywhere() {
    let stub = stub().await;
    let earlier = provider(&stub, user(), "", "Z1").unwrap();
    assert!(earlier.is_everywhere(&record("one")).await.unwrap(), "nothing is known of it");
    earlier.add(&record("one")).await.unwrap();
    let provider = provider(&stub, user(), "", "Z1").unwrap();
    assert!(!provider.is_everywhere(&record("one")).await.unwrap(), "one built later knows, too");
    assert!(provider.is_everywhere(&record("two")).await.unwrap());
    stub.change(|account| account.status = "INSYNC");
    assert!(provider.is_everywhere(&record("one")).await.unwrap());
    stub.lines();
    assert!(provider.is_everywhere(&record("one")).await.unwrap());
    assert_eq!(stub.lines().len(), 0, "it is not asked again");
}

#[tokio::test]
async fn a_role_is_assumed_once_and_signed_with() {
    let stub = stub().await;
    let provider = provider(&stub, user(), "arn:aws:iam::1:role/dns", "Z1").unwrap();
    provider.add(&record("one")).await.unwrap();
    provider.remove(&record("one")).await.unwrap();
    let seen = stub.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(
        seen[0].body,
        "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fdns&RoleSessionName=cert-manager"
    );
    assert!(seen[0].header("authorization").contains("/eu-central-1/sts/aws4_request"));
    assert_eq!(signed_by(&seen[0]), ("AKID", ""));
    assert_eq!(signed_by(&seen[1]), ("ASIA", "session"));
    assert_eq!(signed_by(&seen[2]), ("ASIA", "session"));
}

#[tokio::test]
async fn keys_that_were_withdrawn_are_fetched_anew() {
    let stub = stub().await;
    let provider = provider(&stub, user(), "arn:aws:iam::1:role/dns", "Z1").unwrap();
    stub.script([keys("AssumeRole"), fault(403, "ExpiredToken", "The security token has expired")]);
    provider.add(&record("one")).await.unwrap_err();
    provider.add(&record("one")).await.unwrap();
    let assumed = stub.lines().iter().filter(|line| *line == "POST /").count();
    assert_eq!(assumed, 2);
}

#[tokio::test]
async fn a_service_account_assumes_its_role_without_a_signature() {
    let stub = stub().await;
    let login =
        AwsLogin::WebIdentity { owner: "web/dns".to_owned(), token: Credential::new("jwt") };
    let error = provider(&stub, login.clone(), "", "Z1").unwrap_err().to_string();
    assert_eq!(
        error,
        "unable to construct route53 provider: role must be set when web identity token is set"
    );
    let provider = provider(&stub, login, "role", "Z1").unwrap();
    provider.check(NAME).await.unwrap();
    let seen = stub.seen();
    assert_eq!(
        seen[0].body,
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=role&RoleSessionName=cert-manager&WebIdentityToken=jwt"
    );
    assert_eq!(seen[0].header("authorization"), "");
    assert_eq!(signed_by(&seen[1]), ("ASIA", "session"));
}

/// Variables, the access key that comes of them, and the requests that fetch it.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

#[tokio::test]
async fn ambient_credentials_are_found_where_the_clouds_put_them() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let token = file("token", "jwt\n");
    let profile = file("credentials", "[work]\naws_access_key_id=AFILE\naws_secret_access_key=s\n");
    let stub = stub().await;
    let full = format!("{}/v1/credentials", stub.url);
    let cases: [Case<'_>; 5] = [
        (&[("AWS_ACCESS_KEY_ID", "AENV"), ("AWS_SECRET_ACCESS_KEY", "s")], "AENV", &[]),
        (&[("AWS_WEB_IDENTITY_TOKEN_FILE", &token), ("AWS_ROLE_ARN", "r")], "ASIA", &["POST /"]),
        (&[("AWS_SHARED_CREDENTIALS_FILE", &profile), ("AWS_PROFILE", "work")], "AFILE", &[]),
        (
            &[
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &full),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token),
            ],
            "ASIA",
            &["GET /v1/credentials"],
        ),
        (
            &[],
            "ASIA",
            &[
                "PUT /latest/api/token",
                "GET /latest/meta-data/iam/security-credentials/",
                "GET /latest/meta-data/iam/security-credentials/node-role",
            ],
        ),
    ];
    for (variables, key, before) in cases {
        let provider = provider(&stub, ambient(&stub, variables), "", "Z1").unwrap();
        provider.check(NAME).await.unwrap();
        let seen = stub.seen();
        let (last, first) = seen.split_last().unwrap();
        assert_eq!(first.iter().map(Seen::line).collect::<Vec<_>>(), before, "{variables:?}");
        assert_eq!(signed_by(last).0, key, "{variables:?}");
        match before.first() {
            Some(&"GET /v1/credentials") => assert_eq!(first[0].header("authorization"), "jwt"),
            Some(&"PUT /latest/api/token") => {
                assert_eq!(first[0].header("x-aws-ec2-metadata-token-ttl-seconds"), "21600");
                assert_eq!(first[2].header("x-aws-ec2-metadata-token"), "imds-token");
            }
            Some(_) => assert!(first[0].body.ends_with("&WebIdentityToken=jwt")),
            None => {}
        }
    }
}

#[tokio::test]
async fn what_is_missing_is_said_before_anything_is_asked() {
    let stub = stub().await;
    let login = |id: &str, secret: &str| AwsLogin::Keys {
        id: Credential::new(id),
        secret: Credential::new(secret),
    };
    for (login, why) in [
        (login("", ""), "empty credentials; perhaps you meant to enable ambient credentials?"),
        (login("AKID", "\n"), "only one of access and secret key was provided"),
    ] {
        let error = provider(&stub, login, "", "").unwrap_err();
        assert_eq!(error.to_string(), format!("unable to construct route53 provider: {why}"));
    }
    let off = ambient(&stub, &[("AWS_EC2_METADATA_DISABLED", "true")]);
    let error = provider(&stub, off, "", "Z1").unwrap().check(NAME).await.unwrap_err();
    assert!(
        error.to_string().contains("cannot get ambient AWS credentials: there are none"),
        "{error}"
    );
    assert_eq!(stub.lines(), [""; 0]);
}

#[tokio::test]
async fn errors_are_told_in_cert_managers_words() {
    let stub = stub().await;
    let provider = provider(&stub, user(), "", "").unwrap();
    let change = "failed to change Route 53 record set";
    let zone = "failed to determine Route 53 hosted zone ID";
    let list = |zones: &str| Told::new(200, format!("<R>{zones}</R>"));
    let z1 = "<HostedZone><Id>/hostedzone/Z1</Id><Name>example.com.</Name></HostedZone>";
    let denied = "User: arn:aws:iam::1:user/u is not authorized to perform: route53:ChangeResourceRecordSets";
    let skew = "Signature expired: 20261121T211158Z is now earlier than 20261121T220000Z";
    for (told, expected, person) in [
        (
            vec![list("")],
            format!("{zone}: zone example.com. not found in Route 53 for domain {NAME}"),
            true,
        ),
        (
            vec![fault(
                403,
                "InvalidClientTokenId",
                "The security token included in the request is invalid.",
            )],
            format!(
                "{zone}: InvalidClientTokenId: The security token included in the request is invalid."
            ),
            true,
        ),
        (
            vec![list(z1), fault(403, "AccessDenied", denied)],
            format!("{change}: AccessDenied: {denied}"),
            true,
        ),
        (
            vec![fault(403, "SignatureDoesNotMatch", skew)],
            format!("{zone}: SignatureDoesNotMatch: the clock of this machine is wrong"),
            true,
        ),
        (
            vec![list(z1), fault(500, "InternalFailure", "try again")],
            format!("{change}: InternalFailure: try again"),
            false,
        ),
    ] {
        stub.script(told);
        let error = provider.add(&record("one")).await.unwrap_err();
        assert_eq!((error.to_string(), error.needs_person), (expected, person));
    }
}

#[tokio::test]
async fn throttling_is_waited_for_and_listing_is_not_demanded() {
    let stub = stub().await;
    let provider = provider(&stub, user(), "", "Z1").unwrap();
    stub.script([
        fault(400, "Throttling", "Rate exceeded"),
        fault(400, "PriorRequestNotComplete", "The request was rejected"),
    ]);
    provider.add(&record("one")).await.unwrap();
    stub.script([fault(
        403,
        "AccessDenied",
        "not authorized to perform: route53:ListResourceRecordSets",
    )]);
    provider.check(NAME).await.expect("who may change need not be allowed to list");
    stub.script([fault(404, "NoSuchHostedZone", "No hosted zone found with ID: Z1")]);
    let error = provider.check(NAME).await.unwrap_err();
    assert!(error.to_string().ends_with("NoSuchHostedZone: No hosted zone found with ID: Z1"));
}

#[tokio::test]
async fn a_zone_that_is_the_name_itself_holds_it() {
    let stub = stub().await;
    let ours = in_zones(&stub, user(), "", "", Arc::new(OwnZone)).unwrap();
    ours.check("_acme-challenge.example.org.").await.unwrap();
    ours.check("_Acme-Challenge.example.ORG.").await.unwrap();
    let error = ours.check("example.org.").await.unwrap_err();
    assert!(error.to_string().contains("zone example.org. not found"), "{error}");
}
