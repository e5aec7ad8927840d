//! `-o custom-columns=NAME:.metadata.name,…`: a table of the values that paths find.

use serde_json::Value;

use super::colour::Colour;
use super::document::plain;
use super::jsonpath::Path;
use super::paths::JsonPathError;
use super::table::{Headers, NONE, Table};

/// Headings, and the path that fills each column.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomColumns(Vec<(String, Path)>);

impl CustomColumns {
    /// Reads `HEADING:PATH,HEADING:PATH`; commas in brackets or quotes belong to the path.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let mut columns = Vec::new();
        let mut rest = text;
        loop {
            let end = super::paths::end_of(rest, |c| c == ',').unwrap_or(rest.len());
            let column = &rest[..end];
            let (heading, path) = column.split_once(':').ok_or_else(|| {
                JsonPathError(format!("cannot read the column \"{column}\": it needs HEADING:PATH"))
            })?;
            columns.push((heading.to_owned(), Path::relaxed(path)?));
            if end == rest.len() {
                return Ok(Self(columns));
            }
            rest = &rest[end + 1..];
        }
    }

    /// Renders one row for each object; commas separate several values of one cell.
    pub fn render<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Value>,
        headers: Headers,
    ) -> String {
        let mut table = Table::new(self.0.iter().map(|(heading, _)| heading));
        for object in objects {
            table.row(self.0.iter().map(|(_, path)| {
                let values: Vec<String> = path.find(object).into_iter().map(plain).collect();
                if values.is_empty() { NONE.to_owned() } else { values.join(",") }
            }));
        }
        table.render(headers, Colour::Off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(columns: &str) -> String {
        let objects = [
            json!({"metadata": {"name": "web"}, "spec": {"dnsNames": ["a", "b"], "secretName": "web-tls"}}),
            json!({"metadata": {"name": "mail"}, "spec": {"dnsNames": ["c"]}}),
        ];
        CustomColumns::parse(columns).unwrap().render(&objects, Headers::Shown)
    }

    #[test]
    fn columns_show_what_their_paths_find() {
        let text = check(
            "NAME:.metadata.name,SECRET:{.spec.secretName},ALL:spec.dnsNames[*],BOTH:.spec.dnsNames[0,1]",
        );
        insta::assert_snapshot!(text, @"
        NAME   SECRET    ALL   BOTH
        web    web-tls   a,b   a,b
        mail   <none>    c     c
        ");
    }

    #[test]
    fn a_column_without_a_path_is_refused() {
        let refusal = CustomColumns::parse("NAME:.metadata.name,AGE").unwrap_err();
        assert_eq!(refusal.to_string(), "cannot read the column \"AGE\": it needs HEADING:PATH");
    }
}
