//! Choice of solvers: up to 0.10 a Certificate said which solver serves which of its names; since 0.11 the issuer does.
//!
//! Each entry of `spec.acme.config` becomes a solver of the issuer with `selector.dnsNames`; conversion needs both objects.

use std::collections::BTreeSet;

use crate::model::field::{FieldPath, Remark};
use crate::model::key::Kind;
use crate::model::manifest::draft::Version;
use crate::model::manifest::{Content, Draft, FieldEntry, Node, Position};

/// Moves the choice of solvers from Certificates to their issuers; returns the changes of each draft, in words.
pub(super) fn move_to_issuers(drafts: &mut [Draft]) -> Vec<Vec<String>> {
    let mut changes = vec![Vec::new(); drafts.len()];
    // The providers that Certificates use, for each issuer that is used at all.
    let mut used: Vec<Option<BTreeSet<String>>> = vec![None; drafts.len()];
    for index in 0..drafts.len() {
        if !has_config(&drafts[index]) {
            continue;
        }
        match move_one(drafts, index) {
            Ok((issuer, providers)) => {
                used[issuer].get_or_insert_default().extend(providers);
                changes[index]
                    .push(format!("spec.acme.config moved to {}", drafts[issuer].title()));
                let title = drafts[index].title();
                changes[issuer].push(format!("the choice of {title} is now in spec.acme.solvers"));
            }
            Err(remarks) => {
                if let Ok(issuer) = find_issuer(drafts, index) {
                    used[issuer].get_or_insert_default();
                }
                for remark in remarks {
                    drafts[index].found.refuse(remark);
                }
            }
        }
    }
    for ((draft, changes), used) in drafts.iter_mut().zip(&mut changes).zip(used) {
        let issuer = matches!(draft.kind, Kind::Issuer | Kind::ClusterIssuer);
        if issuer && draft.version == Some(Version::V1Alpha1) {
            clear_issuer(draft, used, changes);
        }
    }
    changes
}

fn has_config(draft: &Draft) -> bool {
    draft.kind == Kind::Certificate
        && draft.version == Some(Version::V1Alpha1)
        && draft.node.get("spec.acme.config").is_some()
}

