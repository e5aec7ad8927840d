//! Path of a solver's HTTPRoute, hop by hop: its hosts, the parent that it names, the Gateway above a ListenerSet, a
//! listener, the back end. Each hop is judged by the specifications of the objects, whether or not a controller has reported.

use super::open_path::{OpenPath, named};
use crate::diagnosis::case::gateway_objects::{
    AllowedNamespaces, CrossReference, GROUP, GatewayCase, ListenerCase, ListenerSetCase,
    ListenerStatusCase, RouteCase, RouteKindCase,
};
use crate::diagnosis::case::network_policy::LabelSelection;
use crate::model::Metadata;
use crate::model::solver::{GatewaySolver, ParentReference};

/// Kind of a parent that names no kind.
const GATEWAY: &str = "Gateway";
const LISTENER_SET: &str = "ListenerSet";
const ROUTE: &str = "HTTPRoute";

/// Parent that a route names, with what was read of it.
pub(super) struct NamedParent<'a> {
    pub(super) parent: &'a ParentReference,
    /// Namespace of the parent.
    pub(super) namespace: &'a str,
    /// The parent that was read; `None` if there is none of that name.
    pub(super) found: Option<FoundParent<'a>>,
}

/// Object that has listeners.
#[derive(Clone, Copy)]
pub(super) enum FoundParent<'a> {
    Gateway(&'a GatewayCase),
    Set(&'a ListenerSetCase),
}

/// Hop at which a route stops.
pub(super) struct BrokenHop {
    /// An object, or a field of an object.
    pub(super) at: String,
    pub(super) why: String,
}

/// Returns the kind of a parent.
pub(super) fn kind(parent: &ParentReference) -> &str {
    parent.kind.as_deref().unwrap_or(GATEWAY)
}

/// Returns a parent as messages name it.
pub(super) fn shown(parent: &ParentReference, namespace: &str) -> String {
    let namespace = parent.namespace.as_deref().unwrap_or(namespace);
    let section = parent.section_name.as_ref().map(|name| format!(", listener {name}"));
    let port = parent.port.map(|port| format!(", port {port}"));
    let (kind, name) = (kind(parent), &parent.name);
    format!("{kind} {namespace}/{name}{}{}", section.unwrap_or_default(), port.unwrap_or_default())
}

/// Returns a listener as messages name it.
pub(super) fn described(listener: &ListenerCase) -> String {
    format!("{} on port {}", listener.protocol, listener.port)
}

/// Returns the parents that were looked for: the route's own, or the solver's before there is a route.
pub(super) fn parents<'a>(open: &OpenPath<'a>, solver: &'a GatewaySolver) -> Vec<NamedParent<'a>> {
    let path = open.path;
    let own = &open.wanted.namespace;
    let of_route = open.route().map(|route| &route.spec.parent_refs);
    let all = of_route.filter(|all| !all.is_empty()).unwrap_or(&solver.parent_refs);
    let looked_for = all.iter().filter_map(|parent| {
        let namespace = parent.namespace.as_ref().unwrap_or(own);
        let is_it = |of: &Metadata| of.namespace == *namespace && of.name == parent.name;
        let is_known = |plural| path.has_listed(plural, &format!("{namespace}/{}", parent.name));
        let found = match kind(parent) {
            GATEWAY if is_known("gateways") => {
                let found = path.gateways.iter().find(|one| is_it(&one.metadata));
                found.map(FoundParent::Gateway)
            }
            LISTENER_SET if is_known("listenersets") => {
                let found = path.listener_sets.iter().find(|one| is_it(&one.metadata));
                found.map(FoundParent::Set)
            }
            _ => return None,
        };
        Some(NamedParent { parent, namespace, found })
    });
    looked_for.collect()
}

impl<'a> FoundParent<'a> {
    fn metadata(self) -> &'a Metadata {
        match self {
            Self::Gateway(gateway) => &gateway.metadata,
            Self::Set(set) => &set.metadata,
        }
    }

    /// Returns the kind of the parent.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Gateway(_) => GATEWAY,
            Self::Set(_) => LISTENER_SET,
        }
    }

    /// Returns the parent as messages name it.
    pub(super) fn shown(self) -> String {
        named(self.kind(), self.metadata())
    }

    fn listeners(self) -> &'a [ListenerCase] {
        match self {
            Self::Gateway(gateway) => &gateway.spec.listeners,
            Self::Set(set) => &set.spec.listeners,
        }
    }

    /// Returns the Gateway; `None` if the parent is a ListenerSet.
    pub(super) fn gateway(self) -> Option<&'a GatewayCase> {
        match self {
            Self::Gateway(gateway) => Some(gateway),
            Self::Set(_) => None,
        }
    }

    /// Returns the status of each listener.
    pub(super) fn states(self) -> &'a [ListenerStatusCase] {
        match self {
            Self::Gateway(gateway) => &gateway.status.listeners,
            Self::Set(set) => &set.status.listeners,
        }
    }
}

