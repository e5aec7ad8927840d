//! One meaning for each type name.

use std::collections::BTreeMap;

use super::{check, identifier, sources};

/// Type names that each machine of `reconcile` has for its own, told apart by the module.
const OF_MACHINES: [&str; 3] = ["Observed", "Action", "Outcome"];
/// Most types of one name.
const NAMESAKES: usize = 2;

#[test]
fn a_type_name_has_one_meaning() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources("src") {
        for line in source.text.lines().take(source.height()) {
            let Some(name) = defined_type(line) else { continue };
            defined.entry(name).or_default().push(source.path.display().to_string());
        }
    }
    let is_of_machine = |name: &str, path: &String| {
        OF_MACHINES.contains(&name) && path.starts_with("src/reconcile/")
    };
    check(defined.into_iter().filter_map(|(name, mut paths)| {
        paths.retain(|path| !is_of_machine(&name, path));
        (paths.len() > NAMESAKES).then(|| format!("{name} is defined in {}", paths.join(", ")))
    }));
}

/// The type that a line outside of functions defines.
fn defined_type(line: &str) -> Option<String> {
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let (keyword, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type"].contains(&keyword);
    is_type.then(|| identifier(rest))
}

#[test]
fn the_check_of_type_names_sees_every_form() {
    for (line, name) in [
        ("pub(super) struct Page<T> {", Some("Page")),
        ("pub enum Known {", Some("Known")),
        ("type Asked = (Care, u8);", Some("Asked")),
        ("trait Look: Send {", Some("Look")),
        ("    struct Local;", None),
        ("pub fn page() {", None),
    ] {
        assert_eq!(defined_type(line).as_deref(), name, "{line}");
    }
}
