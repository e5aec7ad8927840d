//! The only styles that reach a terminal: whatever is coloured is coloured by them, and nothing else gets through.

use anstyle::{AnsiColor, Effects, Reset, Style};

/// Makes the colours and the list of them from one row of names, so that none can be used that would not get through.
macro_rules! inks {
    ($($(#[$doc:meta])* $ink:ident,)+) => {
        /// A colour of ours or of the log's.
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
    /// What is good.
    Green,
    /// What is bad.
    Red,
    /// What is neither yet, and what somebody should look at.
    Yellow,
    /// What helps.
    Cyan,
    /// `DEBUG` in the log.
    Blue,
    /// `TRACE` in the log.
    Magenta,
}

/// Effects of ours (bold) and of the log (dimmed, italic).
const EFFECTS: [Effects; 3] = [Effects::BOLD, Effects::DIMMED, Effects::ITALIC];

impl Ink {
    /// A word in this colour.
    pub(super) fn word(self, word: &str) -> String {
        painted(self.style(), word)
    }

    /// What a message begins with, in this colour.
    pub(super) fn label(self, label: &str) -> String {
        painted(self.style().bold(), label)
    }

    fn style(self) -> Style {
        Style::new().fg_color(Some(self.colour().into()))
    }
}

fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The style that a text begins with, if it is one of these.
pub(super) fn style_at_start(text: &str) -> Option<&str> {
    // Most characters begin none.
    if !text.starts_with('\u{1b}') {
        return None;
    }
    let colours = Ink::ALL.iter().map(|ink| ink.style().render().to_string());
    let effects = EFFECTS.iter().map(|effect| effect.render().to_string());
    let mut known = colours.chain(effects).chain([Reset.render().to_string()]);
    known.find_map(|style| text.get(..style.len()).filter(|start| **start == style))
}
