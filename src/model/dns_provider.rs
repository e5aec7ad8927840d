//! DNS providers that the command line can name, and the environment variables that each needs.

use std::fmt;

/// DNS providers that are configured by the environment of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsProvider {
    /// acme-dns.
    AcmeDns,
    /// Akamai Edge DNS.
    Akamai,
    /// Azure DNS.
    AzureDns,
    /// Google Cloud DNS.
    CloudDns,
    /// Cloudflare.
    Cloudflare,
    /// DigitalOcean.
    DigitalOcean,
    /// A program.
    Exec,
    /// Dynamic updates.
    Rfc2136,
    /// AWS Route 53.
    Route53,
}

impl DnsProvider {
    /// All providers.
    pub const ALL: [Self; 9] = [
        Self::AcmeDns,
        Self::Akamai,
        Self::AzureDns,
        Self::CloudDns,
        Self::Cloudflare,
        Self::DigitalOcean,
        Self::Exec,
        Self::Rfc2136,
        Self::Route53,
    ];

    /// Returns the provider's name, and the names that other programs use for the provider.
    pub fn names(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::AcmeDns => ("acmedns", &["acme-dns"]),
            Self::Akamai => ("akamai", &["edgedns"]),
            Self::AzureDns => ("azuredns", &["azure"]),
            Self::CloudDns => ("clouddns", &["gcloud", "google"]),
            Self::Cloudflare => ("cloudflare", &[]),
            Self::DigitalOcean => ("digitalocean", &[]),
            Self::Exec => ("exec", &[]),
            Self::Rfc2136 => ("rfc2136", &[]),
            Self::Route53 => ("route53", &[]),
        }
    }

    /// Returns the variables that the provider needs, in short.
    pub fn needs(self) -> &'static str {
        match self {
            Self::AcmeDns => "ACME_DNS_API_BASE, ACME_DNS_STORAGE_PATH",
            Self::Akamai => {
                "AKAMAI_HOST, AKAMAI_CLIENT_TOKEN, AKAMAI_CLIENT_SECRET, AKAMAI_ACCESS_TOKEN"
            }
            Self::AzureDns => {
                "AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, AZURE_TENANT_ID, AZURE_SUBSCRIPTION_ID, \
                 AZURE_RESOURCE_GROUP [AZURE_ZONE_NAME, AZURE_ENVIRONMENT, AZURE_PRIVATE_ZONE]"
            }
            Self::CloudDns => {
                "GOOGLE_APPLICATION_CREDENTIALS or GCE_SERVICE_ACCOUNT_FILE [GCE_PROJECT, GCE_ZONE_ID]"
            }
            Self::Cloudflare => {
                "CLOUDFLARE_DNS_API_TOKEN or CF_DNS_API_TOKEN or CF_API_TOKEN; else CF_API_EMAIL, CF_API_KEY"
            }
            Self::DigitalOcean => "DO_AUTH_TOKEN or DIGITALOCEAN_TOKEN",
            Self::Exec => "EXEC_PATH: a program as in examples/dns01-exec",
            Self::Rfc2136 => {
                "RFC2136_NAMESERVER [RFC2136_TSIG_KEY, RFC2136_TSIG_SECRET, RFC2136_TSIG_ALGORITHM]"
            }
            Self::Route53 => {
                "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY [AWS_REGION, AWS_HOSTED_ZONE_ID, AWS_ASSUME_ROLE_ARN]"
            }
        }
    }
}

impl fmt::Display for DnsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().0)
    }
}
