//! Colour, decided once for the whole process.

use std::env;
use std::io::{IsTerminal as _, stderr, stdout};

use super::palette::Ink;
use super::terminal;

/// Values of `--color`.
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

/// Wishes about colour in the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ColourEnvironment {
    /// `NO_COLOR` is set and not empty.
    no_color: bool,
    /// `CLICOLOR_FORCE` is set and not `0`.
    force: bool,
    /// `TERM` names a terminal without colours, or no terminal.
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
    /// Decides for this process, and sets the decision in the libraries that would decide by themselves.
    pub fn settle(choice: ColourChoice) -> Self {
        let is = |name: &str, test: fn(&str) -> bool| env::var(name).is_ok_and(|v| test(&v));
        let wishes = ColourEnvironment {
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

/// Decides for one stream: a flag beats the environment, `NO_COLOR` beats `CLICOLOR_FORCE`, else a terminal gets colours.
fn decide(choice: ColourChoice, wishes: ColourEnvironment, is_terminal: bool) -> Colour {
    let coloured = match choice {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto if wishes.no_color => false,
        ColourChoice::Auto if wishes.force => true,
        ColourChoice::Auto => is_terminal && !wishes.dumb,
    };
    if coloured { Colour::On } else { Colour::Off }
}

/// Whether words for good and bad are coloured as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Text only.
    #[default]
    Off,
    /// Text with ANSI escapes.
    On,
}

/// Urgency of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Something is wrong.
    Wrong,
    /// Something may become wrong.
    Doubtful,
    /// Nothing is wrong.
    Fine,
}

impl Colour {
    /// Returns a text in the colour of its weight; the colour only repeats the meaning of the words.
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

    fn check(choice: ColourChoice, wishes: ColourEnvironment, is_terminal: bool, expected: Colour) {
        assert_eq!(decide(choice, wishes, is_terminal), expected, "{choice:?} {wishes:?}");
    }

    #[test]
    fn a_terminal_is_coloured_and_a_pipe_is_not() {
        check(ColourChoice::Auto, ColourEnvironment::default(), true, Colour::On);
        check(ColourChoice::Auto, ColourEnvironment::default(), false, Colour::Off);
        check(
            ColourChoice::Auto,
            ColourEnvironment { dumb: true, ..ColourEnvironment::default() },
            true,
            Colour::Off,
        );
    }

    #[test]
    fn the_environment_beats_the_terminal_and_refusing_beats_forcing() {
        let force = ColourEnvironment { force: true, ..ColourEnvironment::default() };
        check(ColourChoice::Auto, force, false, Colour::On);
        check(ColourChoice::Auto, ColourEnvironment { no_color: true, ..force }, true, Colour::Off);
    }

    #[test]
    fn the_flag_beats_everything() {
        let no_color = ColourEnvironment { no_color: true, ..ColourEnvironment::default() };
        check(ColourChoice::Always, no_color, false, Colour::On);
        let force = ColourEnvironment { force: true, ..ColourEnvironment::default() };
        check(ColourChoice::Never, force, true, Colour::Off);
    }
}
