//! The only styles that reach a terminal: all colours use these styles, and no other escape sequence gets through.

use anstyle::{AnsiColor, Effects, Reset, Style};

/// Defines the colours and the list of all colours from one row of names, so that every colour in use gets through.
macro_rules! inks {
    ($($(#[$doc:meta])* $ink:ident,)+) => {
        /// Colour of this program's messages or of the log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Ink {
            $($(#[$doc])* $ink,)+
        }

        impl Ink {
            /// Every colour.
            pub(super) const ALL: &[Self] = &[$(Self::$ink,)+];

            fn colour(self) -> AnsiColor {
                match self {
                    $(Self::$ink => AnsiColor::$ink,)+
                }
            }
        }
    };
}

inks! {
    /// Good states.
    Green,
    /// Bad states, and errors.
    Red,
    /// States that are neither good nor bad yet, and warnings.
    Yellow,
    /// Hints.
    Cyan,
    /// `DEBUG` in the log.
    Blue,
    /// `TRACE` in the log.
    Magenta,
}

/// Effects of this program's messages (bold) and of the log (dimmed, italic).
const EFFECTS: [Effects; 3] = [Effects::BOLD, Effects::DIMMED, Effects::ITALIC];

impl Ink {
    /// Returns a word in this colour.
    pub(super) fn word(self, word: &str) -> String {
        apply_style(self.style(), word)
    }

    /// Returns the label at the start of a message, in this colour.
    pub(super) fn label(self, label: &str) -> String {
        apply_style(self.style().bold(), label)
    }

    fn style(self) -> Style {
        Style::new().fg_color(Some(self.colour().into()))
    }
}

fn apply_style(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Returns the style at the start of a text, if the style is one of this palette.
pub(super) fn style_at_start(text: &str) -> Option<&str> {
    // Most characters begin no style.
    if !text.starts_with('\u{1b}') {
        return None;
    }
    let colours = Ink::ALL.iter().map(|ink| ink.style().render().to_string());
    let effects = EFFECTS.iter().map(|effect| effect.render().to_string());
    let mut known = colours.chain(effects).chain([Reset.render().to_string()]);
    known.find_map(|style| text.get(..style.len()).filter(|start| **start == style))
}
