//! Every provider with its fields.

use super::{Field, FieldKind, Provider};

/// Every provider, by name.
#[rustfmt::skip] // one line each, as a table is read
pub static ALL: &[Provider] = &[
    listed("alidns", "Alibaba Cloud DNS", &[secret("accessKey"), secret("secretKey"), may(secret("securityToken")), may(text("region")), may(text("line"))]),
    listed("arvancloud", "ArvanCloud", &[secret("apiKey")]),
    listed("autodns", "InterNetX AutoDNS", &[text("username"), secret("password"), may(text("context"))]),
    listed("baiducloud", "Baidu Cloud DNS", &[secret("accessKey"), secret("secretKey")]),
    listed("bluecatv2", "BlueCat Address Manager v2", &[url("serverURL"), text("username"), secret("password"), text("configName"), text("viewName"), may(flag("skipDeploy"))]),
    listed("bunny", "Bunny DNS", &[secret("apiKey")]),
    Provider { any_of: &["authID", "subAuthID"], ..listed("cloudns", "ClouDNS", &[secret("authPassword"), may(text("authID")), may(text("subAuthID"))]) },
    listed("constellix", "Constellix", &[secret("apiKey"), secret("secretKey")]),
    listed("cpanel", "cPanel", &[url("baseURL"), text("username"), secret("token")]),
    listed("desec", "deSEC", &[secret("token")]),
    listed("dnsimple", "DNSimple", &[secret("token"), text("accountID")]),
    listed("dnsmadeeasy", "DNS Made Easy", &[secret("apiKey"), secret("apiSecret")]),
    listed("domeneshop", "Domeneshop", &[secret("apiToken"), secret("apiSecret")]),
    listed("dreamhost", "DreamHost", &[secret("apiKey")]),
    listed("dynu", "Dynu", &[secret("apiKey")]),
    listed("easydns", "easyDNS", &[secret("token"), secret("key")]),
    listed("exoscale", "Exoscale", &[secret("apiKey"), secret("apiSecret")]),
    listed("gandiv5", "Gandi LiveDNS", &[secret("personalAccessToken")]),
    listed("gcore", "Gcore", &[secret("apiToken")]),
    listed("glesys", "GleSYS", &[text("apiUser"), secret("apiKey")]),
    listed("godaddy", "GoDaddy", &[secret("apiKey"), secret("apiSecret")]),
    listed("hetzner", "Hetzner Cloud DNS", &[secret("apiToken")]),
    listed("hostingde", "hosting.de", &[secret("apiKey")]),
    listed("hostinger", "Hostinger", &[secret("apiToken")]),
    listed("huaweicloud", "Huawei Cloud DNS", &[secret("accessKey"), secret("secretKey"), text("region")]),
    listed("ibmcloud", "IBM Cloud Classic (SoftLayer)", &[text("username"), secret("apiKey")]),
    listed("infoblox", "Infoblox NIOS", &[text("host"), text("username"), secret("password"), may(text("port")), may(text("wapiVersion")), may(text("dnsView"))]),
    listed("infomaniak", "Infomaniak", &[secret("accessToken")]),
    listed("inwx", "INWX", &[text("username"), secret("password"), may(flag("sandbox"))]),
    listed("ionos", "IONOS", &[secret("apiKey")]),
    listed("ipv64", "IPv64", &[secret("apiKey")]),
    listed("lightsail", "AWS Lightsail", &[secret("accessKeyID"), secret("secretAccessKey"), may(secret("sessionToken")), may(text("region")), may(text("domain"))]),
    listed("linode", "Linode (Akamai)", &[secret("token")]),
    listed("luadns", "LuaDNS", &[text("username"), secret("apiToken")]),
    listed("mythicbeasts", "Mythic Beasts", &[text("username"), secret("password")]),
    listed("namedotcom", "Name.com", &[text("username"), secret("apiToken")]),
    listed("namesilo", "NameSilo", &[secret("apiKey")]),
    listed("netcup", "netcup", &[text("customerNumber"), secret("apiKey"), secret("apiPassword")]),
    listed("netlify", "Netlify", &[secret("accessToken")]),
    listed("nifcloud", "NIFCLOUD", &[secret("accessKey"), secret("secretKey")]),
    listed("ns1", "NS1", &[secret("apiKey")]),
    listed("oraclecloud", "Oracle Cloud DNS", &[text("tenancyOCID"), text("userOCID"), text("fingerprint"), secret("privateKey"), text("region"), text("compartmentOCID")]),
    listed("ovh", "OVH", &[secret("applicationKey"), secret("applicationSecret"), secret("consumerKey"), text("endpoint")]),
    listed("pdns", "PowerDNS Authoritative", &[secret("apiKey"), may(url("endpoint")), may(text("serverName"))]),
    listed("plesk", "Plesk", &[url("baseURL"), secret("apiKey")]),
    listed("porkbun", "Porkbun", &[secret("apiKey"), secret("secretAPIKey")]),
    listed("safedns", "ANS SafeDNS", &[secret("token")]),
    listed("scaleway", "Scaleway", &[secret("apiToken")]),
    listed("selectel", "Selectel DNS v2", &[text("username"), secret("password"), text("accountID"), text("projectID")]),
    listed("simplycom", "Simply.com", &[text("accountName"), secret("apiKey")]),
    listed("spaceship", "Spaceship", &[secret("apiKey"), secret("apiSecret")]),
    listed("tencentcloud", "Tencent Cloud DNSPod", &[secret("secretID"), secret("secretKey"), may(secret("sessionToken")), may(text("region"))]),
    listed("transip", "TransIP", &[text("login"), secret("privateKey"), may(flag("globalKey"))]),
    listed("ultradns", "UltraDNS", &[text("username"), secret("password"), may(url("endpoint"))]),
    listed("vercel", "Vercel", &[secret("token"), may(text("teamID"))]),
    listed("volcengine", "Volcano Engine", &[secret("accessKey"), secret("secretKey"), may(text("region"))]),
    listed("vultr", "Vultr", &[secret("apiKey")]),
    listed("websupport", "Websupport", &[secret("apiKey"), secret("apiSecret")]),
    listed("yandexcloud", "Yandex Cloud DNS", &[secret("serviceAccountKey"), text("folderID")]),
    listed("zoneeu", "Zone.eu", &[text("username"), secret("apiKey")]),
];

const fn listed(name: &'static str, title: &'static str, fields: &'static [Field]) -> Provider {
    Provider { name, title, fields, any_of: &[] }
}

const fn secret(name: &'static str) -> Field {
    Field { name, sort: FieldKind::Secret, required: true }
}

const fn text(name: &'static str) -> Field {
    Field { name, sort: FieldKind::Text, required: true }
}

const fn url(name: &'static str) -> Field {
    Field { name, sort: FieldKind::Url, required: true }
}

const fn flag(name: &'static str) -> Field {
    Field { name, sort: FieldKind::Flag, required: true }
}

/// Returns the field as one that may be left out.
const fn may(field: Field) -> Field {
    Field { required: false, ..field }
}
