//! Ids of causes: stable, since people and programs keep them. A new cause gets the next number of its family. The
//! number of a cause that is given up stays unused, so that no id ever means two things.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::text::closest;

/// Makes families, ids, and the lists of both from one table.
macro_rules! causes {
    ($($(#[$doc:meta])* $family:ident $title:literal: $($id:ident)+;)+) => {
        /// Family of related causes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CauseFamily {
            $($(#[$doc])* $family,)+
        }

        impl CauseFamily {
            /// Every family, in the order of the catalogue.
            pub const ALL: &[Self] = &[$(Self::$family,)+];

            /// Subject of the family's causes.
            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$family => $title,)+
                }
            }

            fn letters(self) -> &'static str {
                match self {
                    $(Self::$family => stringify!($family),)+
                }
            }
        }

        /// Id of a cause, such as `HTTP-10`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the catalogue tells what each means")]
        pub enum CauseId {
            $($($id,)+)+
        }

        impl CauseId {
            /// Every id, in the order of the catalogue.
            pub const ALL: &[Self] = &[$($(Self::$id,)+)+];

            /// Returns the family of the cause.
            pub fn family(self) -> CauseFamily {
                match self {
                    $($(Self::$id)|+ => CauseFamily::$family,)+
                }
            }

            /// Returns the name of the variant: `Http10` for `HTTP-10`.
            fn word(self) -> &'static str {
                match self {
                    $($(Self::$id => stringify!($id),)+)+
                }
            }
        }
    };
}

causes! {
    /// Manifests.
    Cfg "Issuer, solvers, names and CSR":
        Cfg01 Cfg02 Cfg03 Cfg04 Cfg05 Cfg06 Cfg07 Cfg08 Cfg09 Cfg10
        Cfg11 Cfg12 Cfg13 Cfg14 Cfg15 Cfg16 Cfg17 Cfg18 Cfg19 Cfg20
        Cfg21;
    /// Accounts.
    Acc "The account at the CA":
        Acc01 Acc02 Acc03 Acc04 Acc05 Acc06 Acc07 Acc08 Acc09 Acc10 Acc11 Acc12;
    /// Limits.
    Lim "Limits and outages of the CA":
        Lim01 Lim02 Lim03 Lim04 Lim05 Lim06 Lim07 Lim08;
    /// Orders.
    Ord "Where an order or a Certificate stands":
        Ord01 Ord02 Ord03 Ord04 Ord05 Ord06 Ord07 Ord08
        Ord09 Ord10 Ord11 Ord12 Ord13 Ord14 Ord15 Ord16 Ord17 Ord18 Ord19;
    /// Controllers.
    Ctl "The controller and its cluster":
        Ctl01 Ctl02 Ctl03 Ctl04 Ctl05 Ctl06 Ctl07 Ctl08
        Ctl09 Ctl10 Ctl11 Ctl12 Ctl13 Ctl14 Ctl15 Ctl16 Ctl17 Ctl18;
    /// HTTP-01.
    Http "HTTP-01":
        Http01 Http02 Http03 Http04 Http05 Http06 Http07 Http08 Http09 Http10 Http11 Http12
        Http13 Http14 Http15 Http16 Http17 Http18 Http19 Http20 Http21 Http22 Http23 Http24
        Http25 Http26 Http27 Http28 Http29 Http30 Http31 Http32 Http33 Http34 Http35 Http36
        Http37 Http38 Http39 Http40;
    /// Gateways.
    Gw "HTTP-01 by Gateway API":
        Gw01 Gw02 Gw03 Gw04 Gw05;
    /// TLS-ALPN-01.
    Tls "TLS-ALPN-01":
        Tls01 Tls02 Tls03 Tls04;
    /// Zones.
    Dns "The health of a zone, for every type of challenge":
        Dns01 Dns02 Dns03 Dns04 Dns05 Dns06 Dns07 Dns08 Dns09;
    /// DNS-01.
    D01 "DNS-01":
        D0101 D0102 D0103 D0104 D0105 D0106 D0107 D0108 D0109 D0110
        D0111 D0112 D0113 D0114 D0115 D0116 D0117 D0118 D0119 D0120
        D0121 D0122;
    /// DNS providers.
    Prv "DNS providers and webhooks":
        Prv01 Prv02 Prv03 Prv04 Prv05 Prv06 Prv07 Prv08
        Prv09 Prv10 Prv11 Prv12 Prv13 Prv14 Prv15 Prv16
        Prv17;
    /// CAA.
    Caa "CAA records":
        Caa01 Caa02 Caa03 Caa04 Caa05 Caa06 Caa07 Caa08 Caa09;
    /// DNS-PERSIST-01.
    Per "DNS-PERSIST-01":
        Per01 Per02 Per03 Per04 Per05 Per06 Per07;
    /// Surroundings.
    Env "The machine and its network":
        Env01 Env02 Env03 Env04 Env05 Env06 Env07 Env08;
    /// Leftovers.
    Hyg "Leftovers, and what goes wrong later":
        Hyg01 Hyg02 Hyg03 Hyg04 Hyg05 Hyg06 Hyg07 Hyg08 Hyg09;
    /// This program.
    Int "This program":
        Int01;
}