impl<'a> NamedParent<'a> {
    /// Returns the listeners that the reference selects.
    pub(super) fn listeners(&self) -> Vec<&'a ListenerCase> {
        let is_meant = |listener: &&ListenerCase| {
            let parent = self.parent;
            parent.section_name.as_ref().is_none_or(|name| *name == listener.name)
                && parent.port.is_none_or(|port| port == i32::from(listener.port))
        };
        self.found.into_iter().flat_map(FoundParent::listeners).filter(is_meant).collect()
    }
}

/// Returns the first hop that stops the route by way of a parent; `None` if no hop does, or if the parent was not read.
pub(super) fn broken_hop(open: &OpenPath<'_>, one: &NamedParent<'_>) -> Option<BrokenHop> {
    let Some(found) = one.found else {
        let at = format!("{} {}/{}", kind(one.parent), one.namespace, one.parent.name);
        return Some(BrokenHop { at, why: "does not exist".to_owned() });
    };
    hosts_are_others(open)
        .or_else(|| set_is_refused(open, found))
        .or_else(|| listeners_refuse(open, one, found))
        .or_else(|| backend_is_refused(open))
}

/// Finds a route for other hosts.
fn hosts_are_others(open: &OpenPath<'_>) -> Option<BrokenHop> {
    let route = open.route()?;
    let hosts = &route.spec.hostnames;
    if hosts.is_empty() || hosts.iter().any(|host| covers(host, &open.wanted.domain)) {
        return None;
    }
    let at = format!("{}: spec.hostnames", named(ROUTE, &route.metadata));
    Some(BrokenHop { at, why: format!("it is for {} only", hosts.join(", ")) })
}

/// Finds a ListenerSet whose Gateway does not exist, or does not take the set.
fn set_is_refused(open: &OpenPath<'_>, found: FoundParent<'_>) -> Option<BrokenHop> {
    let FoundParent::Set(set) = found else { return None };
    let parent = &set.spec.parent_ref;
    let own = &set.metadata.namespace;
    let namespace = parent.namespace.as_ref().unwrap_or(own);
    let name = format!("{namespace}/{}", parent.name);
    if !open.path.has_listed("gateways", &name) {
        return None;
    }
    let is_it = |one: &&GatewayCase| {
        one.metadata.namespace == *namespace && one.metadata.name == parent.name
    };
    let Some(gateway) = open.path.gateways.iter().find(is_it) else {
        let at = format!("{}: spec.parentRef", found.shown());
        return Some(BrokenHop { at, why: format!("there is no Gateway {name}") });
    };
    let allowed = &gateway.spec.allowed_listeners.namespaces;
    let why = namespace_refusal(open, (allowed, "None"), (namespace, own), "ListenerSets")?;
    let at = format!("{}: spec.allowedListeners", named(GATEWAY, &gateway.metadata));
    Some(BrokenHop { at, why: format!("the Gateway {why}, so not {}", found.shown()) })
}

/// Finds that no listener of a parent takes the route.
fn listeners_refuse(
    open: &OpenPath<'_>,
    one: &NamedParent<'_>,
    found: FoundParent<'_>,
) -> Option<BrokenHop> {
    let mut reasons = Vec::new();
    for listener in one.listeners() {
        let why = listener_refuses(open, listener, found.metadata())?;
        reasons.push(format!("listener {} ({}) {why}", listener.name, described(listener)));
    }
    let why = match (reasons.is_empty(), found.listeners().len()) {
        (true, 0) => "it has no listeners".to_owned(),
        (true, _) => format!("none of its listeners is {}", shown(one.parent, one.namespace)),
        (false, _) => reasons.join("; "),
    };
    Some(BrokenHop { at: format!("{}: spec.listeners", found.shown()), why })
}

fn listener_refuses(open: &OpenPath<'_>, listener: &ListenerCase, of: &Metadata) -> Option<String> {
    if listener.protocol != "HTTP" {
        return Some("accepts no plain HTTP".to_owned());
    }
    let allowed = &listener.allowed_routes;
    let places = (of.namespace.as_str(), open.wanted.namespace.as_str());
    let is_route =
        |kind: &RouteKindCase| kind.kind == ROUTE && (kind.group.is_empty() || kind.group == GROUP);
    let of_kind = || {
        let kinds: Vec<&str> = allowed.kinds.iter().map(|kind| kind.kind.as_str()).collect();
        let has_it = kinds.is_empty() || allowed.kinds.iter().any(is_route);
        (!has_it).then(|| format!("accepts {} only", kinds.join(", ")))
    };
    let of_host = || {
        let is_covered = covers(&listener.hostname, &open.wanted.domain);
        (!is_covered).then(|| format!("is for {} only", listener.hostname))
    };
    namespace_refusal(open, (&allowed.namespaces, "Same"), places, "routes")
        .or_else(of_kind)
        .or_else(of_host)
}

