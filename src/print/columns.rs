//! Columns of the table of each kind, and the contents of the cells.
//!
//! CertificateRequests, Issuers, ClusterIssuers, Secrets and Events have kubectl's columns, and empty cells
//! as in kubectl. Certificates have one more column: the time of expiry. The tables of Challenges and Orders
//! are this program's own: with the reason by default, and `<none>` in empty cells.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{age, until};
use super::colour::Colour;
use super::document::{plain, text};
use super::table::{Fit, Headers, NONE, Narrow, Table};
use crate::model::Kind;
use crate::model::names::shown_domain;

/// Number of columns shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// The default columns.
    #[default]
    Narrow,
    /// All columns (`-o wide`).
    Wide,
}

/// Form of an object's name in the column NAME.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// `web`.
    #[default]
    Bare,
    /// `certificate.cert-manager.io/web`, if one listing has several kinds.
    WithKind,
    /// `web` under the heading of its kind; a challenge by its domain.
    ByKind,
}

/// Whether the namespace is the first column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// All objects are of one namespace.
    #[default]
    Hidden,
    /// `-A`; kinds without namespaces have no such column even then.
    Shown,
}

/// Style of the table of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnStyle<'a> {
    /// Number of columns shown.
    pub width: Width,
    /// Form of the objects' names.
    pub naming: Naming,
    /// Whether namespaces are shown.
    pub namespaces: Namespaces,
    /// Whether headings are shown.
    pub headers: Headers,
    /// Whether words are coloured.
    pub colour: Colour,
    /// Labels shown as columns.
    pub labels: Option<&'a LabelColumns>,
    /// Columns of the terminal, to which reasons are cut in the narrow table; `None` if the output is no terminal.
    pub terminal: Option<usize>,
}

/// Renders the table of objects of one kind, with ages as of `now`.
pub fn table<'a>(
    kind: Kind,
    objects: impl IntoIterator<Item = &'a Value>,
    look: &ColumnStyle<'_>,
    now: Timestamp,
) -> String {
    let is_shown = |column: &&Column| {
        let is_name = look.naming == Naming::ByKind && column.title == DOMAIN.title;
        !is_name && (!column.wide || look.width == Width::Wide)
    };
    let columns: Vec<&Column> = columns(kind).iter().filter(is_shown).collect();
    let namespaces = look.namespaces == Namespaces::Shown && kind.is_namespaced();
    let name = name_title(kind).map(|title| match look.naming {
        Naming::Bare | Naming::WithKind => title.to_owned(),
        Naming::ByKind => kind.as_str().to_ascii_uppercase(),
    });
    let leading = namespaces.then(|| "NAMESPACE".to_owned()).into_iter().chain(name);
    let titles = leading.chain(columns.iter().map(|c| c.title.to_owned()));
    let labels = look.labels.into_iter();
    let mut table = Table::new(titles.chain(labels.clone().flat_map(LabelColumns::titles)));
    for object in objects {
        let namespace = namespaces.then(|| text(object, "/metadata/namespace").to_owned());
        let name = name_title(kind).map(|_| match look.naming {
            Naming::WithKind => qualified_name(object),
            Naming::ByKind if kind == Kind::Challenge => domain(object),
            Naming::Bare | Naming::ByKind => text(object, "/metadata/name").to_owned(),
        });
        let cells = columns.iter().map(|column| column.cell(object, now));
        let labels = labels.clone().flat_map(|labels| labels.cells(object));
        table.row(namespace.into_iter().chain(name).chain(cells).chain(labels));
    }
    match look.terminal {
        Some(width) if look.width == Width::Narrow => {
            let is_below = look.naming == Naming::ByKind;
            let cells = if is_below { Narrow::CutOrBelow } else { Narrow::Cut };
            let fit = Fit { title: REASON.title, width, cells };
            table.render_within(fit, look.headers, look.colour)
        }
        Some(_) | None => table.render(look.headers, look.colour),
    }
}

