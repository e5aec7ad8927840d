//! Field names as headings: `dnsNames` becomes `Dns Names`.

/// Words that are written in capitals throughout.
const ACRONYMS: [&str; 4] = ["API", "GUID", "UID", "URL"];

/// Writes a field's name as the heading that `kubectl describe` shows.
///
/// Names with anything but letters and hyphens stay as they are (`http01`).
pub(super) fn heading(field: &str) -> String {
    if !field.chars().all(|c| c.is_alphabetic() || c == '-') {
        return field.to_owned();
    }
    words(field).iter().map(|word| title(word)).collect::<Vec<_>>().join(" ")
}

/// Splits a name where the kind of letter changes. Three or more capitals stay with the next word
/// (`TLSVerify`); of two capitals the second starts the next word (`A`, `Bc`).
fn words(field: &str) -> Vec<String> {
    let letters: Vec<char> = field.chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut start = 0;
    while start < letters.len() {
        let run = |from: usize, kind: fn(&char) -> bool| {
            from + letters[from..].iter().take_while(|c| kind(c)).count()
        };
        let mut end = run(start, |c| c.is_uppercase());
        let capitals = end - start;
        if capitals == 2 && letters.get(end).is_some_and(|c| c.is_lowercase()) {
            end -= 1;
        } else if capitals > 0 {
            end = run(end, |c| c.is_lowercase());
        } else if letters[start] == '-' {
            end = run(start, |c| *c == '-');
        } else {
            end = run(start, |c| !c.is_uppercase() && *c != '-');
        }
        words.push(letters[start..end].iter().collect());
        start = end;
    }
    words
}

fn title(word: &str) -> String {
    let capitals = word.to_uppercase();
    if ACRONYMS.contains(&capitals.as_str()) {
        return capitals;
    }
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(field: &str, expected: &str) {
        assert_eq!(heading(field), expected);
    }

    #[test]
    fn headings_are_split_as_kubectl_splits_them() {
        check("dnsNames", "Dns Names");
        check("apiVersion", "API Version");
        check("uid", "UID");
        check("url", "URL");
        check("authorizationURL", "Authorization URL");
        check("finalizeURL", "Finalize URL");
        check("skipTLSVerify", "Skip TLSVerify");
        check("gatewayHTTPRoute", "Gateway HTTPRoute");
        check("isCA", "Is CA");
        check("keyID", "Key ID");
        check("otherABc", "Other A Bc");
        check("cloudDNS", "Cloud DNS");
        check("use-my-solver", "Use - My - Solver");
    }

    #[test]
    fn names_with_digits_or_signs_stay() {
        check("http01", "http01");
        check("app.kubernetes.io/name", "app.kubernetes.io/name");
    }
}
