//! Certificates that are chosen by their labels or their namespace, for commands that take names as well.

use std::sync::Arc;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::selector::LabelSelector;
use crate::input::target;
use crate::model::common::is_true;
use crate::model::{Certificate, Kind, ObjectName};
use crate::store::Store;
use crate::store::resources::typed;

/// Flags that choose Certificates in place of their names.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ChosenArgs {
    /// All Certificates of the namespace
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// All Certificates of every namespace
    #[arg(long, short = 'A', conflicts_with = "names")]
    pub all_namespaces: bool,
    /// Certificates with these labels, such as app=web
    #[arg(long, short = 'l', value_name = "LABELS", conflicts_with = "names")]
    pub selector: Option<LabelSelector>,
}

/// Part of the chosen Certificates on which a command works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenFor {
    /// Every chosen Certificate.
    Any,
    /// Certificates that are not ready, or that are being issued.
    Unready,
}

impl ChosenArgs {
    /// Returns whether any flag chooses Certificates.
    pub fn is_given(&self) -> bool {
        self.all || self.all_namespaces || self.selector.is_some()
    }

    /// Returns the names of the chosen Certificates.
    ///
    /// # Errors
    /// Fails when the store does, and for [`ChosenFor::Any`] when no Certificate is chosen.
    pub async fn certificates(
        &self,
        which: ChosenFor,
        store: &Arc<dyn Store>,
        context: &Context,
    ) -> Result<Vec<ObjectName>, Failure> {
        let namespace = (!self.all_namespaces).then(|| context.namespace());
        let scope = target::scope(Kind::Certificate, namespace);
        let mut chosen = Vec::new();
        for record in store.list(Kind::Certificate, &scope).await? {
            if self.selector.as_ref().is_some_and(|labels| !labels.fits(&record)) {
                continue;
            }
            let certificate: Certificate = typed(record)?;
            let is_ready = is_true(&certificate.status.conditions, "Ready");
            if which == ChosenFor::Any || !is_ready || certificate.is_being_issued() {
                chosen.push(certificate.name());
            }
        }
        if chosen.is_empty() && which == ChosenFor::Any {
            let place = match namespace {
                Some(name) => format!("namespace {name}"),
                None => "any namespace".to_owned(),
            };
            let labels = if self.selector.is_some() { " with these labels" } else { "" };
            let what = format!("there is no Certificate{labels} in {place}");
            return Err(Failure::usage(what));
        }
        Ok(chosen)
    }
}
