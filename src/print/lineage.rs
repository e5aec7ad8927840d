//! Events that belong to a Certificate: its own, and the events of all objects made for the Certificate.

use std::collections::BTreeSet;

use crate::model::hashed_names::is_named_after;
use crate::model::{Event, Kind};

/// Kind and name of an object, unique within a namespace; all objects of a lineage are in one namespace.
pub type KindAndName = (Kind, String);

/// Returns the events of the given objects and of all objects below, in the order of `events`.
///
/// Children are found by the events that report their creation, so the events of a deleted Challenge are found as well.
/// Orders are also found by their names: no event reports an Order whose CertificateRequest had waited for its issuer.
/// `roots` should contain the living children, too: the events that report their creation may be gone.
pub fn below<'a>(roots: &[KindAndName], namespace: &str, events: &'a [Event]) -> Vec<&'a Event> {
    let mut family: BTreeSet<KindAndName> = roots.iter().cloned().collect();
    let here: Vec<(&Event, KindAndName)> = events
        .iter()
        .filter(|event| event.involved_object.namespace == namespace)
        .filter_map(|event| Some((event, subject(event)?)))
        .collect();
    loop {
        let known = family.len();
        for (event, subject) in &here {
            if family.contains(subject) || is_order_of(subject, &family) {
                family.insert(subject.clone());
                family.extend(child(event));
            }
        }
        if family.len() == known {
            break;
        }
    }
    here.into_iter()
        .filter(|(_, subject)| family.contains(subject))
        .map(|(event, _)| event)
        .collect()
}

/// Returns whether an object is, by its name, the Order of a CertificateRequest of the family.
fn is_order_of((kind, name): &KindAndName, family: &BTreeSet<KindAndName>) -> bool {
    *kind == Kind::Order
        && family
            .iter()
            .any(|(kind, owner)| *kind == Kind::CertificateRequest && is_named_after(name, owner))
}

/// Returns the object of an event; `None` if this program does not know the kind.
pub(super) fn subject(event: &Event) -> Option<KindAndName> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == event.involved_object.kind)?;
    Some((kind, event.involved_object.name.clone()))
}

/// Reads `Created new CertificateRequest resource "web-1"`, `Created Order resource web/web-1-123` and
/// `Created Challenge resource "web-1-123-456" for domain "www.example.com"`.
pub(super) fn child(event: &Event) -> Option<KindAndName> {
    let made = event.message.strip_prefix("Created ")?;
    let made = made.strip_prefix("new ").unwrap_or(made);
    let (kind, rest) = made.split_once(" resource ")?;
    let kind = Kind::SIX.into_iter().find(|known| known.as_str() == kind)?;
    let name = rest.split(' ').next()?.trim_matches('"');
    let name = name.rsplit('/').next()?;
    Some((kind, name.to_owned()))
}

/// Reads name and domain in `Created Challenge resource "web-1-123-456" for domain "www.example.com"`.
pub(super) fn domain(event: &Event) -> Option<(String, String)> {
    let (Kind::Challenge, name) = child(event)? else { return None };
    let (_, domain) = event.message.split_once(" for domain ")?;
    Some((name, domain.trim().trim_matches('"').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ObjectReference;

    fn event(kind: Kind, name: &str, message: &str) -> Event {
        Event {
            involved_object: ObjectReference {
                kind: kind.to_string(),
                name: name.to_owned(),
                namespace: "web".to_owned(),
                ..ObjectReference::default()
            },
            message: message.to_owned(),
            ..Event::default()
        }
    }

    fn check(roots: &[KindAndName], expected: &[&str]) {
        let events = [
            event(Kind::Challenge, "web-1-123-456", "Challenge scheduled for processing"),
            event(
                Kind::Order,
                "web-1-123",
                "Created Challenge resource \"web-1-123-456\" for domain \"www.example.com\"",
            ),
            event(Kind::CertificateRequest, "web-1", "Created Order resource web/web-1-123"),
            event(Kind::Certificate, "web", "Created new CertificateRequest resource \"web-1\""),
            event(Kind::Certificate, "mail", "Created new CertificateRequest resource \"mail-1\""),
            event(Kind::Order, "web", "an order that happens to have the name"),
        ];
        let found = below(roots, "web", &events);
        let names: Vec<&str> = found.iter().map(|e| e.involved_object.name.as_str()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_certificate_has_the_events_of_all_below_it() {
        let root = (Kind::Certificate, "web".to_owned());
        check(&[root], &["web-1-123-456", "web-1-123", "web-1", "web"]);
    }

    #[test]
    fn an_order_is_found_by_its_name_where_no_event_tells_of_it() {
        let events = [
            event(Kind::Certificate, "web", "Created new CertificateRequest resource \"web-1\""),
            event(Kind::Order, "web-1-123", "Order completed successfully"),
            event(Kind::Order, "web-10-123", "Order completed successfully"),
        ];
        let found = below(&[(Kind::Certificate, "web".to_owned())], "web", &events);
        let names: Vec<&str> = found.iter().map(|e| e.involved_object.name.as_str()).collect();
        assert_eq!(names, ["web", "web-1-123"]);
    }

    #[test]
    fn an_order_has_those_of_its_challenges_only() {
        check(&[(Kind::Order, "web-1-123".to_owned())], &["web-1-123-456", "web-1-123"]);
    }

    #[test]
    fn a_living_child_needs_no_event_of_its_making() {
        let roots = [
            (Kind::Certificate, "other".to_owned()),
            (Kind::Challenge, "web-1-123-456".to_owned()),
        ];
        check(&roots, &["web-1-123-456"]);
    }

    #[test]
    fn another_namespace_is_another_family() {
        let events = [event(Kind::Certificate, "web", "")];
        assert!(below(&[(Kind::Certificate, "web".to_owned())], "default", &events).is_empty());
    }
}
