//! What `run` has said of Certificates.

use std::collections::BTreeMap;

use crate::model::ObjectName;

/// What was said last of Certificates: a record changes more often than what it says.
#[derive(Debug, Default)]
pub(super) struct ReportedMessages(BTreeMap<ObjectName, String>);

impl ReportedMessages {
    /// Remembers a message; tells whether it is another one than before.
    pub(super) fn is_news(&mut self, name: &ObjectName, message: &str) -> bool {
        let before = self.0.insert(name.clone(), message.to_owned());
        before.as_deref() != Some(message)
    }

    /// Forgets a Certificate that is gone.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        self.0.remove(name);
    }
}
