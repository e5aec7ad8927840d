//! Faults that a proxy injects: which requests they meet, and what these get instead.

use std::time::Duration;

use serde_json::{Value, json};

use super::traffic::Endpoint;

/// One rule: meets requests until it is used up. Rules are tried in the order in which they were given.
#[derive(Clone, Debug)]
#[must_use = "inject it into a proxy"]
pub struct Fault {
    deed: Deed,
    endpoint: Option<Endpoint>,
    skip: usize,
    times: usize,
}

/// What a request gets instead of its answer.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// This answer; the CA does not hear of the request.
    Answer { status: u16, headers: Vec<(String, String)>, body: String },
    /// A closed connection; the CA does not hear of the request.
    DropRequest,
    /// A closed connection, after the CA did what it was asked.
    DropAnswer,
    /// The real answer, changed on its way, with more headers.
    Change { headers: Vec<(String, String)>, change: fn(&mut Value) },
    /// The real answer, later.
    Delay(Duration),
    /// Nothing, until the proxy releases it; the CA does not hear of it before.
    Hold,
}

impl Fault {
    /// Answers with this status and an empty page.
    pub fn status(status: u16) -> Self {
        Self::new(Deed::Answer { status, headers: Vec::new(), body: String::new() })
    }

    /// Answers with a problem document; `kind` is the last word of its type, such as `rateLimited`.
    pub fn problem(status: u16, kind: &str, detail: &str) -> Self {
        let problem = json!({
            "type": format!("urn:ietf:params:acme:error:{kind}"),
            "detail": detail,
            "status": status,
        });
        Self::status(status)
            .header("Content-Type", "application/problem+json")
            .body(&problem.to_string())
    }

    /// Closes the connection before the CA hears of the request.
    pub fn drop_request() -> Self {
        Self::new(Deed::DropRequest)
    }

    /// Lets the CA do what it is asked, then closes the connection without an answer.
    pub fn drop_answer() -> Self {
        Self::new(Deed::DropAnswer)
    }

    /// Changes the JSON of the real answer.
    pub fn change(change: fn(&mut Value)) -> Self {
        Self::new(Deed::Change { headers: Vec::new(), change })
    }

    /// Passes the real answer on, later.
    pub fn delay(by: Duration) -> Self {
        Self::new(Deed::Delay(by))
    }

    /// Keeps the request, and its client waiting, until the proxy releases it.
    pub fn hold() -> Self {
        Self::new(Deed::Hold)
    }

    fn new(deed: Deed) -> Self {
        Self { deed, endpoint: None, skip: 0, times: usize::MAX }
    }

    /// Adds a header to an injected or changed answer, such as `Retry-After`.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Deed::Answer { headers, .. } | Deed::Change { headers, .. } = &mut self.deed {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Gives an injected answer a body.
    pub fn body(mut self, text: &str) -> Self {
        if let Deed::Answer { body, .. } = &mut self.deed {
            text.clone_into(body);
        }
        self
    }

    /// Meets only requests of this kind.
    pub fn at(self, endpoint: Endpoint) -> Self {
        Self { endpoint: Some(endpoint), ..self }
    }

    /// Lets the first such requests pass.
    pub fn after(self, requests: usize) -> Self {
        Self { skip: requests, ..self }
    }

    /// Meets so many requests, then no more.
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Returns its deed if it meets this request, and remembers that it did.
    pub(super) fn meet(&mut self, endpoint: Endpoint) -> Option<Deed> {
        if self.endpoint.is_some_and(|wanted| wanted != endpoint) || self.times == 0 {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.times -= 1;
        Some(self.deed.clone())
    }
}
