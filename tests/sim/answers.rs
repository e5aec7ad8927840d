//! Where answers are: web servers and a zone with two servers and a resolver that remembers; whoever puts them there, looks for
//! them, and the CA that looks too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use jiff::SignedDuration;
use kubectl_acme::ca::Look;
use kubectl_acme::dns::LookupError;
use kubectl_acme::fetch::outcome::{Fetched, Hop, HttpReply};
use kubectl_acme::model::observation::{
    self, CheckResult, NameServer, NameServerAnswer, Observation, Vantage,
};
use kubectl_acme::model::{Answer, Challenge, Key, Kind};
use kubectl_acme::probes::Probe;
use kubectl_acme::solvers::{SolveError, Solver};
use parking_lot::Mutex;
use tokio::time::sleep;
use url::Url;

use super::events::Event;
use super::plan::{Fault, Setting, Side, SolverFault};
use super::world::{Life, World};

/// What somebody else has at every record.
pub(crate) const FOREIGN: &str = "of somebody else";

/// All answers, by place.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Text, and when each of the two servers has it, in milliseconds.
    at: BTreeMap<String, BTreeMap<String, [u64; 2]>>,
    /// Which life serves a page from its memory.
    served_by: BTreeMap<String, u32>,
    /// What the CA's resolver remembers of a record, and until when.
    remembered: BTreeMap<String, (Vec<String>, u64)>,
    foreign: BTreeSet<String>,
}

impl Answers {
    pub(crate) fn new(setting: &Setting) -> Self {
        let mut answers = Self::default();
        if setting.by_record {
            for name in setting.wishes.iter().flat_map(|wish| &wish.names) {
                let place = format!("_acme-challenge.{}.", name.trim_start_matches("*."));
                let texts = answers.at.entry(place.clone()).or_default();
                texts.insert(FOREIGN.to_owned(), [0, 0]);
                answers.foreign.insert(place);
            }
        }
        answers
    }

    /// Texts that a server has.
    fn seen(&self, place: &str, server: usize, now: u64) -> Vec<String> {
        let texts = self.at.get(place).into_iter().flatten();
        texts.filter(|(_, from)| from[server] <= now).map(|(text, _)| text.clone()).collect()
    }

    pub(crate) fn has(&self, place: &str, text: &str) -> bool {
        self.at.get(place).is_some_and(|texts| texts.contains_key(text))
    }

    /// What is left that is ours: place and text.
    pub(crate) fn left(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.at.iter().flat_map(|(place, texts)| {
            texts.keys().map(move |text| (place.as_str(), text.as_str()))
        });
        all.filter(|(_, text)| *text != FOREIGN)
    }

    /// Where something of others is missing.
    pub(crate) fn taken(&self) -> Option<&String> {
        self.foreign.iter().find(|place| !self.has(place, FOREIGN))
    }

    /// What a process served goes with it.
    pub(crate) fn gone(&mut self, life: u32) {
        let of_life: Vec<String> = self
            .served_by
            .iter()
            .filter(|(_, of)| **of == life)
            .map(|(place, _)| place.clone())
            .collect();
        for place in of_life {
            self.served_by.remove(&place);
            self.at.remove(&place);
        }
    }
}

/// Where the answer of a Challenge is looked for.
pub(crate) fn place(challenge: &Challenge, is_by_record: bool) -> String {
    if is_by_record {
        return format!("_acme-challenge.{}.", challenge.spec.dns_name);
    }
    format!(
        "http://{}/.well-known/acme-challenge/{}",
        challenge.spec.dns_name, challenge.spec.token
    )
}

/// Puts answers up for one process.
#[derive(Debug)]
pub(crate) struct SimSolver {
    life: Arc<Life>,
    up: Mutex<BTreeSet<(String, String)>>,
}

impl SimSolver {
    pub(crate) fn new(life: &Arc<Life>) -> Self {
        Self { life: Arc::clone(life), up: Mutex::default() }
    }

    fn world(&self) -> &World {
        &self.life.world
    }