/// Returns why objects of a namespace may not attach; `None` if they may, or if that is not known.
fn namespace_refusal(
    open: &OpenPath<'_>,
    (allowed, unsaid): (&AllowedNamespaces, &str),
    (own, other): (&str, &str),
    what: &str,
) -> Option<String> {
    match if allowed.from.is_empty() { unsaid } else { &allowed.from } {
        "Same" if own != other => Some(format!("accepts {what} of namespace {own} only")),
        "Selector" => {
            let labels = open.path.namespaces.get(other)?;
            let wanted = selection(&allowed.selector);
            let is_fit = allowed.selector.fits(labels);
            (!is_fit).then(|| {
                format!(
                    "accepts {what} of namespaces with {wanted} only, which {other} does not match"
                )
            })
        }
        "None" => Some(format!("accepts no {what}")),
        _ => None,
    }
}

/// Returns a selector in words.
fn selection(selector: &LabelSelection) -> String {
    let labels = selector.match_labels.iter().map(|(name, value)| format!("{name}={value}"));
    let more = selector.match_expressions.iter().map(|one| {
        let values = one.values.join(", ");
        if values.is_empty() {
            format!("{} {}", one.key, one.operator)
        } else {
            format!("{} {} ({values})", one.key, one.operator)
        }
    });
    labels.chain(more).collect::<Vec<_>>().join(", ")
}

/// Finds a back end in another namespace that no ReferenceGrant permits.
fn backend_is_refused(open: &OpenPath<'_>) -> Option<BrokenHop> {
    let route = open.route()?;
    let own = route.metadata.namespace.as_str();
    let mut backends = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
    backends.find_map(|backend| {
        let namespace = backend.namespace.as_deref().filter(|namespace| *namespace != own)?;
        let kind = if backend.kind.is_empty() { "Service" } else { &backend.kind };
        let to = ((backend.group.as_str(), kind), (namespace, backend.name.as_str()));
        let why = ungranted(open, (ROUTE, own), to)?;
        Some(BrokenHop { at: backends_of(route), why })
    })
}

fn backends_of(route: &RouteCase) -> String {
    format!("{}: backendRefs", named(ROUTE, &route.metadata))
}

/// Returns the words that no ReferenceGrant permits a reference; `None` if a grant permits it, or no grants were read.
pub(super) fn ungranted(
    open: &OpenPath<'_>,
    (from_kind, from): (&str, &str),
    (to_kind, to): ((&str, &str), (&str, &str)),
) -> Option<String> {
    let (namespace, name) = to;
    if !open.path.has_listed("referencegrants", namespace) {
        return None;
    }
    let reference = CrossReference { from_kind, from, to_kind, to };
    let is_permitted = open.path.grants.iter().any(|grant| grant.permits(reference));
    (!is_permitted).then(|| {
        let what = to_kind.1;
        format!(
            "no ReferenceGrant of namespace {namespace} lets a {from_kind} of {from} refer to {what} {namespace}/{name}"
        )
    })
}

