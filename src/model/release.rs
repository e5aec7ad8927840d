//! Releases of programs, as image tags and labels have them.

use std::fmt;

/// Release, such as 1.21.2. A pre-release counts as its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// First and second number.
    line: (u32, u32),
    /// Third number.
    patch: u32,
}

impl Release {
    /// Builds the release of the given numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { line: (major, minor), patch }
    }

    /// Reads a tag or label such as `v1.21.2` or `1.21.2-alpine`; `None` if the text is no release.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let text = text.split(['-', '+', '_']).next().unwrap_or_default();
        let mut numbers = text.split('.').map(|number| number.parse::<u32>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = numbers.next().unwrap_or(Some(0))?;
        numbers.next().is_none().then_some(Self::new(major, minor, patch))
    }

    /// Returns the first and second number.
    pub fn line(self) -> (u32, u32) {
        self.line
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.line.0, self.line.1, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_releases() {
        for (text, expected) in [
            ("v1.21.2", Some("1.21.2")),
            ("1.18", Some("1.18.0")),
            ("v1.20.0-alpha.1", Some("1.20.0")),
            ("latest", None),
            ("v1", None),
            ("1.2.3.4", None),
        ] {
            assert_eq!(
                Release::parse(text).map(|it| it.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
        assert!(Release::new(1, 9, 9) < Release::new(1, 21, 0));
    }
}
