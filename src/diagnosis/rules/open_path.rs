//! Names that wait for an answer to HTTP-01 in a cluster, with what was read of the path there.

use crate::diagnosis::case::Case;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, Finding, Grade, stored};
use crate::diagnosis::path_case::{ClusterPathCase, WantedPath};
use crate::diagnosis::path_objects::{IngressCase, PodCase};
use crate::model::{Challenge, Event, Metadata};

/// A name whose answer nobody has seen yet.
#[derive(Clone, Copy)]
pub(super) struct OpenPath<'a> {
    pub(super) case: &'a Case,
    pub(super) path: &'a ClusterPathCase,
    pub(super) wanted: &'a WantedPath,
    /// Its Challenge, where there is one.
    pub(super) challenge: Option<&'a Challenge>,
}

/// The names that wait; where the answer was seen at every address, nothing of the path can be wrong.
pub(super) fn open_paths(case: &Case) -> Vec<OpenPath<'_>> {
    let Some(path) = &case.cluster_path else { return Vec::new() };
    let is_seen = |wanted: &&WantedPath| {
        let name = case.names.iter().find(|name| name.shown() == wanted.domain);
        name.is_some_and(|name| !name.looks.is_empty() && name.looks.iter().all(|l| l.is_answer))
    };
    let challenges = || case.certificates.iter().flat_map(|of| &of.challenges);
    let wanted = path.wanted.iter().filter(|wanted| !is_seen(wanted));
    let open = wanted.map(|wanted| OpenPath {
        case,
        path,
        wanted,
        challenge: challenges().find(|c| wanted.challenge.as_ref() == Some(&c.name())),
    });
    open.collect()
}

impl<'a> OpenPath<'a> {
    /// A finding about the name.
    pub(super) fn finding(
        &self,
        cause: CauseId,
        grade: Grade,
        shown: Evidence,
        detail: impl Into<String>,
    ) -> Finding {
        let WantedPath { domain, namespace, .. } = self.wanted;
        let mut finding = Finding::new(cause, grade, domain, shown)
            .with("DOMAIN", domain)
            .with("NAMESPACE", namespace)
            .with("DETAIL", detail);
        if let Some(challenge) = self.challenge {
            finding = finding.with("CHALLENGE", &challenge.metadata.name);
            if let Some(order) = challenge.metadata.controller() {
                finding = finding.with("ORDER", &order.name);
            }
        }
        finding
    }

    /// What stands in the cluster.
    pub(super) fn stored(&self, asked: impl Into<String>, came: impl Into<String>) -> Evidence {
        stored(asked, self.case.at, came)
    }

    /// The Challenge, where its answer has to be up at this moment.
    pub(super) fn presented(&self) -> Option<&'a Challenge> {
        let is_up = |c: &&Challenge| self.path.challenges.get(&c.metadata.uid) == Some(&true);
        self.challenge.filter(is_up)
    }

    /// The object of its Challenge among these.
    pub(super) fn own<T>(
        &self,
        all: &'a [T],
        metadata: impl Fn(&T) -> &Metadata,
    ) -> Option<&'a T> {
        let uid = &self.challenge?.metadata.uid;
        all.iter().find(|one| {
            let of = metadata(one);
            of.is_controlled_by(uid) && !of.is_deleted()
        })
    }

    /// The solver's Pod.
    pub(super) fn pod(&self) -> Option<&'a PodCase> {
        self.own(&self.path.pods, |pod| &pod.metadata)
    }

    /// The Ingress that leads to the solver, its own or one that it edits.
    pub(super) fn ingress(&self) -> Option<&'a IngressCase> {
        let edited = self.edited_ingress();
        let Some(edited) = edited else {
            return self.own(&self.path.ingresses, |ingress| &ingress.metadata);
        };
        self.path.ingresses.iter().find(|ingress| {
            let of = &ingress.metadata;
            of.namespace == self.wanted.namespace && of.name == edited
        })
    }

    /// Name of the Ingress that the solver edits, where it makes none.
    pub(super) fn edited_ingress(&self) -> Option<&'a str> {
        let ingress = self.wanted.solver.ingress.as_ref()?;
        Some(ingress.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Events that warn of an object.
    pub(super) fn warnings(&self, of: &'a Metadata) -> impl Iterator<Item = &'a Event> {
        let is_about = move |event: &&Event| event.involved_object.uid == of.uid;
        self.path.warnings.iter().filter(is_about)
    }
}

/// An object as messages name it.
pub(super) fn named(kind: &str, metadata: &Metadata) -> String {
    format!("{kind} {}/{}", metadata.namespace, metadata.name)
}