/// Moves the choice of one Certificate; returns the index of its issuer, and the providers that the Certificate uses.
fn move_one(drafts: &mut [Draft], index: usize) -> Result<(usize, BTreeSet<String>), Vec<Remark>> {
    let issuer = find_issuer(drafts, index).map_err(|remark| vec![remark])?;
    let target = &drafts[issuer];
    let at = target.position(&FieldPath::of("spec.acme"));
    let (mut solvers, mut errors, mut providers) = (Vec::new(), Vec::new(), BTreeSet::new());
    let config = drafts[index].node.get("spec.acme.config").map(Node::items).unwrap_or_default();
    for (number, entry) in config.iter().enumerate() {
        let path = FieldPath::of("spec.acme.config").index(number);
        match solver(entry, &path, &target.node, at) {
            Ok(solver) => {
                errors.extend(contradictions(entry, &path, &solver, &solvers, target));
                solvers.push(solver);
            }
            Err(remark) => errors.push(remark),
        }
        providers.insert(entry.text_of("dns01.provider").to_owned());
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    for solver in solvers {
        add(&mut drafts[issuer].node, solver, at);
    }
    if let Some(spec) = drafts[index].node.get_mut("spec") {
        spec.take("acme");
    }
    Ok((issuer, providers))
}

/// Finds the issuer of a Certificate among the drafts.
fn find_issuer(drafts: &[Draft], index: usize) -> Result<usize, Remark> {
    let certificate = &drafts[index].node;
    let kind = match certificate.text_of("spec.issuerRef.kind") {
        "ClusterIssuer" => Kind::ClusterIssuer,
        _ => Kind::Issuer,
    };
    let name = certificate.text_of("spec.issuerRef.name");
    let namespace = certificate.text_of("metadata.namespace");
    let found = drafts.iter().position(|draft| {
        draft.kind == kind
            && draft.node.text_of("metadata.name") == name
            && (kind == Kind::ClusterIssuer
                || draft.node.text_of("metadata.namespace") == namespace)
    });
    let remark = |why| Remark::new(FieldPath::of("spec.acme.config"), why);
    let hint = "or name the domains in the issuer: spec.acme.solvers[].selector.dnsNames";
    match found {
        None => Err(remark(format!("belongs into {kind} {name}, which is not in this set"))
            .hint(format!("give both files together, {hint}"))),
        Some(issuer) if drafts[issuer].version != Some(Version::V1Alpha1) => {
            let why = format!("belongs into {kind} {name}, which is not of v1alpha1");
            Err(remark(why).hint(hint.trim_start_matches("or ")))
        }
        Some(issuer) => Ok(issuer),
    }
}

/// Builds the solver that is equivalent to one entry of `spec.acme.config`.
fn solver(entry: &Node, path: &FieldPath, issuer: &Node, at: Position) -> Result<Node, Remark> {
    let domains: Vec<Node> = domains(entry).map(|domain| Node::text(at, domain)).collect();
    if domains.is_empty() {
        return Err(Remark::new(path.key("domains"), "is required"));
    }
    let mut solver = Node::empty(at);
    let list = Node { at, content: Content::List(domains) };
    solver.put("selector.dnsNames", list);
    if let Some(http01) = entry.get("http01") {
        solver.put("http01.ingress", Node::empty(at));
        let service_type = issuer.text_of("spec.acme.http01.serviceType");
        for (field, text) in [
            ("name", http01.text_of("ingress")),
            ("class", http01.text_of("ingressClass")),
            ("serviceType", service_type),
        ] {
            if !text.is_empty() {
                solver.put(&format!("http01.ingress.{field}"), Node::text(at, text));
            }
        }
    } else if entry.get("dns01").is_some() {
        let name = entry.text_of("dns01.provider");
        let Some(provider) = providers(issuer).iter().find(|p| p.text_of("name") == name) else {
            let path = path.below("dns01.provider");
            return Err(Remark::new(path, format!("the issuer has no provider \"{name}\"")));
        };
        let mut provider = move_to(provider, at);
        provider.take("name");
        solver.put("dns01", provider);
    } else {
        return Err(Remark::new(path.clone(), "http01 or dns01 is required"));
    }
    Ok(solver)
}

/// Returns remarks on names of the entry that another solver of the issuer serves in another way.
fn contradictions(
    entry: &Node,
    path: &FieldPath,
    solver: &Node,
    before: &[Node],
    issuer: &Draft,
) -> Vec<Remark> {
    let others = issuer.node.get("spec.acme.solvers").map(Node::items).unwrap_or_default();
    let served = |domain: &str| {
        others.iter().chain(before).filter(|other| !same_way(other, solver)).any(|other| {
            let names = other.get("selector.dnsNames").map(Node::items).unwrap_or_default();
            names.iter().any(|name| name.as_text() == Some(domain))
        })
    };
    domains(entry)
        .enumerate()
        .filter(|(_, domain)| served(domain))
        .map(|(number, domain)| {
            let why = format!("{} has another solver for {domain} already", issuer.title());
            Remark::new(path.key("domains").index(number), why)
        })
        .collect()
}

/// Adds a solver to an issuer, or the solver's names to an existing solver that works the same way.
fn add(issuer: &mut Node, solver: Node, at: Position) {
    if issuer.get("spec.acme.solvers").is_none_or(Node::is_null)
        && let Some(acme) = issuer.get_mut("spec.acme")
    {
        acme.put("solvers", Node { at, content: Content::List(Vec::new()) });
    }
    let Some(Node { content: Content::List(solvers), .. }) = issuer.get_mut("spec.acme.solvers")
    else {
        return;
    };
    let by_name = |node: &Node| {
        let selector = node.get("selector").map(Node::entries).unwrap_or_default();
        matches!(selector, [FieldEntry { key, .. }] if key == "dnsNames")
    };
    let Some(twin) = solvers.iter_mut().find(|other| by_name(other) && same_way(other, &solver))
    else {
        solvers.push(solver);
        return;
    };
    let new = solver.get("selector.dnsNames").map(Node::items).unwrap_or_default();
    if let Some(Node { content: Content::List(names), .. }) = twin.get_mut("selector.dnsNames") {
        for name in new {
            if !names.iter().any(|known| known.as_text() == name.as_text()) {
                names.push(name.clone());
            }
        }
    }
}

/// Removes the old fields of an issuer, or refuses them if no object of the set says how they are used.
fn clear_issuer(draft: &mut Draft, used: Option<BTreeSet<String>>, changes: &mut Vec<String>) {
    let has = |field: &str| draft.node.get(field).is_some_and(|node| !node.is_null());
    let (http01, dns01) = (has("spec.acme.http01"), has("spec.acme.dns01"));
    let solvers = draft.node.get("spec.acme.solvers").is_some_and(|s| !s.items().is_empty());
    if !http01 && !dns01 {
        return;
    }
    if used.is_none() && !solvers && dns01 {
        let path = FieldPath::of("spec.acme.dns01");
        let why =
            "which names its providers serve is said in Certificates, and none of this set says it";
        let hint = "give the Certificates too, or write an entry dns01 under spec.acme.solvers";
        draft.found.refuse(Remark::new(path, why).hint(hint));
        return;
    }
    if used.is_none() && !solvers {
        let at = draft.position(&FieldPath::of("spec.acme.http01"));
        let service_type = draft.node.text_of("spec.acme.http01.serviceType").to_owned();
        let mut solver = Node::empty(at);
        solver.put("http01.ingress", Node::empty(at));
        if !service_type.is_empty() {
            solver.put("http01.ingress.serviceType", Node::text(at, service_type));
        }
        add(&mut draft.node, solver, at);
        changes.push("spec.acme.http01 is now an entry of spec.acme.solvers".to_owned());
    }
    let used = used.unwrap_or_default();
    for provider in providers(&draft.node) {
        let name = provider.text_of("name");
        if !used.contains(name) {
            changes
                .push(format!("provider {name} is left out: no Certificate of this set uses it"));
        }
    }
    if let Some(acme) = draft.node.get_mut("spec.acme") {
        acme.take("http01");
        acme.take("dns01");
    }
}

fn domains(entry: &Node) -> impl Iterator<Item = &str> {
    entry.get("domains").map(Node::items).unwrap_or_default().iter().filter_map(Node::as_text)
}

fn providers(issuer: &Node) -> &[Node] {
    issuer.get("spec.acme.dns01.providers").map(Node::items).unwrap_or_default()
}

/// Reports whether two solvers differ in their selectors at most.
fn same_way(a: &Node, b: &Node) -> bool {
    let way = |node: &Node| {
        let mut node = node.clone();
        node.take("selector");
        node.to_value()
    };
    way(a) == way(b)
}

/// Copies a value to another position, since complaints about the value belong to the object that receives it.
fn move_to(node: &Node, at: Position) -> Node {
    let content = match &node.content {
        Content::List(items) => Content::List(items.iter().map(|item| move_to(item, at)).collect()),
        Content::Map(entries) => {
            let entry = |e: &FieldEntry| FieldEntry {
                key: e.key.clone(),
                at,
                value: move_to(&e.value, at),
            };
            Content::Map(entries.iter().map(entry).collect())
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {
            node.content.clone()
        }
    };
    Node { at, content }
}
