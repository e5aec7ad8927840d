//! Changes of the six kinds, for commands that watch until interrupted.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, select_all};

use crate::input::target;
use crate::model::{Key, Kind};
use crate::store::error::StoreError;
use crate::store::{Change, Scope, Store};

/// Changes, each with its kind.
pub type Changes = BoxStream<'static, (Kind, Result<Change, StoreError>)>;

/// Returns the changes of the six kinds in a namespace, or in all namespaces.
pub fn of_the_six(store: &Arc<dyn Store>, namespace: Option<&str>) -> Changes {
    let scopes = Kind::SIX.map(|kind| (kind, target::scope(kind, namespace)));
    of_kinds(store, scopes)
}

/// Returns the changes of these kinds, each within its scope.
pub fn of_kinds(
    store: &Arc<dyn Store>,
    scopes: impl IntoIterator<Item = (Kind, Scope)>,
) -> Changes {
    let streams = scopes.into_iter();
    let streams = streams
        .map(|(kind, scope)| store.watch(kind, scope).map(move |change| (kind, change)).boxed());
    select_all(streams).boxed()
}

/// Returns whether a command continues without a kind: a Role of a namespace gives no access to ClusterIssuers.
pub fn may_be_left_out(kind: Kind, root: Option<&Key>, error: &StoreError) -> bool {
    let is_beside = matches!(kind, Kind::ClusterIssuer | Kind::Event);
    is_beside && root.is_none_or(|root| root.kind != kind) && error.lacks_permission()
}

/// Returns the changes of all kinds but one.
pub fn others(changes: Changes, kind: Kind) -> Changes {
    changes.filter(move |(other, _)| std::future::ready(*other != kind)).boxed()
}
