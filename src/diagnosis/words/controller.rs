//! Clients, features, credentials and rights that cert-manager's controllers lack, by messages of them or the API server.

/// Deficiency of cert-manager, read from its message (1.21.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerLack {
    /// Support for Gateway API, which is off.
    GatewayApi,
    /// Credentials: the machine's own ones are not for Issuers.
    AmbientCredentials,
    /// A client for the issuer, which is made when the issuer is set up.
    Client,
}

/// Reads from a message of cert-manager what it lacks.
pub fn controller_lack(text: &str) -> Option<ControllerLack> {
    let says = |words: &str| text.contains(words);
    if says("gateway api is not enabled") {
        Some(ControllerLack::GatewayApi)
    } else if says("perhaps you meant to enable ambient credentials") {
        Some(ControllerLack::AmbientCredentials)
    } else if says("ACME client for issuer not initialised") {
        Some(ControllerLack::Client)
    } else {
        None
    }
}

/// Reports whether the account key could not be kept because a Secret of its name already exists.
pub fn says_secret_is_there(message: &str) -> bool {
    message.contains("secrets \"") && message.contains("\" already exists")
}

/// Fault of an API group that another server serves, as the API server describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFault {
    /// The server of the group does not answer.
    Unavailable,
    /// The server does not have the resource, or there is no such group.
    Unknown,
}

/// Reads the fault of an API group from an API server's message.
pub fn group_fault(text: &str) -> Option<GroupFault> {
    if text.contains("the server is currently unable to handle the request") {
        Some(GroupFault::Unavailable)
    } else if text.contains("the server could not find the requested resource") {
        Some(GroupFault::Unknown)
    } else {
        None
    }
}

/// Returns the name of the webhook that an API server had to call for an object, and could not; `None` if there is none.
pub fn unreached_webhook(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("failed calling webhook \"")?;
    Some(rest.split_once('"')?.0).filter(|name| !name.is_empty())
}

/// Permission that is missing, as an API server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight<'a> {
    /// User that lacks the permission.
    pub user: &'a str,
    /// Verb of a Role.
    pub verb: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// API group; empty for the core one.
    pub group: &'a str,
    /// Namespace; `None` for the whole cluster.
    pub namespace: Option<&'a str>,
}

/// Reads a refusal: `… is forbidden: User "U" cannot V resource "R" in API group "G" in the namespace "N"`.
pub fn missing_right(text: &str) -> Option<MissingRight<'_>> {
    let (_, rest) = text.split_once("is forbidden: User \"")?;
    let (user, rest) = rest.split_once("\" cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once("\" in API group \"")?;
    let (group, rest) = rest.split_once('"')?;
    let namespace =
        rest.strip_prefix(" in the namespace \"").and_then(|rest| rest.split('"').next());
    Some(MissingRight { user, verb, resource, group, namespace })
}

/// Reports whether cert-manager says that it works without Gateway API.
pub fn lacks_gateway_api(reason: &str) -> bool {
    reason.contains("gateway api is not enabled")
}

/// Reports whether an API server refuses an HTTPRoute for two equal parents (a rule of Gateway API's definitions).
pub fn names_parent_twice(reason: &str) -> bool {
    reason.contains("when parentRefs includes 2 or more references to the same parent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_that_is_missing_is_read_with_its_place() {
        let user = "system:serviceaccount:cert-manager:cert-manager";
        let said = format!(
            "dns.acme.example.com is forbidden: User \"{user}\" cannot create resource \"dns\" in API group \"acme.example.com\" at \
             the cluster scope"
        );
        let right = missing_right(&said).unwrap();
        assert_eq!((right.user, right.verb, right.resource), (user, "create", "dns"));
        assert_eq!((right.group, right.namespace), ("acme.example.com", None));
        let said = format!(
            "secrets \"a\" is forbidden: User \"{user}\" cannot get resource \"secrets\" in API group \"\" in the namespace \"web\""
        );
        assert_eq!(missing_right(&said).unwrap().namespace, Some("web"));
        assert_eq!(missing_right("is forbidden: exceeded quota"), None);
    }

    #[test]
    fn what_the_controller_lacks_is_read_in_its_words() {
        for (said, expected) in [
            (
                "couldn't Present challenge a/b: gateway api is not enabled",
                Some(ControllerLack::GatewayApi),
            ),
            (
                "unable to construct route53 provider: empty credentials; perhaps you meant to enable ambient credentials?",
                Some(ControllerLack::AmbientCredentials),
            ),
            ("ACME client for issuer not initialised/available", Some(ControllerLack::Client)),
            ("wrong status code '404', expected '200'", None),
        ] {
            assert_eq!(controller_lack(said), expected, "{said}");
        }
        assert!(says_secret_is_there(
            "Failed to register ACME account: secrets \"a\" already exists"
        ));
        assert_eq!(
            group_fault("the server could not find the requested resource"),
            Some(GroupFault::Unknown)
        );
    }
}
