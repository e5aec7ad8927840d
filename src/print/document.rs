//! Objects as JSON and YAML, as `kubectl get -o json` and `-o yaml` write them; and one JSON value as text, as kubectl
//! writes it elsewhere.

use serde_json::{Value, json};

/// Fields of the metadata that the author of a manifest sets.
const AUTHOR_FIELDS: [&str; 4] = ["annotations", "labels", "name", "namespace"];

/// Writes JSON with four blanks of indentation and sorted keys, newline included.
pub fn json(value: &Value) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    match serde::Serialize::serialize(value, &mut serializer) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned() + "\n",
        // Writing a JSON value into memory cannot fail.
        Err(_) => format!("{value}\n"),
    }
}

/// Writes JSON on one line, newline included.
pub fn json_line(value: &Value) -> String {
    format!("{value}\n")
}

/// Writes YAML with sorted keys: two blanks of indentation, lists as deep as their key, `|` for texts of several lines.
///
/// Long lines are not folded, so that they can be searched for.
pub fn yaml(value: &Value) -> String {
    let options = serde_yaml::ser_options! {
        compact_list_indent: true,
        folded_wrap_chars: usize::MAX,
    };
    // Every JSON value has a form in YAML; JSON itself is one.
    let text = serde_yaml::to_string_with_options(value, options);
    text.unwrap_or_else(|_| json(value))
}

/// Wraps objects into a `v1` List.
pub fn list(items: Vec<Value>) -> Value {
    let mut list = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}});
    list["items"] = Value::Array(items);
    list
}

/// Copies an object without `metadata.managedFields`, which kubectl hides too.
pub fn shown(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Copies an object as a manifest that any store takes: without the status and the metadata that the object's store sets.
pub fn manifest(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| AUTHOR_FIELDS.contains(&field.as_str()));
    }
    object
}

/// Writes a value as `describe` and `custom-columns` do: texts bare, lists as `[a b]`, objects as `map[k:v]`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{key}:{}", plain(value)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
    }
}

/// Writes a value as `jsonpath` does: texts bare, everything else as JSON.
pub(super) fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Reads a text by JSON pointer, empty when absent.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check() -> Value {
        shown(&json!({
            "kind": "Secret", "apiVersion": "v1",
            "metadata": {"name": "web-tls", "managedFields": [{"manager": "x"}], "labels": {}},
            "spec": {"dnsNames": ["a.example.com", "*.example.com"], "flag": "yes", "number": "1", "empty": "", "none": null,
                "solvers": [{"http01": {"ingress": {}}, "selector": {"dnsNames": ["a"]}}],
                "text": "first\nsecond\n", "cut": "first\nsecond",
                "message": "Failed to wait for order resource \"web-1-2726938748\" to become ready: order is in \"invalid\" state: "},
        }))
    }

    #[test]
    fn a_manifest_says_nothing_that_only_the_store_may_say() {
        let stored = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": {"tls.crt": ""},
            "metadata": {
                "name": "web-tls", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"},
                "uid": "1", "resourceVersion": "47", "creationTimestamp": "2026-11-23T04:00:00Z", "generation": 1,
                "ownerReferences": [{}], "managedFields": [{}], "finalizers": ["e"], "selfLink": "/",
            },
            "status": {},
        });
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": {"tls.crt": ""},
            "metadata": {
                "name": "web-tls", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"},
            },
        });
        assert_eq!(manifest(&stored), expected);
    }

    #[test]
    fn json_looks_as_kubectls() {
        let text = json(&json!({"b": [1, {}], "a": {"c": []}}));
        insta::assert_snapshot!(text, @r#"
        {
            "a": {
                "c": []
            },
            "b": [
                1,
                {}
            ]
        }
        "#);
        assert_eq!(json_line(&json!({"b": 1, "a": 2})), "{\"a\":2,\"b\":1}\n");
    }

    #[test]
    fn yaml_looks_as_kubectls() {
        insta::assert_snapshot!(yaml(&check()), @r#"
        apiVersion: v1
        kind: Secret
        metadata:
          labels: {}
          name: web-tls
        spec:
          cut: |-
            first
            second
          dnsNames:
          - a.example.com
          - "*.example.com"
          empty: ""
          flag: "yes"
          message: "Failed to wait for order resource \"web-1-2726938748\" to become ready: order is in \"invalid\" state: "
          none: null
          number: "1"
          solvers:
          - http01:
              ingress: {}
            selector:
              dnsNames:
              - a
          text: |
            first
            second
        "#);
    }

    #[test]
    fn lists_are_of_kind_list() {
        insta::assert_snapshot!(list(vec![json!(1)]), @r#"{"apiVersion":"v1","items":[1],"kind":"List","metadata":{"resourceVersion":""}}"#);
    }

    #[test]
    fn nested_values_are_written_as_kubectl_writes_them() {
        let value = json!({"a": ["x", 1, null], "b": {"c": true}});
        assert_eq!(plain(&value), "map[a:[x 1 <nil>] b:map[c:true]]");
        assert_eq!(bare(&value), r#"{"a":["x",1,null],"b":{"c":true}}"#);
        assert_eq!(bare(&json!("x y")), "x y");
    }
}