    fn is_by_record(&self) -> bool {
        self.world().setting.by_record
    }

    /// What strikes.
    fn struck(&self, point: &'static str) -> Option<SolverFault> {
        match self.world().strikes(point) {
            Some(Fault::Solver { what, .. }) => Some(what),
            _ if self.world().is_out(Side::Provider) => Some(SolverFault::Refuses { done: false }),
            _ => None,
        }
    }

    /// What is heard of a deed.
    async fn heard(
        &self,
        point: &'static str,
        struck: Option<SolverFault>,
    ) -> Result<(), SolveError> {
        // The answer is slow, not the deed: what a process asked for that is dead would come when nobody expects it.
        if let Some(SolverFault::Slow(seconds)) = struck {
            sleep(Duration::from_secs(seconds)).await;
        }
        self.life.step().await;
        let error = |needs_person| {
            SolveError::new(format!("cannot {point}"), "the provider refuses", needs_person)
        };
        match struck {
            None | Some(SolverFault::Slow(_)) => Ok(()),
            Some(SolverFault::Refuses { .. }) => Err(error(false)),
            Some(SolverFault::NeedsPerson) => Err(error(true)),
            Some(SolverFault::RefusesUntil(seconds)) => {
                let pause = SignedDuration::from_secs(seconds.cast_signed());
                Err(error(false).until(Some(self.world().now_at(self.life.place) + pause)))
            }
        }
    }
}

/// Whether a deed is done that meets this.
fn is_done(struck: Option<&SolverFault>) -> bool {
    matches!(struck, None | Some(SolverFault::Slow(_) | SolverFault::Refuses { done: true }))
}

#[async_trait]
impl Solver for SimSolver {
    async fn present(&self, challenge: &Challenge, _: &Answer) -> Result<(), SolveError> {
        self.life.step().await;
        self.world().latency().await;
        let struck = self.struck("present");
        if is_done(struck.as_ref()) {
            let at = place(challenge, self.is_by_record());
            let text = challenge.spec.key.clone();
            let key = Key::new(Kind::Challenge, challenge.name());
            let uid = challenge.metadata.uid.clone();
            let shown: String = text.chars().take(12).collect();
            let (life, world) = (self.life.number, self.world());
            world.tell(Event::Presents { uid, key, at: at.clone(), text: shown });
            let now = world.elapsed();
            let later = now + world.setting.propagation;
            let mut answers = world.answers.lock();
            answers.at.entry(at.clone()).or_default().entry(text.clone()).or_insert([now, later]);
            if !self.is_by_record() && world.setting.listener {
                answers.served_by.insert(at.clone(), life);
            }
            drop(answers);
            self.up.lock().insert((at, text));
        }
        self.heard("present", struck).await
    }

    async fn clean_up(&self, challenge: &Challenge, _: &Answer) -> Result<(), SolveError> {
        self.life.step().await;
        self.world().latency().await;
        let struck = self.struck("clean_up");
        if is_done(struck.as_ref()) {
            let at = place(challenge, self.is_by_record());
            let mut answers = self.world().answers.lock();
            if let Some(texts) = answers.at.get_mut(&at) {
                texts.remove(&challenge.spec.key);
                if texts.is_empty() {
                    answers.at.remove(&at);
                }
            }
            answers.served_by.remove(&at);
            drop(answers);
            self.up.lock().remove(&(at.clone(), challenge.spec.key.clone()));
            self.world().tell(Event::CleansUp { at });
        }
        self.heard("clean_up", struck).await
    }

    fn stands(&self, challenge: &Challenge, _: &Answer) -> bool {
        let at = place(challenge, self.is_by_record());
        self.up.lock().contains(&(at, challenge.spec.key.clone()))
    }
}

/// Looks for one process.
#[derive(Debug)]
pub(crate) struct SimProbe(pub(crate) Arc<Life>);