/// Reports whether a host of Gateway API (Hostname) covers a name; a wildcard stands for one label or more.
pub(super) fn covers(host: &str, domain: &str) -> bool {
    match host.strip_prefix('*') {
        _ if host.is_empty() => true,
        Some(parent) => domain.len() > parent.len() && domain.ends_with(parent),
        None => host.eq_ignore_ascii_case(domain),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::super::judge;
    use super::super::open_path::testing::{object, own, path_with};
    use super::super::tests::check;
    use super::*;
    use crate::diagnosis::case::path::ClusterPathCase;
    use crate::diagnosis::catalogue::id::CauseId;

    /// Builds a name whose solver names `edge/public`, with listeners and a change; no controller has reported on the route.
    fn through(
        parent: Value,
        listeners: Value,
        change: impl FnOnce(&mut ClusterPathCase),
    ) -> crate::diagnosis::case::Case {
        path_with(json!({"gatewayHTTPRoute": {"parentRefs": [parent]}}), |_, path| {
            path.note("gateways", "edge/public");
            path.gateways = vec![object(json!({
                "metadata": {"namespace": "edge", "name": "public"}, "spec": {"listeners": listeners},
            }))];
            change(path);
        })
    }

    fn listener(namespaces: Value, kinds: Value) -> Value {
        json!([{
            "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": namespaces, "kinds": kinds},
        }])
    }

    fn public() -> Value {
        json!({"name": "public", "namespace": "edge"})
    }

    /// The detail of the one finding.
    #[track_caller]
    fn says(case: &crate::diagnosis::case::Case, expected: &str) {
        check(case, &[CauseId::Gw02]);
        let detail = &judge(case)[0].facts["DETAIL"];
        assert!(detail.contains(expected), "{detail}");
    }

    #[test]
    fn the_labels_of_the_namespace_decide_where_a_listener_goes_by_them() {
        let teams = json!({"from": "Selector", "selector": {"matchLabels": {"team": "web"}}});
        let of = |labels: Value| {
            through(public(), listener(teams.clone(), json!([])), |path| {
                path.namespaces = [("web".to_owned(), object(labels))].into();
                // Otherwise it is missed that nobody has said anything.
                path.routes[0].metadata.creation_timestamp = None;
            })
        };
        says(
            &of(json!({"team": "mail"})),
            "accepts routes of namespaces with team=web only, which web does not match",
        );
        check(&of(json!({"team": "web"})), &[]);
        let unread = through(public(), listener(teams.clone(), json!([])), |path| {
            path.routes[0].metadata.creation_timestamp = None;
        });
        check(&unread, &[]);
        says(&through(public(), listener(json!({}), json!([])), |_| ()), "of namespace edge only");
    }

    #[test]
    fn a_listener_may_take_other_kinds_alone() {
        let all = json!({"from": "All"});
        let of = |kinds: Value| {
            through(public(), listener(all.clone(), kinds), |path| {
                path.routes[0].metadata.creation_timestamp = None;
            })
        };
        says(&of(json!([{"group": GROUP, "kind": "GRPCRoute"}])), "accepts GRPCRoute only");
        check(&of(json!([{"kind": "GRPCRoute"}, {"group": GROUP, "kind": "HTTPRoute"}])), &[]);
    }

    #[test]
    fn a_listener_set_is_followed_to_its_gateway() {
        let set = json!({"kind": "ListenerSet", "name": "own"});
        let of = |allowed: Value, is_there: bool| {
            through(set.clone(), json!([]), |path| {
                path.note("listenersets", "web/own");
                path.listener_sets = vec![object(json!({
                    "metadata": {"namespace": "web", "name": "own"},
                    "spec": {
                        "parentRef": {"name": "public", "namespace": "edge"},
                        "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
                    },
                }))];
                path.gateways[0].spec.allowed_listeners = object(json!({"namespaces": allowed}));
                path.routes[0].metadata.creation_timestamp = None;
                if !is_there {
                    path.gateways.clear();
                }
            })
        };
        check(&of(json!({"from": "All"}), true), &[]);
        says(
            &of(json!({}), true),
            "Gateway edge/public: spec.allowedListeners: the Gateway accepts no ListenerSets",
        );
        says(&of(json!({"from": "Same"}), true), "accepts ListenerSets of namespace edge only");
        says(
            &of(json!({"from": "All"}), false),
            "ListenerSet web/own: spec.parentRef: there is no Gateway edge/public",
        );
        let gone = through(set, json!([]), |path| path.note("listenersets", "web/own"));
        says(&gone, "ListenerSet web/own: does not exist");
    }

    #[test]
    fn a_back_end_elsewhere_needs_a_grant() {
        let of = |grants: Value| {
            through(public(), listener(json!({"from": "All"}), json!([])), |path| {
                path.note("referencegrants", "apps");
                let rules = json!([{"backendRefs": [{"name": "solver", "namespace": "apps"}]}]);
                path.routes = vec![object(json!({
                    "metadata": own("route", json!({"creationTimestamp": null})),
                    "spec": {"hostnames": ["www.example.com"], "rules": rules},
                }))];
                path.grants = object(grants);
            })
        };
        let grant = |name: Value| {
            json!([{
                "metadata": {"namespace": "apps", "name": "g"},
                "spec": {
                    "from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": "web"}],
                    "to": [{"group": "", "kind": "Service", "name": name}],
                },
            }])
        };
        says(
            &of(json!([])),
            "no ReferenceGrant of namespace apps lets a HTTPRoute of web refer to Service apps/solver",
        );
        says(&of(grant(json!("other"))), "no ReferenceGrant");
        check(&of(grant(json!("solver"))), &[]);
        check(&of(grant(Value::Null)), &[]);
    }

    #[test]
    fn a_route_for_other_hosts_stops_at_once() {
        let case = through(public(), listener(json!({"from": "All"}), json!([])), |path| {
            path.routes[0].spec.hostnames = vec!["other.example.com".into()];
        });
        says(&case, "spec.hostnames: it is for other.example.com only");
    }
}
