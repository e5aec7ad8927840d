//! Colour, decided once for the whole process.

use std::env;
use std::io::{IsTerminal as _, stderr, stdout};

use super::palette::Ink;
use super::terminal;

/// What `--color` may say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    /// Coloured on a terminal, unless NO_COLOR, TERM=dumb or no TERM says otherwise
    #[default]
    Auto,
    /// Coloured, wherever it goes
    Always,
    /// Text only
    Never,
}

/// What the environment says about colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wishes {
    /// `NO_COLOR` is set and not empty.
    no_color: bool,
    /// `CLICOLOR_FORCE` is set and not `0`.
    force: bool,
    /// The terminal knows no colours, or nobody says that it does.
    dumb: bool,
}

/// The decision for both streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Colours {
    /// Standard output.
    pub out: Colour,
    /// Standard error.
    pub talk: Colour,
}

impl Colours {
    /// Decides for this process, and tells the libraries that would decide by themselves.
    pub fn settle(choice: ColourChoice) -> Self {
        let is = |name: &str, test: fn(&str) -> bool| env::var(name).is_ok_and(|v| test(&v));
        let wishes = Wishes {
            no_color: is("NO_COLOR", |value| !value.is_empty()),
            force: is("CLICOLOR_FORCE", |value| !value.is_empty() && value != "0"),
            dumb: !terminal::is_capable(),
        };
        let out = decide(choice, wishes, stdout().is_terminal());
        let talk = decide(choice, wishes, stderr().is_terminal());
        console::set_colors_enabled(out == Colour::On);
        console::set_colors_enabled_stderr(talk == Colour::On);
        match choice {
            ColourChoice::Auto => anstream::ColorChoice::Auto,
            ColourChoice::Always => anstream::ColorChoice::Always,
            ColourChoice::Never => anstream::ColorChoice::Never,
        }
        .write_global();
        Self { out, talk }
    }
}

/// A flag beats the environment, refusing beats forcing, and a terminal is the default.
fn decide(choice: ColourChoice, wishes: Wishes, is_terminal: bool) -> Colour {
    let coloured = match choice {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto if wishes.no_color => false,
        ColourChoice::Auto if wishes.force => true,
        ColourChoice::Auto => is_terminal && !wishes.dumb,
    };
    if coloured { Colour::On } else { Colour::Off }
}

/// Whether words that tell good from bad are coloured as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Text only.
    #[default]
    Off,
    /// With ANSI escapes.
    On,
}

/// How much a line asks for somebody's eyes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Something is wrong.
    Wrong,
    /// Something may become wrong.
    Doubtful,
    /// Nothing is.
    Fine,
}

impl Colour {
    /// A text in the colour of its weight; that repeats what its words say.
    pub fn weighed(self, weight: Weight, text: &str) -> String {
        let ink = match weight {
            Weight::Wrong => Ink::Red,
            Weight::Doubtful => Ink::Yellow,
            Weight::Fine => Ink::Green,
        };
        match self {
            Self::On => ink.word(text),
            Self::Off => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(choice: ColourChoice, wishes: Wishes, is_terminal: bool, expected: Colour) {
        assert_eq!(decide(choice, wishes, is_terminal), expected, "{choice:?} {wishes:?}");
    }

    #[test]
    fn a_terminal_is_coloured_and_a_pipe_is_not() {
        check(ColourChoice::Auto, Wishes::default(), true, Colour::On);
        check(ColourChoice::Auto, Wishes::default(), false, Colour::Off);
        check(ColourChoice::Auto, Wishes { dumb: true, ..Wishes::default() }, true, Colour::Off);
    }

    #[test]
    fn the_environment_beats_the_terminal_and_refusing_beats_forcing() {
        let force = Wishes { force: true, ..Wishes::default() };
        check(ColourChoice::Auto, force, false, Colour::On);
        check(ColourChoice::Auto, Wishes { no_color: true, ..force }, true, Colour::Off);
    }

    #[test]
    fn the_flag_beats_everything() {
        let no_color = Wishes { no_color: true, ..Wishes::default() };
        check(ColourChoice::Always, no_color, false, Colour::On);
        let force = Wishes { force: true, ..Wishes::default() };
        check(ColourChoice::Never, force, true, Colour::Off);
    }
}