#[async_trait]
impl Probe for SimProbe {
    async fn probe(&self, challenge: &Challenge, answer: &Answer) -> Vec<Observation> {
        self.0.step().await;
        let world = &self.0.world;
        world.latency().await;
        let is_by_record = world.setting.by_record;
        let at = place(challenge, is_by_record);
        let now = world.elapsed();
        let texts = [0, 1].map(|server| world.answers.lock().seen(&at, server, now));
        let wanted = &challenge.spec.key;
        let is_there = texts.iter().all(|texts| texts.contains(wanted));
        let uid = challenge.metadata.uid.clone();
        world.tell(Event::Sees { uid, at: at.clone(), is_there });
        let moment = world.now_at(self.0.place);
        let (url, seen) = if is_by_record {
            let servers =
                texts.into_iter().zip(["ns1.example.", "ns2.example."]).map(|(texts, name)| {
                    NameServer {
                        name: name.to_owned(),
                        address: Some(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 53), 53))),
                        ttl: (!texts.is_empty())
                            .then_some(u32::try_from(world.setting.ttl).unwrap()),
                        said: if texts.is_empty() {
                            NameServerAnswer::NoName
                        } else {
                            NameServerAnswer::Texts(texts)
                        },
                    }
                });
            let (name, zone) = (at.clone(), "example.com.".to_owned());
            (
                format!("dns:{at}?type=TXT"),
                CheckResult::Records { name, zone, servers: servers.collect() },
            )
        } else if is_there {
            let body = answer.key_authorization.clone();
            (
                at.clone(),
                CheckResult::Reply { status: 200, body, truncated: false, is_declined: false },
            )
        } else {
            (
                at.clone(),
                CheckResult::Reply {
                    status: 404,
                    body: "not here".to_owned(),
                    truncated: false,
                    is_declined: false,
                },
            )
        };
        let address = Some(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 80)));
        let status =
            matches!(seen, CheckResult::Reply { .. }).then_some(if is_there { 200 } else { 404 });
        let hops = vec![observation::Hop { url: url.clone(), address, status }];
        self.0.step().await;
        vec![Observation { vantage: Vantage::ThisMachine, at: moment, url, hops, seen }]
    }
}

/// Looks for the CA.
pub(crate) struct CaLook(pub(crate) Weak<World>);

impl std::fmt::Debug for CaLook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CaLook")
    }
}

#[async_trait]
impl Look for CaLook {
    async fn get(&self, url: &Url) -> Fetched {
        let world = self.0.upgrade().unwrap();
        sleep(Duration::from_millis(world.setting.validation_delay)).await;
        let found = world.answers.lock().seen(url.as_str(), 0, world.elapsed()).pop();
        let status = if found.is_some() { 200 } else { 404 };
        world.tell(Event::Note { what: format!("    the CA looks at {url}: {status}") });
        let address = Some(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 80)));
        let hops = vec![Hop { url: url.to_string(), address, status: Some(status) }];
        let body = found.unwrap_or_default().into_bytes();
        Fetched {
            hops,
            result: Ok(HttpReply { status, body, truncated: false, is_declined: false }),
        }
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        let world = self.0.upgrade().unwrap();
        sleep(Duration::from_millis(world.setting.validation_delay)).await;
        let now = world.elapsed();
        let mut answers = world.answers.lock();
        let known = answers.remembered.get(name).filter(|(_, until)| *until > now).cloned();
        let is_known = known.is_some();
        let texts = known.map_or_else(|| answers.seen(name, 1, now), |(texts, _)| texts);
        if !is_known {
            let setting = &world.setting;
            let long = if texts.is_empty() { setting.negative_ttl } else { setting.ttl };
            answers.remembered.insert(name.to_owned(), (texts.clone(), now + long * 1000));
        }
        drop(answers);
        let from = if is_known { ", from memory" } else { "" };
        world.tell(Event::Note {
            what: format!("    the CA looks at {name}: {} texts{from}", texts.len()),
        });
        if texts.is_empty() {
            return Err(LookupError::NoSuchName { name: name.to_owned() });
        }
        Ok(texts)
    }
}
