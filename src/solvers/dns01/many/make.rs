//! The library's client of each provider, built from the provider's fields.

use std::collections::BTreeMap;

use dns_update::providers::{
    bluecatv2::BluecatV2Config, infoblox::InfobloxConfig, lightsail::LightsailConfig,
    oraclecloud::OracleCloudConfig, volcengine::VolcengineConfig, yandexcloud::YandexCloudConfig,
};
use dns_update::{DnsUpdater, Error};

use crate::solvers::dns01::credential::Credential;

/// Fields of a provider; the model has checked that they are complete.
struct Fields<'a> {
    texts: &'a BTreeMap<&'static str, String>,
    secrets: &'a BTreeMap<&'static str, Credential>,
}

impl<'a> Fields<'a> {
    /// Returns a field, plain or from a Secret; empty if the field is left out.
    fn of(&self, name: &str) -> &'a str {
        self.maybe(name).unwrap_or_default()
    }

    /// Returns a field, plain or from a Secret; `None` if the field is left out.
    fn maybe(&self, name: &str) -> Option<&'a str> {
        let plain = self.texts.get(name).map(String::as_str);
        plain.or_else(|| self.secrets.get(name).map(Credential::expose))
    }

    fn owned(&self, name: &str) -> String {
        self.of(name).to_owned()
    }

    fn maybe_owned(&self, name: &str) -> Option<String> {
        self.maybe(name).map(ToOwned::to_owned)
    }

    fn flag(&self, name: &str) -> bool {
        self.of(name) == "true"
    }
}

/// Makes the client of a provider.
pub(super) fn client(
    name: &str,
    texts: &BTreeMap<&'static str, String>,
    secrets: &BTreeMap<&'static str, Credential>,
) -> dns_update::Result<DnsUpdater> {
    let f = Fields { texts, secrets };
    if let Some(made) = by_one_key(name, &f).or_else(|| by_two_keys(name, &f)) {
        return made;
    }
    by_several(name, &f).unwrap_or_else(|| more_by_several(name, &f))
}

/// Makes clients with more than two parameters, or with other types; the first half of the alphabet.
fn by_several(name: &str, f: &Fields<'_>) -> Option<dns_update::Result<DnsUpdater>> {
    Some(match name {
        "alidns" => DnsUpdater::new_alidns(
            f.of("accessKey"),
            f.of("secretKey"),
            f.maybe("region"),
            f.maybe("securityToken"),
            f.maybe("line"),
            None,
        ),
        "autodns" => {
            let context = f.maybe("context").map(str::parse).transpose();
            let context = context.map_err(|_| Error::Client("context is no number".to_owned()));
            context.and_then(|context| {
                DnsUpdater::new_autodns(f.of("username"), f.of("password"), context, None)
            })
        }
        "bluecatv2" => DnsUpdater::new_bluecatv2(BluecatV2Config {
            server_url: f.owned("serverURL"),
            username: f.owned("username"),
            password: f.owned("password"),
            config_name: f.owned("configName"),
            view_name: f.owned("viewName"),
            skip_deploy: f.flag("skipDeploy"),
            request_timeout: None,
        }),
        "cloudns" => DnsUpdater::new_cloudns(
            f.maybe("authID"),
            f.maybe("subAuthID"),
            f.of("authPassword"),
            None,
        ),
        "cpanel" => DnsUpdater::new_cpanel(f.of("baseURL"), f.of("username"), f.of("token"), None),
        "huaweicloud" => {
            DnsUpdater::new_huaweicloud(f.of("accessKey"), f.of("secretKey"), f.of("region"), None)
        }
        "infoblox" => DnsUpdater::new_infoblox(InfobloxConfig {
            host: f.owned("host"),
            port: f.maybe_owned("port"),
            username: f.owned("username"),
            password: f.owned("password"),
            wapi_version: f.maybe_owned("wapiVersion"),
            dns_view: f.maybe_owned("dnsView"),
            request_timeout: None,
        }),
        "inwx" => DnsUpdater::new_inwx(f.of("username"), f.of("password"), f.flag("sandbox"), None),
        "lightsail" => DnsUpdater::new_lightsail(LightsailConfig {
            access_key_id: f.owned("accessKeyID"),
            secret_access_key: f.owned("secretAccessKey"),
            session_token: f.maybe_owned("sessionToken"),
            region: f.maybe_owned("region"),
            domain: f.maybe_owned("domain"),
            request_timeout: None,
        }),
        _ => return None,
    })
}

