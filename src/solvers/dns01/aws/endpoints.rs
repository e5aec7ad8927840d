//! Addresses of AWS's services, by the partition of the region.

use super::super::credential::Ambient;
use super::super::text::one_line;
use crate::solvers::SolveError;

/// Addresses of the services in use, and the regions for which requests are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Route 53, one for each partition.
    pub route53: String,
    /// Region for which requests to Route 53 are signed.
    pub signing_region: String,
    /// The token service, one for each region.
    pub sts: String,
    /// Region for which requests to the token service are signed.
    pub sts_region: String,
}

impl Endpoints {
    /// Returns the endpoints of a region; the global ones if the region is empty. With ambient
    /// credentials `AWS_REGION` comes first, and addresses may be set as for AWS's own tools.
    ///
    /// # Errors
    /// Fails if the text cannot be a region: the region becomes part of a host that receives credentials.
    pub fn new(region: &str, ambient: Option<&Ambient>) -> Result<Self, SolveError> {
        let variable = |name: &str| ambient.and_then(|a| a.variable(name));
        let (field, region) = match variable("AWS_REGION") {
            Some(region) => ("AWS_REGION", region.trim()),
            None => ("route53.region", region.trim()),
        };
        if !region.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err(SolveError::lasting(
                "unable to construct route53 provider",
                format!("{field} is \"{}\", which is no region of AWS", one_line(region)),
            )
            .advised(format!("set {field} to a region such as eu-central-1, or leave it out")));
        }
        let (route53, signing_region, domain) = match region {
            _ if region.starts_with("cn-") => {
                ("https://route53.amazonaws.com.cn", "cn-northwest-1", "amazonaws.com.cn")
            }
            _ if region.starts_with("us-gov-") => {
                ("https://route53.us-gov.amazonaws.com", "us-gov-west-1", "amazonaws.com")
            }
            _ => ("https://route53.amazonaws.com", "us-east-1", "amazonaws.com"),
        };
        let sts = if region.is_empty() {
            format!("https://sts.{domain}")
        } else {
            format!("https://sts.{region}.{domain}")
        };
        let place = |name: &str, usual: String| {
            let given = variable(name).or_else(|| variable("AWS_ENDPOINT_URL"));
            given.map_or(usual, str::to_owned)
        };
        let sts_region = if region.is_empty() { "us-east-1" } else { region };
        Ok(Self {
            route53: place("AWS_ENDPOINT_URL_ROUTE_53", route53.to_owned()),
            signing_region: signing_region.to_owned(),
            sts: place("AWS_ENDPOINT_URL_STS", sts),
            sts_region: sts_region.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(region: &str, ambient: Option<&Ambient>, expected: [&str; 4]) {
        let Endpoints { route53, signing_region, sts, sts_region } =
            Endpoints::new(region, ambient).unwrap();
        assert_eq!([route53, signing_region, sts, sts_region], expected, "{region}");
    }

    #[test]
    fn every_partition_has_its_own() {
        let world = "https://route53.amazonaws.com";
        check("", None, [world, "us-east-1", "https://sts.amazonaws.com", "us-east-1"]);
        let sts = "https://sts.eu-central-1.amazonaws.com";
        check("eu-central-1", None, [world, "us-east-1", sts, "eu-central-1"]);
        let china = "https://route53.amazonaws.com.cn";
        let sts = "https://sts.cn-north-1.amazonaws.com.cn";
        check("cn-north-1", None, [china, "cn-northwest-1", sts, "cn-north-1"]);
        let government = "https://route53.us-gov.amazonaws.com";
        let sts = "https://sts.us-gov-east-1.amazonaws.com";
        check("us-gov-east-1", None, [government, "us-gov-west-1", sts, "us-gov-east-1"]);
    }

    #[test]
    fn a_region_never_leads_to_another_host() {
        for region in ["evil.com/#", "evil.com:443", "a@evil.com", "eu central", "EU", "a\u{e9}"] {
            let error = Endpoints::new(region, None).unwrap_err();
            assert!(error.needs_person, "{region}");
            assert!(error.to_string().contains(&format!("route53.region is \"{region}\"")));
            let ambient = Ambient::from_iter([("AWS_REGION", region)]);
            let error = Endpoints::new("", Some(&ambient)).unwrap_err();
            assert!(error.to_string().contains("AWS_REGION is "), "{error}");
        }
    }

    #[test]
    fn an_ambient_region_beats_the_field() {
        let ambient = Ambient::from_iter([("AWS_REGION", "eu-west-1")]);
        let world = "https://route53.amazonaws.com";
        let sts = "https://sts.eu-west-1.amazonaws.com";
        check("us-west-2", Some(&ambient), [world, "us-east-1", sts, "eu-west-1"]);
        let ambient = Ambient::from_iter([
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
            ("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:2"),
        ]);
        let set = ["http://127.0.0.1:1", "us-east-1", "http://127.0.0.1:2", "us-east-1"];
        check("", Some(&ambient), set);
    }
}
