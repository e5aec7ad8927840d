//! kubectl's JSONPath templates: text, `{paths}`, `{"quoted\n"}`, `{range path}..{end}`.

use std::cmp::Ordering;

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

use super::document::bare;
use super::paths::{self, JsonPathError, Root};

/// One path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    root: Root,
    /// Queries of RFC 9535; a union of kubectl's that needs several queries becomes several.
    queries: Vec<JpQuery>,
}

impl Path {
    /// Reads a path as `custom-columns` and `--sort-by` take it: `{.a.b}`, `.a.b` or `a.b`.
    pub fn relaxed(text: &str) -> Result<Self, JsonPathError> {
        let text = text.trim();
        let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        match inner.chars().next() {
            Some('.' | '[' | '$' | '@') => Self::parse(inner),
            Some(_) => Self::parse(&format!(".{inner}")),
            None => Err(JsonPathError("the path is empty".to_owned())),
        }
    }

    fn parse(text: &str) -> Result<Self, JsonPathError> {
        let (root, texts) = paths::standard(text)?;
        let queries = texts.iter().map(|query| {
            jsonpath_rust::parser::parse_json_path(query)
                .map_err(|_| JsonPathError(format!("cannot read the path \"{text}\"")))
        });
        Ok(Self { root, queries: queries.collect::<Result<_, _>>()? })
    }

    /// Finds all values; missing values are left out.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        self.from(object, object)
    }

    /// Orders two objects by the first value that the path finds, as `--sort-by` does: numbers by
    /// value, other values as text, and missing values first.
    pub fn compare(&self, left: &Value, right: &Value) -> Ordering {
        let first = |object| self.find(object).first().copied();
        match (first(left), first(right)) {
            (Some(Value::Number(left)), Some(Value::Number(right))) => {
                let (left, right) = (left.as_f64(), right.as_f64());
                left.partial_cmp(&right).unwrap_or(Ordering::Equal)
            }
            (left, right) => left.map(bare).cmp(&right.map(bare)),
        }
    }

    fn from<'a>(&self, root: &'a Value, current: &'a Value) -> Vec<&'a Value> {
        let start = match self.root {
            Root::Document => root,
            Root::Current => current,
        };
        let found = self.queries.iter().filter_map(|query| js_path_process(query, start).ok());
        found.flatten().map(jsonpath_rust::query::QueryRef::val).collect()
    }
}

/// A template as `-o jsonpath=` takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Node>);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Text(String),
    Path(Path),
    Range(Path, Vec<Self>),
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let mut open: Vec<(Path, Vec<Node>)> = Vec::new();
        let mut nodes = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            if start > 0 {
                nodes.push(Node::Text(rest[..start].to_owned()));
            }
            let (inside, after) = block(&rest[start + 1..])?;
            rest = after;
            for word in words(inside)? {
                match word {
                    Word::End => {
                        let (path, outer) = open.pop().ok_or_else(|| {
                            JsonPathError("{end} without a {range} before it".to_owned())
                        })?;
                        let body = std::mem::replace(&mut nodes, outer);
                        nodes.push(Node::Range(path, body));
                    }
                    Word::Range(path) => {
                        open.push((Path::parse(path)?, std::mem::take(&mut nodes)));
                    }
                    Word::Quoted(text) => nodes.push(Node::Text(text)),
                    Word::Path(path) => nodes.push(Node::Path(Path::parse(path)?)),
                }
            }
        }
        if !open.is_empty() {
            return Err(JsonPathError("{range} without an {end} after it".to_owned()));
        }
        if !rest.is_empty() {
            nodes.push(Node::Text(rest.to_owned()));
        }
        Ok(Self(nodes))
    }

    /// Renders the template for an object; blanks separate several values of one path.
    pub fn render(&self, object: &Value) -> String {
        let mut out = String::new();
        render(&self.0, object, object, &mut out);
        out
    }

    /// Collects the values of all paths, as `-o jsonpath-as-json=` prints them.
    pub fn values(&self, object: &Value) -> Vec<Value> {
        let mut out = Vec::new();
        collect(&self.0, object, object, &mut out);
        out
    }
}

