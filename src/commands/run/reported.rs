//! Messages that `run` has printed about Certificates.

use std::collections::BTreeMap;

use crate::model::ObjectName;

/// Last printed message of each Certificate: a record changes more often than its message.
#[derive(Debug, Default)]
pub(super) struct ReportedMessages(BTreeMap<ObjectName, String>);

impl ReportedMessages {
    /// Records a message; returns whether it differs from the last message of the Certificate.
    pub(super) fn is_news(&mut self, name: &ObjectName, message: &str) -> bool {
        let before = self.0.insert(name.clone(), message.to_owned());
        before.as_deref() != Some(message)
    }

    /// Forgets a deleted Certificate.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        self.0.remove(name);
    }
}