/// Error for a word that has the form of an id, and is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no cause {word}")]
pub struct UnknownCause {
    /// The word.
    pub word: String,
    /// The id that was probably meant.
    pub meant: Option<CauseId>,
}

impl CauseFamily {
    /// Returns the family that a word names, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|family| family.letters().eq_ignore_ascii_case(word))
    }

    /// Returns the ids of the family.
    pub fn ids(self) -> impl Iterator<Item = CauseId> {
        CauseId::ALL.iter().copied().filter(move |id| id.family() == self)
    }
}

impl fmt::Display for CauseFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.letters().to_ascii_uppercase())
    }
}

impl CauseId {
    /// Reports whether a word has the form of an id, whether or not the id exists.
    pub fn is_form(word: &str) -> bool {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        letters.len() < word.len() && (2..=6).contains(&letters.len()) && word.chars().all(is_plain)
    }
}

impl fmt::Display for CauseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word().to_ascii_uppercase();
        let (letters, number) = word.split_at(word.len() - 2);
        f.pad(&format!("{letters}-{number}"))
    }
}

impl FromStr for CauseId {
    type Err = UnknownCause;

    /// Reads `HTTP-08`, `http08`, `HTTP-8` and `http8` alike.
    fn from_str(word: &str) -> Result<Self, UnknownCause> {
        let plain = word.replace('-', "").to_ascii_lowercase();
        let found = Self::ALL.iter().find(|id| {
            let whole = id.word().to_ascii_lowercase();
            let (letters, number) = whole.split_at(whole.len() - 2);
            plain == whole || plain == format!("{letters}{}", number.trim_start_matches('0'))
        });
        found.copied().ok_or_else(|| {
            let known: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            let meant = closest(word, known.iter().map(String::as_str));
            let meant = meant.and_then(|meant| meant.parse().ok());
            UnknownCause { word: word.to_owned(), meant }
        })
    }
}

impl Serialize for CauseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CauseId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Families, and the number of their last cause. A number only grows: ids are kept by others.
    const LAST: [(&str, usize); 16] = [
        ("CFG", 21),
        ("ACC", 12),
        ("LIM", 8),
        ("ORD", 19),
        ("CTL", 18),
        ("HTTP", 40),
        ("GW", 5),
        ("TLS", 4),
        ("DNS", 9),
        ("D01", 22),
        ("PRV", 17),
        ("CAA", 9),
        ("PER", 7),
        ("ENV", 8),
        ("HYG", 9),
        ("INT", 1),
    ];

    #[test]
    fn ids_are_those_that_were_given_out() {
        let given = LAST.iter().flat_map(|(family, last)| {
            (1..=*last).map(move |number| format!("{family}-{number:02}"))
        });
        let given: Vec<String> = given.collect();
        let known: Vec<String> = CauseId::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(known, given);
        assert_eq!(known.len(), 209);
    }

    #[test]
    fn an_id_is_read_as_people_type_it() {
        for (word, expected) in [
            ("HTTP-10", "HTTP-10"),
            ("http-10", "HTTP-10"),
            ("http10", "HTTP-10"),
            ("HTTP-8", "HTTP-08"),
            ("http8", "HTTP-08"),
            ("d01-4", "D01-04"),
            ("d0114", "D01-14"),
            ("D01-04", "D01-04"),
            ("d0104", "D01-04"),
            ("GW-5", "GW-05"),
        ] {
            assert_eq!(word.parse::<CauseId>().unwrap().to_string(), expected, "{word}");
        }
        for id in CauseId::ALL {
            assert_eq!(id.to_string().parse(), Ok(*id));
            assert!(CauseId::is_form(&id.to_string()), "{id}");
        }
    }

    #[test]
    fn an_unknown_id_leads_to_the_closest() {
        for (word, expected) in
            [("HTTPS-10", Some("HTTP-10")), ("HTP-07", Some("HTTP-07")), ("XYZW-77", None)]
        {
            let unknown = word.parse::<CauseId>().unwrap_err();
            assert_eq!(unknown.meant.map(|id| id.to_string()).as_deref(), expected, "{word}");
            assert!(CauseId::is_form(word), "{word}");
        }
        for word in ["", "404", "refused", "x509: unknown", "connection refused", "challenges2"] {
            assert!(!CauseId::is_form(word), "{word}");
        }
    }

    #[test]
    fn a_family_is_read_in_any_case() {
        for family in CauseFamily::ALL {
            let word = family.to_string();
            assert_eq!(CauseFamily::parse(&word), Some(*family));
            assert_eq!(CauseFamily::parse(&word.to_lowercase()), Some(*family));
            assert!(family.ids().count() > 0 && !family.title().is_empty());
        }
        assert_eq!(CauseFamily::parse("HTTP-01"), None);
    }
}