/// Returns the domain of a challenge, with `*.` for a wildcard.
fn domain(challenge: &Value) -> String {
    let is_wildcard = challenge.pointer("/spec/wildcard") == Some(&Value::Bool(true));
    shown_domain(text(challenge, "/spec/dnsName"), is_wildcard)
}

/// Names an object as `kubectl get -o name` does: `certificate.cert-manager.io/web`, `secret/web-tls`.
pub fn qualified_name(object: &Value) -> String {
    let kind = text(object, "/kind").to_ascii_lowercase();
    let name = text(object, "/metadata/name");
    match text(object, "/apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// Returns the heading for names; `None` for Events, which are found by their time, not by their name.
fn name_title(kind: Kind) -> Option<&'static str> {
    (kind != Kind::Event).then_some("NAME")
}

struct Column {
    title: &'static str,
    wide: bool,
    source: CellSource,
    empty: &'static str,
}

/// Source of a cell's text.
enum CellSource {
    /// The value at a JSON pointer.
    At(&'static str),
    /// A field of the condition of that type.
    Condition(&'static str, &'static str),
    /// Whether the value at a JSON pointer is true: `yes` or `no`.
    Flag(&'static str),
    /// The age of the moment at a JSON pointer.
    Age(&'static str),
    /// Time until the moment at a JSON pointer.
    Until(&'static str),
    /// The domain of a challenge.
    Domain,
    /// Number of entries of the object at a JSON pointer.
    Count(&'static str),
    /// Object of an Event: `certificate/web`.
    Subject,
}

impl Column {
    const fn new(title: &'static str, source: CellSource) -> Self {
        Self { title, wide: false, source, empty: "" }
    }

    /// Restricts the column to `-o wide`.
    const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }

    /// Marks a column of this program's own tables: an empty cell shows `<none>`.
    const fn ours(self) -> Self {
        Self { empty: NONE, ..self }
    }

    fn cell(&self, object: &Value, now: Timestamp) -> String {
        let text = match self.source {
            CellSource::At(pointer) => object.pointer(pointer).map(plain).unwrap_or_default(),
            CellSource::Condition(kind, field) => condition(object, kind, field).to_owned(),
            CellSource::Flag(pointer) => {
                let flag = object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
                if flag { "yes" } else { "no" }.to_owned()
            }
            CellSource::Age(pointer) => age(text(object, pointer).parse().ok(), now),
            CellSource::Until(pointer) => until(text(object, pointer).parse().ok(), now),
            CellSource::Domain => domain(object),
            CellSource::Count(pointer) => object
                .pointer(pointer)
                .and_then(Value::as_object)
                .map_or(0, serde_json::Map::len)
                .to_string(),
            CellSource::Subject => {
                let kind = text(object, "/involvedObject/kind").to_ascii_lowercase();
                format!("{kind}/{}", text(object, "/involvedObject/name"))
            }
        };
        if text.is_empty() { self.empty.to_owned() } else { text }
    }
}

fn condition<'a>(object: &'a Value, kind: &str, field: &str) -> &'a str {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|c| c["type"] == kind);
    found.and_then(|c| c[field].as_str()).unwrap_or_default()
}

const AGE: Column = Column::new("AGE", CellSource::Age("/metadata/creationTimestamp"));
const DOMAIN: Column = Column::new("DOMAIN", CellSource::Domain).ours();
const ISSUER: Column = Column::new("ISSUER", CellSource::At("/spec/issuerRef/name"));
const READY: Column = Column::new("READY", CellSource::Condition("Ready", "status"));
const REASON: Column = Column::new("REASON", CellSource::At("/status/reason")).ours();
const STATE: Column = Column::new("STATE", CellSource::At("/status/state")).ours();
const STATUS: Column = Column::new("STATUS", CellSource::Condition("Ready", "message")).wide();

const CERTIFICATE: &[Column] = &[
    READY,
    Column::new("SECRET", CellSource::At("/spec/secretName")),
    Column::new("EXPIRES", CellSource::Until("/status/notAfter")).ours(),
    Column::new("RENEWAL", CellSource::Until("/status/renewalTime")).ours().wide(),
    ISSUER.wide(),
    STATUS,
    AGE,
];
const CERTIFICATE_REQUEST: &[Column] = &[
    Column::new("APPROVED", CellSource::Condition("Approved", "status")),
    Column::new("DENIED", CellSource::Condition("Denied", "status")),
    READY,
    ISSUER,
    Column::new("REQUESTER", CellSource::At("/spec/username")),
    STATUS,
    AGE,
];
/// Columns of Challenges. SLOT is `status.processing`: whether the challenge holds one of the scheduler's slots.
const CHALLENGE: &[Column] = &[
    STATE,
    DOMAIN,
    Column::new("TYPE", CellSource::At("/spec/type")).ours().wide(),
    Column::new("PRESENTED", CellSource::Flag("/status/presented")).wide(),
    Column::new("SLOT", CellSource::Flag("/status/processing")).wide(),
    ISSUER.ours().wide(),
    REASON,
    AGE,
];
const EVENT: &[Column] = &[
    Column::new("LAST SEEN", CellSource::Age("/lastTimestamp")),
    Column::new("TYPE", CellSource::At("/type")),
    Column::new("REASON", CellSource::At("/reason")),
    Column::new("OBJECT", CellSource::Subject),
    Column::new("MESSAGE", CellSource::At("/message")),
];
const ISSUERS: &[Column] = &[READY, STATUS, AGE];
const ORDER: &[Column] = &[STATE, ISSUER.ours().wide(), REASON, AGE];
const SECRET: &[Column] = &[
    Column::new("TYPE", CellSource::At("/type")),
    Column::new("DATA", CellSource::Count("/data")),
    AGE,
];

fn columns(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Certificate => CERTIFICATE,
        Kind::CertificateRequest => CERTIFICATE_REQUEST,
        Kind::Challenge => CHALLENGE,
        Kind::ClusterIssuer | Kind::Issuer => ISSUERS,
        Kind::Event => EVENT,
        Kind::Order => ORDER,
        Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => SECRET,
    }
}

/// Labels that a table shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelColumns {
    /// Labels with a column each.
    pub each: Vec<String>,
    /// Whether one more column shows all labels.
    pub all: bool,
}

impl LabelColumns {
    /// Returns the headings: the part of each label's name after the slash, as in kubectl.
    fn titles(&self) -> impl Iterator<Item = String> {
        let bare = |label: &String| label.rsplit('/').next().unwrap_or_default().to_uppercase();
        self.each.iter().map(bare).chain(self.all.then(|| "LABELS".to_owned()))
    }

    /// Returns the cells of an object.
    fn cells(&self, object: &Value) -> impl Iterator<Item = String> {
        let labels = object.pointer("/metadata/labels");
        let value = move |name: &String| {
            let value = labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
            value.unwrap_or(NONE).to_owned()
        };
        self.each.iter().map(value).chain(self.all.then(|| every_label(labels)))
    }
}

fn every_label(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let pair =
        |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or(""));
    let pairs: Vec<String> = labels.map(pair).collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kind: Kind, objects: &[Value], look: ColumnStyle<'_>) -> String {
        table(kind, objects, &look, "2026-11-21T04:32:25Z".parse().unwrap())
    }

    fn challenges() -> Vec<Value> {
        vec![
            json!({
                "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge",
                "metadata": {"name": "web-1-2726938748-762612507", "namespace": "web", "creationTimestamp": "2026-11-21T04:32:03Z"},
                "spec": {"dnsName": "www.example.com", "type": "HTTP-01", "issuerRef": {"name": "acme"}},
                "status": {"state": "pending", "presented": true, "processing": true,
                    "reason": "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'"},
            }),
            json!({
                "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge",
                "metadata": {"name": "queued", "namespace": "web", "creationTimestamp": "2026-11-21T04:33:03Z"},
                "spec": {"dnsName": "b.example.com", "type": "DNS-01", "issuerRef": {"name": "acme"}},
            }),
        ]
    }

    #[test]
    fn challenges_show_their_reason() {
        let text = check(Kind::Challenge, &challenges(), ColumnStyle::default());
        insta::assert_snapshot!(text, @"
        NAME                         STATE     DOMAIN            REASON                                                                               AGE
        web-1-2726938748-762612507   pending   www.example.com   Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'   22s
        queued                       <none>    b.example.com     <none>                                                                               <invalid>
        ");
    }

    #[test]
    fn wide_challenges_show_type_presented_slot_and_issuer() {
        let look = ColumnStyle {
            width: Width::Wide,
            namespaces: Namespaces::Shown,
            ..ColumnStyle::default()
        };
        insta::assert_snapshot!(check(Kind::Challenge, &challenges(), look), @"
        NAMESPACE   NAME                         STATE     DOMAIN            TYPE      PRESENTED   SLOT   ISSUER   REASON                                                                               AGE
        web         web-1-2726938748-762612507   pending   www.example.com   HTTP-01   yes         yes    acme     Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'   22s
        web         queued                       <none>    b.example.com     DNS-01    no          no     acme     <none>                                                                               <invalid>
        ");
    }

    #[test]
    fn orders_show_their_reason() {
        let order = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "metadata": {"name": "web-1-1"},
            "spec": {"issuerRef": {"name": "acme"}}, "status": {"state": "valid"},
        });
        let wide =
            ColumnStyle { width: Width::Wide, naming: Naming::WithKind, ..ColumnStyle::default() };
        let orders = [order];
        let text = check(Kind::Order, &orders, ColumnStyle::default())
            + &check(Kind::Order, &orders, wide);
        insta::assert_snapshot!(text, @"
        NAME      STATE   REASON   AGE
        web-1-1   valid   <none>   <unknown>
        NAME                                 STATE   ISSUER   REASON   AGE
        order.acme.cert-manager.io/web-1-1   valid   acme     <none>   <unknown>
        ");
    }

    #[test]
    fn cluster_issuers_have_no_namespace() {
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer",
            "metadata": {"name": "acme", "creationTimestamp": "2026-11-20T04:32:03Z"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let look = ColumnStyle { namespaces: Namespaces::Shown, ..ColumnStyle::default() };
        insta::assert_snapshot!(check(Kind::ClusterIssuer, &[issuer], look), @"
        NAME   READY   AGE
        acme   True    24h
        ");
    }

    #[test]
    fn events_start_with_when_they_were_seen_last() {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1"}, "type": "Normal", "reason": "Issuing",
            "involvedObject": {"kind": "Certificate", "name": "web"}, "lastTimestamp": "2026-11-21T04:32:03Z",
            "message": "Issuing certificate as Secret does not exist",
        });
        insta::assert_snapshot!(check(Kind::Event, &[event], ColumnStyle::default()), @"
        LAST SEEN   TYPE     REASON    OBJECT            MESSAGE
        22s         Normal   Issuing   certificate/web   Issuing certificate as Secret does not exist
        ");
    }

    #[test]
    fn names_carry_kind_and_group() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-tls"}});
        assert_eq!(qualified_name(&secret), "secret/web-tls");
        assert_eq!(qualified_name(&challenges()[1]), "challenge.acme.cert-manager.io/queued");
    }

    #[test]
    fn labels_are_shown_as_kubectl_shows_them() {
        let each = ["team", "example.com/tier"].map(str::to_owned).to_vec();
        let shown = LabelColumns { each, all: true };
        assert_eq!(shown.titles().collect::<Vec<_>>(), ["TEAM", "TIER", "LABELS"]);
        let object = json!({"metadata": {"labels": {"app": "web", "example.com/tier": "front"}}});
        let cells: Vec<String> = shown.cells(&object).collect();
        assert_eq!(cells, ["<none>", "front", "app=web,example.com/tier=front"]);
        let bare = json!({"metadata": {}});
        assert_eq!(shown.cells(&bare).collect::<Vec<_>>(), [NONE; 3]);
    }
}
