//! A row: how the CA behaves, and what must come of it.

use std::collections::BTreeMap;

use super::stubs::{Dns, Web};

/// Where names lead in the self-check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// To our own listener.
    Listener,
    /// To this web server.
    Web(Web),
    /// To where this name server says.
    Dns(Dns),
}

/// How many requests of a sort the CA may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// So many.
    Is(u64),
    /// Between these.
    Between(u64, u64),
    /// At least once, and no more often than polls that pause for two seconds at last.
    AtOurPace,
}

/// How a run has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a pair in the Secret and on disk.
    Issued,
    /// With this exit code, and nothing stored.
    Code(i32),
}

/// How long runs may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// They end by themselves.
    Enough,
    /// They are to run into their time limit.
    Short,
}

/// How the CA behaves, and what must come of it.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) number: u8,
    pub(super) behave: Vec<&'static str>,
    pub(super) names: Vec<&'static str>,
    /// More fields of the Issuer's `spec.acme`.
    pub(super) issuer: Vec<(&'static str, &'static str)>,
    pub(super) time: Time,
    pub(super) end: End,
    pub(super) asked: BTreeMap<&'static str, Times>,
    /// What the user has to read.
    pub(super) says: Vec<&'static str>,
    /// The state of the newest Order, if it is fixed.
    pub(super) order: Option<&'static str>,
    pub(super) lead: Names,
    /// The CA whose request rates are kept.
    pub(super) limits: Option<&'static str>,
    /// Names that the CA certifies beside those that are ordered.
    pub(super) certified_beside: Vec<&'static str>,
}

impl Row {
    fn new(number: u8, behave: &'static str, end: End) -> Self {
        Self {
            number,
            behave: behave.split_whitespace().collect(),
            names: vec!["www.example.com"],
            issuer: Vec::new(),
            time: Time::Enough,
            end,
            asked: BTreeMap::new(),
            says: Vec::new(),
            order: None,
            lead: Names::Listener,
            limits: None,
            certified_beside: Vec::new(),
        }
    }

    /// What it is called in faults.
    pub(super) fn name(&self) -> String {
        let lead = match self.lead {
            Names::Listener => None,
            Names::Web(web) => Some(format!("{web:?}")),
            Names::Dns(dns) => Some(format!("{dns:?}")),
        };
        let number = self.number.to_string();
        let behave = self.behave.iter().map(ToString::to_string);
        let words: Vec<_> = [number].into_iter().chain(behave).chain(lead).collect();
        words.join(" ")
    }

    /// A Certificate of these names.
    pub(super) fn names(mut self, names: &[&'static str]) -> Self {
        self.names = names.to_vec();
        // Each name costs one of both.
        let count = u64::try_from(names.len()).unwrap();
        for what in ["authorization", "challenge"] {
            if let Some(Times::Is(1)) = self.asked.get(what) {
                self.asked.insert(what, Times::Is(count));
            }
        }
        self
    }

    /// Names lead elsewhere in the self-check.
    pub(super) fn names_lead(mut self, to: Names) -> Self {
        self.lead = to;
        self
    }

    /// The CA certifies these names as well.
    pub(super) fn certifies_beside(mut self, names: &[&'static str]) -> Self {
        self.certified_beside = names.to_vec();
        self
    }

    /// The request rates of that CA are kept.
    pub(super) fn keeps_limits_of(mut self, ca: &'static str) -> Self {
        self.limits = Some(ca);
        self
    }

    /// A field of the Issuer.
    pub(super) fn issuer(mut self, field: &'static str, value: &'static str) -> Self {
        self.issuer.push((field, value));
        self
    }

    /// The runs are ended by their time limit.
    pub(super) fn runs_out_of_time(mut self) -> Self {
        self.time = Time::Short;
        self
    }

    /// How often this is asked.
    pub(super) fn asks(mut self, what: &'static str, times: u64) -> Self {
        self.asked.insert(what, Times::Is(times));
        self
    }

    /// How often this is asked where that is not certain.
    pub(super) fn asks_between(mut self, what: &'static str, least: u64, most: u64) -> Self {
        self.asked.insert(what, Times::Between(least, most));
        self
    }

    /// This is polled.
    pub(super) fn polls(mut self, what: &'static str) -> Self {
        self.asked.insert(what, Times::AtOurPace);
        self
    }

    /// The user has to read this.
    pub(super) fn says(mut self, words: &'static str) -> Self {
        self.says.push(words);
        self
    }

    /// What the newest Order is in the end.
    pub(super) fn order(mut self, state: &'static str) -> Self {
        self.order = Some(state);
        self
    }
}

/// The certificate comes in spite of it, with no request more than without.
pub(super) fn issues(number: u8, behave: &'static str) -> Row {
    let row = Row::new(number, behave, End::Issued);
    row.asks("directory", 1)
        .asks("newAccount", 1)
        .asks("newOrder", 1)
        .asks("authorization", 1)
        .asks("challenge", 1)
        .asks("finalize", 1)
        .asks("certificate", 1)
        .polls("order")
        .order("valid")
}

/// No certificate comes: the run ends with this code before anything is finalized.
pub(super) fn ends(number: u8, behave: &'static str, code: i32) -> Row {
    let row = Row::new(number, behave, End::Code(code));
    row.asks("newAccount", 1).asks("newOrder", 1).asks("finalize", 0).asks("certificate", 0)
}
