//! The list of behaviours that `ca --behave` accepts.

use serde_json::{Value, json};

use crate::ca::behaviour;
use crate::print::colour::Colour;
use crate::print::table::{Headers, NONE, Table};

/// Behaviours of `--behave`, for programs.
pub(super) fn report() -> Value {
    let behaviours = behaviour::kit().map(|behaviour| {
        let value = behaviour.value;
        let value = value.default_value().map(|it| json!({"is": value.word(), "default": it}));
        let mut entry = json!({
            "row": behaviour.row,
            "name": behaviour.name,
            "server": behaviour.does,
            "client": behaviour.reaction,
        });
        if let Some(value) = value {
            entry["value"] = value;
        }
        entry
    });
    json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "BehaviourList",
        "behaviours": behaviours.collect::<Vec<_>>(),
    })
}

/// Behaviours of `--behave`, as a table for people.
pub(super) fn table() -> String {
    let mut table = Table::new(["ROW", "NAME", "VALUE", "THE SERVER", "THE CLIENT SHOULD"]);
    for behaviour in behaviour::kit() {
        let value = behaviour.value;
        let value = value.default_value().map(|default| format!("{} [{default}]", value.word()));
        table.row([
            behaviour.row.to_string(),
            behaviour.name.to_owned(),
            value.unwrap_or_else(|| NONE.to_owned()),
            behaviour.does.to_owned(),
            behaviour.reaction.to_owned(),
        ]);
    }
    table.render(Headers::Shown, Colour::Off)
}
