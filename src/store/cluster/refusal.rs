//! Meaning of an API server's refusal, and of a request without an answer.

use std::error::Error;

use kube::client::AuthError;
use kube::core::Status;

use super::access_request::{AccessRequest, RequestedResource};
use super::login;
use super::server_messages::{
    causes, guard_that_says, has_cause, held, is_about_an_object, lacks_permission, said,
    undeclared,
};
use crate::http::exchange::{self, is_untrusted};
use crate::model::Key;
use crate::model::cause::Guard;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::{StoreError, invalid};

/// Prefixes that kube and its libraries put before the messages of others.
const LAYERS: [&str; 4] =
    ["ServiceError: ", "HyperError: ", "auth error: ", "client error (Connect)"];

/// Makes the error for the server's refusal of a request.
pub(crate) fn refused(server: &str, deed: &AccessRequest<'_>, status: &Status) -> StoreError {
    let said = deed.stable(said(status));
    let key = deed.named();
    if let (Some(key), Some(why)) = (&key, undeclared(&said)) {
        return invalid(key, why);
    }
    let server = server.to_owned();
    match (status.code, status.reason.as_str()) {
        (401, _) => ClusterFault::Credentials { server, why: said }.into(),
        (429, _) => ClusterFault::Busy { server, verb: deed.verb, what: deed.what(), said }.into(),
        (403, _) if lacks_permission(&said) => ClusterFault::Forbidden {
            verb: deed.verb,
            resource: deed.resource(),
            namespace: deed.place().map(str::to_owned),
            said,
        }
        .into(),
        (404, _) if !is_about_an_object(status) && is_everywhere(deed.kind) => {
            ClusterFault::Stranger { server, why: format!("it has no {}", deed.resource()) }.into()
        }
        (404, _) if !is_about_an_object(status) => ClusterFault::Undefined {
            server,
            resource: deed.resource(),
            why: "nothing answers at its path".into(),
        }
        .into(),
        (500.., _) => {
            ClusterFault::Failing { server, verb: deed.verb, what: deed.what(), said }.into()
        }
        _ => match (&key, guard_that_says(&said)) {
            (Some(key), guard) => object_error(key, status, said, guard),
            (None, None) if status.code == 409 => {
                ClusterFault::Failing { server, verb: deed.verb, what: deed.what(), said }.into()
            }
            (None, guard) => {
                let is_wrong = [400, 404, 422].contains(&status.code);
                let passes = guard.map_or(!is_wrong, Guard::passes);
                let namespace = deed.namespace.to_owned();
                let (verb, what) = (deed.verb, deed.what());
                let guard = guard.or_else(|| passes.then_some(Guard::Unknown));
                ClusterFault::Refused { verb, what, namespace, said, guard, passes }.into()
            }
        },
    }
}

fn object_error(key: &Key, status: &Status, said: String, guard: Option<Guard>) -> StoreError {
    if let Some(fault) = without_namespace(&key.to_string(), &key.name.namespace, status, false) {
        return fault;
    }
    let key = key.clone();
    match (status.code, status.reason.as_str()) {
        (404, _) => StoreError::NotFound { key },
        (409, "AlreadyExists") => StoreError::AlreadyExists { key },
        (409, _) => match held(status) {
            Some(why) => StoreError::Held { key, why },
            None => StoreError::Conflict { key },
        },
        (code, _) if code == 403 || guard.is_some() => {
            let guard = guard.unwrap_or(Guard::Unknown);
            StoreError::Denied { key, why: said, guard }
        }
        _ => invalid(&key, causes(status).unwrap_or(said)),
    }
}

/// Returns the fault if a refusal says that the namespace to write to does not exist, or is being deleted.
pub(crate) fn without_namespace(
    what: &str,
    namespace: &str,
    status: &Status,
    is_of_lease: bool,
) -> Option<StoreError> {
    let about = status.details.as_ref();
    let is_ending = match status.code {
        404 if about.is_some_and(|about| about.kind == "namespaces") => false,
        403 if has_cause(status, "NamespaceTerminating") => true,
        _ => return None,
    };
    let (what, namespace) = (what.to_owned(), namespace.to_owned());
    Some(ClusterFault::NoNamespace { what, namespace, is_ending, is_of_lease }.into())
}