fn render(nodes: &[Node], root: &Value, current: &Value, out: &mut String) {
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Path(path) => {
                let values: Vec<String> = path.from(root, current).into_iter().map(bare).collect();
                out.push_str(&values.join(" "));
            }
            Node::Range(path, body) => {
                for value in path.from(root, current) {
                    render(body, root, value, out);
                }
            }
        }
    }
}

fn collect(nodes: &[Node], root: &Value, current: &Value, out: &mut Vec<Value>) {
    for node in nodes {
        match node {
            Node::Text(_) => {}
            Node::Path(path) => out.extend(path.from(root, current).into_iter().cloned()),
            Node::Range(path, body) => {
                for value in path.from(root, current) {
                    collect(body, root, value, out);
                }
            }
        }
    }
}

/// Splits after the `}` that closes a block; braces in quotes do not count.
fn block(text: &str) -> Result<(&str, &str), JsonPathError> {
    let end = paths::end_of(text, |c| c == '}')
        .ok_or_else(|| JsonPathError(format!("missing }} after \"{{{text}\"")))?;
    Ok((&text[..end], &text[end + 1..]))
}

enum Word<'a> {
    End,
    Path(&'a str),
    Quoted(String),
    Range(&'a str),
}

fn words(inside: &str) -> Result<Vec<Word<'_>>, JsonPathError> {
    let mut words = Vec::new();
    let mut rest = inside.trim();
    if let Some(path) = rest.strip_prefix("range").filter(|r| r.starts_with(char::is_whitespace)) {
        return Ok(vec![Word::Range(path.trim())]);
    }
    while !rest.is_empty() {
        let end = paths::end_of(rest, char::is_whitespace).unwrap_or(rest.len());
        let word = &rest[..end];
        rest = rest[end..].trim_start();
        words.push(match word.chars().next() {
            _ if word == "end" => Word::End,
            Some('"' | '\'') => Word::Quoted(paths::unquote(word)?),
            Some('.' | '[' | '$' | '@') => Word::Path(word),
            _ => {
                return Err(JsonPathError(format!(
                    "cannot read \"{word}\": a path starts with a dot"
                )));
            }
        });
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list() -> Value {
        json!({"kind": "List", "items": [
            {"metadata": {"name": "web", "annotations": {"cert-manager.io/issuer-name": "acme"}},
             "spec": {"dnsNames": ["a.example.com", "b.example.com"], "it's": 1},
             "status": {"revision": 3, "conditions": [
                {"type": "Issuing", "status": "False"}, {"type": "Ready", "status": "True"}]}},
            {"metadata": {"name": "mail"}, "spec": {"dnsNames": ["mail.example.com"]}, "status": {"revision": 12}},
        ]})
    }

    fn check(template: &str, expected: &str) {
        let rendered = Template::parse(template).unwrap().render(&list());
        assert_eq!(rendered, expected, "{template}");
    }

    fn refused(template: &str, expected: &str) {
        assert_eq!(Template::parse(template).unwrap_err().to_string(), expected, "{template}");
    }

    #[test]
    fn a_path_that_would_take_all_time_or_memory_is_refused() {
        let long = format!("{{{}}}", ".{".repeat(3000));
        refused(&long, "a path is longer than 4096 bytes");
        let unions = "['a','b']".repeat(40);
        let why = "its unions give too many paths";
        refused(&format!("{{{unions}}}"), &format!("cannot read the path \"{unions}\": {why}"));
    }

    #[test]
    fn paths_are_filled_in() {
        check("{.kind}", "List");
        check("{$.kind}", "List");
        check("{.items[*].metadata.name}", "web mail");
        check("{.items[0].status.revision}, {.items[1].status.revision}", "3, 12");
        check("{.items[-1].metadata.name}", "mail");
        check("{.items[0:1].metadata.name}", "web");
        check("{.items[0].spec.dnsNames}", r#"["a.example.com","b.example.com"]"#);
        check("{..name}", "web mail");
        check("{ .kind }{\"\\t\"}{'x y'}", "List\tx y");
        check("no braces", "no braces");
    }

    #[test]
    fn what_is_missing_prints_nothing() {
        check("<{.items[*].status.state}>", "<>");
        check("<{.items[7].metadata}>", "<>");
    }

    #[test]
    fn keys_with_dots_are_escaped() {
        let escaped = r"{.items[0].metadata.annotations.cert-manager\.io/issuer-name}";
        check(escaped, "acme");
        check(r"{.items[0].metadata.annotations['cert-manager\.io/issuer-name']}", "acme");
        check(r#"{.items[0].spec["it's"]}"#, "1");
    }

    #[test]
    fn filters_choose() {
        check(r#"{.items[0].status.conditions[?(@.type=="Ready")].status}"#, "True");
        check("{.items[?(@.status.revision > 5)].metadata.name}", "mail");
        check("{.items[?(@.metadata.annotations)].metadata.name}", "web");
        let dotted = r"{.items[?(@.metadata.annotations.cert-manager\.io/issuer-name=='acme')].metadata.name}";
        check(dotted, "web");
    }

    #[test]
    fn unions_list_one_after_the_other() {
        check("{.items[0,1].metadata.name}", "web mail");
        check("{.items[*]['metadata.name', 'status.revision']}", "web mail 3 12");
    }

    #[test]
    fn ranges_repeat_their_body() {
        check(
            r#"{range .items[*]}{.metadata.name}{":"}{range .spec.dnsNames[*]} {@}{end}{"\n"}{end}"#,
            "web: a.example.com b.example.com\nmail: mail.example.com\n",
        );
        check("{range .items[*]}{$.kind}/{.metadata.name} {end}", "List/web List/mail ");
    }

    #[test]
    fn values_keep_their_types() {
        let template = Template::parse("{.items[*].status.revision} and {.kind}").unwrap();
        assert_eq!(template.values(&list()), [json!(3), json!(12), json!("List")]);
    }

    #[test]
    fn mistakes_are_named() {
        refused("{.a", "missing } after \"{.a\"");
        refused("{end}", "{end} without a {range} before it");
        refused("{range .a[*]}x", "{range} without an {end} after it");
        refused("{metadata.name}", "cannot read \"metadata.name\": a path starts with a dot");
        refused("{.a[0}", "missing } after \"{.a[0}\"");
        refused("{.a[?(@.b=~1)]}", "cannot read the path \".a[?(@.b=~1)]\"");
        refused("{.a.}", "cannot read the path \".a.\": a name is missing");
    }

    #[test]
    fn columns_and_sorting_take_bare_paths() {
        for text in ["kind", ".kind", "{.kind}"] {
            assert_eq!(Path::relaxed(text).unwrap().find(&list()), [&json!("List")], "{text}");
        }
        assert!(Path::relaxed("").is_err());
    }

    #[test]
    fn objects_are_sorted_by_number_or_text() {
        for (path, expected) in [(".n", ["none", "b", "a"]), (".metadata.name", ["a", "b", "none"])]
        {
            let mut objects = [
                json!({"n": 10, "metadata": {"name": "a"}}),
                json!({"n": 9, "metadata": {"name": "b"}}),
                json!({"metadata": {"name": "none"}}),
            ];
            let path = Path::relaxed(path).unwrap();
            objects.sort_by(|left, right| path.compare(left, right));
            let names =
                objects.each_ref().map(|object| object["metadata"]["name"].as_str().unwrap());
            assert_eq!(names, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_template_makes_us_panic(template in r#"([{}\[\].,'"\\@$?(): *=<n0ü]|range |end)*"#) {
            if let Ok(template) = Template::parse(&template) {
                template.render(&list());
            }
        }
    }
}
