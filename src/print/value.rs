//! One JSON value as text, as kubectl writes it.

use serde_json::Value;

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
    use serde_json::json;

    #[test]
    fn nested_values_are_written_as_kubectl_writes_them() {
        let value = json!({"a": ["x", 1, null], "b": {"c": true}});
        assert_eq!(plain(&value), "map[a:[x 1 <nil>] b:map[c:true]]");
        assert_eq!(bare(&value), r#"{"a":["x",1,null],"b":{"c":true}}"#);
        assert_eq!(bare(&json!("x y")), "x y");
    }
}