/// Makes clients with more than two parameters, or with other types; the second half of the alphabet.
fn more_by_several(name: &str, f: &Fields<'_>) -> dns_update::Result<DnsUpdater> {
    match name {
        "netcup" => DnsUpdater::new_netcup(
            f.of("customerNumber"),
            f.of("apiKey"),
            f.of("apiPassword"),
            None,
        ),
        "oraclecloud" => DnsUpdater::new_oraclecloud(OracleCloudConfig {
            tenancy_ocid: f.owned("tenancyOCID"),
            user_ocid: f.owned("userOCID"),
            fingerprint: f.owned("fingerprint"),
            private_key_pem: f.owned("privateKey"),
            private_key_password: None,
            region: f.owned("region"),
            compartment_ocid: f.owned("compartmentOCID"),
            request_timeout: None,
        }),
        "ovh" => DnsUpdater::new_ovh(
            f.of("applicationKey"),
            f.of("applicationSecret"),
            f.of("consumerKey"),
            f.of("endpoint").parse()?,
            None,
        ),
        "pdns" => {
            DnsUpdater::new_pdns(f.of("apiKey"), f.maybe("endpoint"), f.maybe("serverName"), None)
        }
        "plesk" => DnsUpdater::new_plesk(f.of("baseURL"), f.of("apiKey"), None),
        "selectel" => DnsUpdater::new_selectel(
            f.of("username"),
            f.of("password"),
            f.of("accountID"),
            f.of("projectID"),
            None,
        ),
        "tencentcloud" => DnsUpdater::new_tencentcloud(
            f.of("secretID"),
            f.of("secretKey"),
            f.maybe("region"),
            f.maybe("sessionToken"),
            None,
        ),
        "transip" => {
            DnsUpdater::new_transip(f.of("login"), f.of("privateKey"), f.flag("globalKey"), None)
        }
        "ultradns" => DnsUpdater::new_ultradns(
            f.of("username"),
            f.of("password"),
            f.maybe_owned("endpoint"),
            None,
        ),
        "vercel" => DnsUpdater::new_vercel(f.of("token"), f.maybe("teamID"), None),
        "volcengine" => DnsUpdater::new_volcengine(VolcengineConfig {
            access_key: f.owned("accessKey"),
            secret_key: f.owned("secretKey"),
            region: f.maybe_owned("region"),
            host: None,
            scheme: None,
            request_timeout: None,
        }),
        "yandexcloud" => DnsUpdater::new_yandexcloud(YandexCloudConfig {
            iam_token_b64: f.owned("serviceAccountKey"),
            folder_id: f.owned("folderID"),
            request_timeout: None,
        }),
        _ => Err(Error::Unsupported(name.to_owned())),
    }
}

/// Makes clients with one credential.
fn by_one_key(name: &str, f: &Fields<'_>) -> Option<dns_update::Result<DnsUpdater>> {
    Some(match name {
        "arvancloud" => DnsUpdater::new_arvancloud(f.of("apiKey"), None),
        "bunny" => DnsUpdater::new_bunny(f.of("apiKey"), None),
        "desec" => DnsUpdater::new_desec(f.of("token"), None),
        "dreamhost" => DnsUpdater::new_dreamhost(f.of("apiKey"), None),
        "dynu" => DnsUpdater::new_dynu(f.of("apiKey"), None),
        "gandiv5" => DnsUpdater::new_gandiv5(f.of("personalAccessToken"), None),
        "gcore" => DnsUpdater::new_gcore(f.of("apiToken"), None),
        "hetzner" => DnsUpdater::new_hetzner(f.of("apiToken"), None),
        "hostingde" => DnsUpdater::new_hostingde(f.of("apiKey"), None),
        "hostinger" => DnsUpdater::new_hostinger(f.of("apiToken"), None),
        "infomaniak" => DnsUpdater::new_infomaniak(f.of("accessToken"), None),
        "ionos" => DnsUpdater::new_ionos(f.of("apiKey"), None),
        "ipv64" => DnsUpdater::new_ipv64(f.of("apiKey"), None),
        "linode" => DnsUpdater::new_linode(f.of("token"), None),
        "namesilo" => DnsUpdater::new_namesilo(f.of("apiKey"), None),
        "netlify" => DnsUpdater::new_netlify(f.of("accessToken"), None),
        "ns1" => DnsUpdater::new_ns1(f.of("apiKey"), None),
        "safedns" => DnsUpdater::new_safedns(f.of("token"), None),
        "scaleway" => DnsUpdater::new_scaleway(f.of("apiToken"), None),
        "vultr" => DnsUpdater::new_vultr(f.of("apiKey"), None),
        _ => return None,
    })
}

/// Makes clients with two credentials, or with a name and one credential.
fn by_two_keys(name: &str, f: &Fields<'_>) -> Option<dns_update::Result<DnsUpdater>> {
    Some(match name {
        "baiducloud" => DnsUpdater::new_baiducloud(f.of("accessKey"), f.of("secretKey"), None),
        "constellix" => DnsUpdater::new_constellix(f.of("apiKey"), f.of("secretKey"), None),
        "dnsimple" => DnsUpdater::new_dnsimple(f.of("token"), f.of("accountID"), None),
        "dnsmadeeasy" => DnsUpdater::new_dnsmadeeasy(f.of("apiKey"), f.of("apiSecret"), None),
        "domeneshop" => DnsUpdater::new_domeneshop(f.of("apiToken"), f.of("apiSecret"), None),
        "easydns" => DnsUpdater::new_easydns(f.of("token"), f.of("key"), None),
        "exoscale" => DnsUpdater::new_exoscale(f.of("apiKey"), f.of("apiSecret"), None),
        "glesys" => DnsUpdater::new_glesys(f.of("apiUser"), f.of("apiKey"), None),
        "godaddy" => DnsUpdater::new_godaddy(f.of("apiKey"), f.of("apiSecret"), None),
        "ibmcloud" => DnsUpdater::new_ibmcloud(f.of("username"), f.of("apiKey"), None),
        "luadns" => DnsUpdater::new_luadns(f.of("username"), f.of("apiToken"), None),
        "mythicbeasts" => DnsUpdater::new_mythicbeasts(f.of("username"), f.of("password"), None),
        "namedotcom" => DnsUpdater::new_namedotcom(f.of("username"), f.of("apiToken"), None),
        "nifcloud" => DnsUpdater::new_nifcloud(f.of("accessKey"), f.of("secretKey"), None),
        "porkbun" => DnsUpdater::new_porkbun(f.of("apiKey"), f.of("secretAPIKey"), None),
        "simplycom" => DnsUpdater::new_simplycom(f.of("accountName"), f.of("apiKey"), None),
        "spaceship" => DnsUpdater::new_spaceship(f.of("apiKey"), f.of("apiSecret"), None),
        "websupport" => DnsUpdater::new_websupport(f.of("apiKey"), f.of("apiSecret"), None),
        "zoneeu" => DnsUpdater::new_zoneeu(f.of("username"), f.of("apiKey"), None),
        _ => return None,
    })
}