/// Returns whether every API server has the resource.
fn is_everywhere(kind: RequestedResource<'_>) -> bool {
    match kind {
        RequestedResource::Kind(kind) => kind.group().is_empty(),
        RequestedResource::Other(resource) => resource
            .split_once('.')
            .is_none_or(|(_, group)| ["coordination.k8s.io", "networking.k8s.io"].contains(&group)),
    }
}

/// Makes the fault for a request without an answer, by what kube and its libraries report.
pub(super) fn unanswered(server: &str, error: &kube::Error) -> ClusterFault {
    let server = server.to_owned();
    let log_in = exchange::causes(error).find_map(|cause| cause.downcast_ref::<AuthError>());
    match log_in {
        Some(error) => {
            let why = login::plugin_fault(error, None).unwrap_or_else(|| chain(error));
            ClusterFault::Credentials { server, why }
        }
        None if is_untrusted(error) => ClusterFault::Untrusted { server, why: chain(error) },
        None => ClusterFault::Unreachable { server, why: chain(error) },
    }
}

/// Joins the messages of an error and all its causes, without repeats and without names of a library's layers.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut told: Vec<String> = Vec::new();
    for error in exchange::causes(error) {
        let text = error.to_string();
        let words = LAYERS.iter().fold(text.as_str(), |text, layer| text.trim_start_matches(layer));
        let is_new = !told.iter().any(|before| before.contains(words));
        if is_new && !words.is_empty() {
            told.push(words.to_owned());
        }
    }
    told.join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Kind, ObjectName};

    /// The error, in one line, that an answer to the creation of an Order becomes.
    fn check(answer: Value, expected: &str) {
        let key = Key::new(Kind::Order, ObjectName::new("web", "a"));
        let status: Status = serde_json::from_value(answer).unwrap();
        let error = refused("https://server", &AccessRequest::on("create", &key), &status);
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_missing_permission_names_verb_and_resource() {
        let said = "orders.acme.cert-manager.io is forbidden: User \"ann\" cannot create resource \"orders\" in API \
                    group \"acme.cert-manager.io\" in the namespace \"web\"";
        let answer = json!({ "code": 403, "reason": "Forbidden", "message": said });
        let expected =
            format!("no permission to create orders.acme.cert-manager.io in namespace web: {said}");
        check(answer, &expected);
    }

    #[test]
    fn a_webhook_s_refusal_is_in_its_own_words() {
        let said = "admission webhook \"guard\" denied the request: not on Fridays";
        for code in [400, 403] {
            let answer = json!({ "code": code, "reason": "Forbidden", "message": said });
            check(answer, &format!("cannot write Order web/a: {said}"));
        }
    }

    #[test]
    fn a_name_that_the_server_makes_up_is_left_out_of_what_it_says() {
        let metadata = json!({ "namespace": "web", "generateName": "web-1-" });
        let object = json!({ "metadata": metadata });
        let key = Key::new(Kind::Secret, ObjectName::new("web", ""));
        let guard = "is forbidden: violates PodSecurity \"baseline:latest\": hostPort";
        let status = |resource: &str, name: &str| {
            let said = format!("{resource} \"{name}\" {guard}");
            let status = json!({ "code": 403, "reason": "Forbidden", "message": said });
            serde_json::from_value::<Status>(status).unwrap()
        };
        for name in ["web-1-b2d4f", "web-1-g6h7z"] {
            let deed = AccessRequest::other("create", "pods", "web").making(&object);
            let error = refused("https://server", &deed, &status("pods", name));
            let expected = "the cluster refuses to create pods in namespace web: pods \"web-1-…\"";
            assert_eq!(error.to_string(), format!("{expected} {guard}"));
            assert!(error.needs_person(), "{error}");

            let deed = AccessRequest::on("create", &key).making(&object);
            let error = refused("https://server", &deed, &status("secrets", name));
            let expected = "cannot write Secret web/web-1-…: secrets \"web-1-…\"";
            assert_eq!(error.to_string(), format!("{expected} {guard}"));
        }
    }

    #[test]
    fn a_quota_may_empty_wherever_it_is_met() {
        let said = "x is forbidden: exceeded quota: none";
        let status = json!({ "code": 403, "reason": "Forbidden", "message": said });
        let status: Status = serde_json::from_value(status).unwrap();
        let key = Key::new(Kind::Secret, ObjectName::new("web", "tls"));
        let deeds =
            [AccessRequest::on("create", &key), AccessRequest::other("create", "pods", "web")];
        for error in deeds.map(|deed| refused("https://server", &deed, &status)) {
            assert!(!error.needs_person(), "{error}");
        }
    }

    #[test]
    fn a_webhook_that_does_not_answer_is_a_fault_of_the_cluster() {
        let said = "Internal error occurred: failed calling webhook \"guard\": connection refused";
        check(
            json!({ "code": 500, "reason": "InternalError", "message": said }),
            &format!("the cluster at https://server could not create Order web/a: {said}"),
        );
    }

    #[test]
    fn a_field_that_another_manager_holds_is_named() {
        let cause = json!({
            "reason": "FieldManagerConflict",
            "message": "conflict with \"helm\"",
            "field": ".spec.dnsNames",
        });
        let answer = json!({ "code": 409, "reason": "Conflict", "details": { "causes": [cause] } });
        check(answer, "cannot apply Order web/a: .spec.dnsNames: conflict with \"helm\"");
    }

    #[test]
    fn a_stale_write_is_a_conflict() {
        let answer =
            json!({ "code": 409, "reason": "Conflict", "message": "the object has been modified" });
        check(answer, "cannot write Order web/a: it was changed by another writer");
    }

    #[test]
    fn what_nobody_serves_is_told_from_what_is_not_there() {
        check(
            json!({ "code": 404, "message": "404 page not found" }),
            "the cluster at https://server does not serve orders.acme.cert-manager.io: nothing answers at its path",
        );
        let about = json!({ "name": "a", "kind": "orders" });
        check(
            json!({ "code": 404, "reason": "NotFound", "details": about }),
            "Order web/a not found",
        );
        let about = json!({ "name": "web", "kind": "namespaces" });
        check(
            json!({ "code": 404, "reason": "NotFound", "details": about }),
            "cannot write Order web/a: there is no namespace web",
        );
        let cause = json!({ "reason": "NamespaceTerminating", "message": "namespace web is being terminated" });
        check(
            json!({ "code": 403, "reason": "Forbidden", "details": { "causes": [cause] } }),
            "cannot write Order web/a: somebody has deleted namespace web",
        );
    }

    #[test]
    fn a_field_that_the_definitions_do_not_have_is_the_manifest_s_fault() {
        let said = "failed to create typed patch object (web/a; acme.cert-manager.io/v1, Kind=Order): .spec.colour: \
                    field not declared in schema";
        check(
            json!({ "code": 500, "message": said }),
            "cannot write Order web/a: .spec.colour: field not declared in schema",
        );
    }

    #[test]
    fn a_namespace_that_is_missing_does_not_come_by_itself() {
        let status = json!({
            "code": 404, "reason": "NotFound", "message": "namespaces \"web\" not found",
            "details": { "name": "web", "kind": "namespaces" },
        });
        let status: Status = serde_json::from_value(status).unwrap();
        let error =
            refused("https://server", &AccessRequest::other("create", "pods", "web"), &status);
        assert_eq!(
            error.to_string(),
            "the cluster refuses to create pods in namespace web: namespaces \"web\" not found"
        );
        assert!(!error.may_pass());
    }

    #[test]
    fn a_wrong_field_is_named() {
        let cause = json!({ "reason": "FieldValueRequired", "message": "Required value", "field": "spec.request" });
        let answer = json!({ "code": 422, "reason": "Invalid", "details": { "causes": [cause] } });
        check(answer, "cannot write Order web/a: spec.request: Required value");
    }

    #[test]
    fn expired_credentials_say_so() {
        check(
            json!({ "code": 401, "reason": "Unauthorized", "message": "Unauthorized" }),
            "cannot log in to https://server: Unauthorized",
        );
    }
}
