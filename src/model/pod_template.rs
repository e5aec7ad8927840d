//! Effect of a template on a Pod, and on other objects with labels and annotations.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::ChallengeSolver;
use super::solver::PodTemplate;

impl ChallengeSolver {
    /// Returns the template of the Pods that this solver makes.
    pub fn pod_template(&self) -> Option<&PodTemplate> {
        let http01 = self.http01.as_ref()?;
        match (&http01.ingress, &http01.gateway_http_route) {
            (Some(ingress), _) => ingress.pod_template.as_ref(),
            (None, route) => route.as_ref()?.pod_template.as_ref(),
        }
    }
}

impl PodTemplate {
    /// Applies the template to a Pod of one container as cert-manager does: some parts are merged, some replaced.
    pub fn shape(&self, pod: &mut Value) {
        overlay(&mut pod["metadata"], "labels", &self.metadata.labels);
        overlay(&mut pod["metadata"], "annotations", &self.metadata.annotations);
        let (spec, wanted) = (&mut pod["spec"], &self.spec);
        overlay(spec, "nodeSelector", &wanted.node_selector);
        for (field, value) in [
            ("priorityClassName", &wanted.priority_class_name),
            ("serviceAccountName", &wanted.service_account_name),
        ] {
            if !value.is_empty() {
                spec[field] = value.as_str().into();
            }
        }
        for (field, values) in
            [("tolerations", &wanted.tolerations), ("imagePullSecrets", &wanted.image_pull_secrets)]
        {
            if !values.is_empty() {
                spec[field] = values.clone().into();
            }
        }
        for (field, value) in
            [("affinity", &wanted.affinity), ("securityContext", &wanted.security_context)]
        {
            if let Some(value) = value {
                spec[field] = value.clone();
            }
        }
        let resources = &mut spec["containers"][0]["resources"];
        for part in ["requests", "limits"] {
            let more = wanted.resources.as_ref().and_then(|resources| resources[part].as_object());
            for (name, amount) in more.into_iter().flatten() {
                resources[part][name] = amount.clone();
            }
        }
    }
}

/// Copies labels or annotations of a template over the existing ones.
pub fn overlay(metadata: &mut Value, field: &str, more: &BTreeMap<String, String>) {
    if more.is_empty() {
        return;
    }
    if !metadata[field].is_object() {
        metadata[field] = Value::Object(Map::new());
    }
    for (name, value) in more {
        metadata[field][name] = value.as_str().into();
    }
}
