//! Reader for the simple XML of AWS: elements without attributes that matter, texts without mark-up.

use crate::solvers::dns01::api::Explanation;

/// Returns the text of the first element with that name.
pub(in super::super) fn first(xml: &str, name: &str) -> Option<String> {
    all(xml, name).next().map(plain)
}

/// Returns the content of each element with that name, in order.
pub(in super::super) fn all<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&open)?;
        let (inside, behind) = after.split_once(&close)?;
        rest = behind;
        Some(inside)
    })
}

/// Escapes a text for XML.
pub(in super::super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Removes the escapes of XML from a text.
fn plain(text: &str) -> String {
    let named = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("&apos;", "'")
        .replace("&#39;", "'");
    named.replace("&amp;", "&")
}

/// Reads `<ErrorResponse><Error><Code>…</Code><Message>…</Message></Error></ErrorResponse>`, as all services write it.
pub(crate) fn explain(body: &[u8]) -> Option<Explanation> {
    let body = std::str::from_utf8(body).ok()?;
    let code = first(body, "Code")?;
    let message = first(body, "Message").unwrap_or_default();
    // These messages name times, which a status must not contain.
    if message.contains("Signature expired") || message.contains("Signature not yet current") {
        let message = format!("{code}: the clock of this machine is wrong");
        return Some(Explanation { code, message });
    }
    let message = message.split("current date/time").next().unwrap_or_default();
    let message = message.trim_end_matches([':', ' ']);
    let message = if message.is_empty() { code.clone() } else { format!("{code}: {message}") };
    Some(Explanation { code, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_name_and_in_order() {
        let xml = r#"<?xml version="1.0"?><L xmlns="x"><Z><Id>1</Id></Z><Z><Id>a &amp;lt; b</Id></Z></L>"#;
        assert_eq!(all(xml, "Z").count(), 2);
        assert_eq!(first(xml, "Id").as_deref(), Some("1"));
        let second = all(xml, "Z").nth(1).unwrap();
        assert_eq!(first(second, "Id").as_deref(), Some("a &lt; b"));
        assert_eq!(first(xml, "Name"), None);
        assert_eq!(first("<Id>never closed", "Id"), None);
    }

    #[test]
    fn a_text_survives_there_and_back() {
        let text = "\"a\" & <b>";
        assert_eq!(plain(&escaped(text)), text);
    }
}
