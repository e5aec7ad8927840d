//! Columns of labels, after all other columns: `-L app` and `--show-labels`.

use serde_json::Value;

use super::table::NONE;

/// Labels that a table shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelColumns {
    /// Labels with a column each.
    pub each: Vec<String>,
    /// Whether one more column shows all labels.
    pub all: bool,
}

impl LabelColumns {
    /// Returns the headings: the part of each label's name after the slash, as in kubectl.
    pub fn titles(&self) -> impl Iterator<Item = String> {
        let bare = |label: &String| label.rsplit('/').next().unwrap_or_default().to_uppercase();
        self.each.iter().map(bare).chain(self.all.then(|| "LABELS".to_owned()))
    }

    /// Returns the cells of an object.
    pub fn cells(&self, object: &Value) -> impl Iterator<Item = String> {
        let labels = object.pointer("/metadata/labels");
        let value = move |name: &String| {
            let value = labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
            value.unwrap_or(NONE).to_owned()
        };
        self.each.iter().map(value).chain(self.all.then(|| every(labels)))
    }
}

fn every(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let pair =
        |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or(""));
    let pairs: Vec<String> = labels.map(pair).collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_shown_as_kubectl_shows_them() {
        let each = ["team", "example.com/tier"].map(str::to_owned).to_vec();
        let shown = LabelColumns { each, all: true };
        assert_eq!(shown.titles().collect::<Vec<_>>(), ["TEAM", "TIER", "LABELS"]);
        let object = json!({"metadata": {"labels": {"app": "web", "example.com/tier": "front"}}});
        let cells: Vec<String> = shown.cells(&object).collect();
        assert_eq!(cells, ["<none>", "front", "app=web,example.com/tier=front"]);
        let bare = json!({"metadata": {}});
        assert_eq!(shown.cells(&bare).collect::<Vec<_>>(), [NONE; 3]);
    }
}
