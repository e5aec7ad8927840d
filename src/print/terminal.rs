//! Abilities of the terminal, by the environment's description.

use std::env;

/// Returns whether the terminal moves its cursor and knows colours; a terminal named `dumb` does
/// not, and nothing is known of a terminal without a name.
pub fn is_capable() -> bool {
    is_capable_as(env::var("TERM").ok().as_deref())
}

/// Returns the columns of the terminal on standard output; `None` if the output goes elsewhere or the size is unknown.
pub fn width() -> Option<usize> {
    let size = console::Term::stdout().size_checked();
    size.map(|(_, columns)| usize::from(columns)).filter(|columns| *columns > 0)
}

fn is_capable_as(name: Option<&str>) -> bool {
    match name {
        // Windows names none of its terminals, and all of them can.
        None | Some("") => cfg!(windows),
        Some(name) => name != "dumb",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_and_one_without_a_name_can_do_nothing() {
        for (name, expected) in [
            (Some("xterm-256color"), true),
            (Some("linux"), true),
            (Some("dumb"), false),
            (Some(""), cfg!(windows)),
            (None, cfg!(windows)),
        ] {
            assert_eq!(is_capable_as(name), expected, "{name:?}");
        }
    }
}
