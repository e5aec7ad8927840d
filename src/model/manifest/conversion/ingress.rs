//! Ingresses from before Kubernetes 1.19, whose backends have another shape.

use crate::model::manifest::{Content, Node};

/// Gives the backends of an Ingress the shape of `v1`, and returns what was changed, in words.
pub(super) fn convert(node: &mut Node) -> Vec<String> {
    let mut changes = Vec::new();
    let Some(spec) = node.get_mut("spec") else { return changes };
    if let Some(mut backend) = spec.take("backend") {
        name_service(&mut backend.value);
        spec.put("defaultBackend", backend.value);
        changes.push("spec.backend is now spec.defaultBackend".to_owned());
    }
    let mut is_any = false;
    for rule in spec.get_mut("rules").map(Node::items_mut).unwrap_or_default() {
        for path in rule.get_mut("http.paths").map(Node::items_mut).unwrap_or_default() {
            is_any |= path.get_mut("backend").is_some_and(name_service);
            if path.get("pathType").is_none() {
                path.put("pathType", Node::text(path.at, "ImplementationSpecific"));
            }
        }
    }
    if is_any {
        changes.push("serviceName and servicePort of backends are now service".to_owned());
    }
    changes
}

/// Gives one backend the shape of `v1`; returns whether the backend had the old shape.
fn name_service(backend: &mut Node) -> bool {
    let Some(name) = backend.take("serviceName") else { return false };
    backend.put("service.name", name.value);
    if let Some(port) = backend.take("servicePort") {
        let is_number = matches!(port.value.content, Content::Number(_));
        backend
            .put(if is_number { "service.port.number" } else { "service.port.name" }, port.value);
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::model::manifest::set::Namespaces;
    use crate::model::manifest::{Source, read};

    #[test]
    fn the_ingress_of_the_quick_start_is_read() {
        let text = "
apiVersion: extensions/v1beta1
kind: Ingress
metadata:
  name: kuard
  annotations: {kubernetes.io/ingress.class: nginx, certmanager.k8s.io/issuer: letsencrypt-staging}
spec:
  tls: [{hosts: [example.example.com], secretName: quickstart-example-tls}]
  backend: {serviceName: other, servicePort: http}
  rules:
  - host: example.example.com
    http:
      paths:
      - path: /
        backend: {serviceName: kuard, servicePort: 80}
";
        let source = Source { name: "m.yaml".into(), text: text.into() };
        let set = read(&[source], Namespaces { given: None, default: "default" }).unwrap();
        let spec = &set.documents[0].record.object["spec"];
        assert_eq!(set.documents[0].record.key.to_string(), "Ingress default/kuard");
        assert_eq!(
            spec["rules"][0]["http"]["paths"][0],
            json!({
                "path": "/", "pathType": "ImplementationSpecific",
                "backend": {"service": {"name": "kuard", "port": {"number": 80}}},
            })
        );
        let backend = json!({"service": {"name": "other", "port": {"name": "http"}}});
        assert_eq!(spec["defaultBackend"], backend);
        let warnings: Vec<_> = set.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "m.yaml:2:13: Ingress kuard: apiVersion: extensions/v1beta1 is an old version, read as networking.k8s.io/v1: \
                 spec.backend is now spec.defaultBackend; serviceName and servicePort of backends are now service"
            ]
        );
    }
}
