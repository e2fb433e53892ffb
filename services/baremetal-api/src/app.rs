//! The state shared by all handlers, and functions that most handlers need.

use std::collections::BTreeMap;
use std::future::Future;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use axum::extract::FromRef;
use baremetal_conductor::Conductor;
use baremetal_core::{
    AfterDrain, DrainRequest, HistoryEntry, NewDrainRequest, Node, NodeIdent, NodeUuid,
    TakeOutRefused, end_maintenance_drain, wait_for_drain,
};
use baremetal_store::{Store, StoreError};
use jiff::Timestamp;
use lease::Terms;
use openstack_api::{
    AccessScope, ApiError, ApiSettings, ApiState, Auth, Caller, Microversion, PlaceCounts, Query,
    Relation, ResourceOwnership,
};
use tracing::warn;

use crate::error::Error;
use crate::microversion;

/// The state shared by all handlers.
#[derive(Clone)]
pub struct App {
    pub store: Store,
    pub conductor: Conductor,
    /// Returns the current time.
    pub clock: fn() -> Timestamp,
    pub auth: Auth,
    /// How many consoles each user has open.
    pub lookers: PlaceCounts,
    pub settings: Settings,
}

/// The settings of an operator.
#[derive(Clone, Debug)]
pub struct Settings {
    pub api: ApiSettings,
    /// The timeout of a power change if the client sets none.
    pub power_timeout: Duration,
    /// How many consoles one caller may have open.
    pub consoles_each: NonZeroUsize,
    /// How many allocations a project may have.
    pub allocations_each: NonZeroU32,
    pub reservations: Reservations,
}

/// The limits of reservations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reservations {
    /// How many nodes a project may have reserved.
    pub nodes_per_project: u32,
    /// The default and the maximum length of a lease.
    pub lease: Terms,
}

/// How often a change is attempted if another writer changes the same record meanwhile.
const ATTEMPTS: usize = 8;

impl App {
    /// Finds a node by UUID or name, if the caller may access it under the rule of the route.
    pub(crate) async fn node(
        &self,
        caller: &Caller,
        asked: Microversion,
        ident: &str,
    ) -> Result<Node, Error> {
        let node = self.store.find_node(&parsed(asked, ident)?).await?;
        check_access(caller, ident, node)
    }

    /// Like [`App::node`] for several nodes, returned in the order of `idents`.
    pub(crate) async fn nodes(
        &self,
        caller: &Caller,
        asked: Microversion,
        idents: &[String],
    ) -> Result<Vec<Node>, Error> {
        let wanted: Result<Vec<NodeIdent>, ApiError> =
            idents.iter().map(|ident| parsed(asked, ident)).collect();
        let wanted = wanted?;
        let found = self.store.find_nodes(&wanted).await?;
        let by_id: BTreeMap<NodeUuid, &Node> = found.iter().map(|node| (node.id, node)).collect();
        let named = found.iter().filter_map(|node| Some((node.name.as_ref()?.as_str(), node)));
        let by_name: BTreeMap<&str, &Node> = named.collect();
        let of = |wanted: &NodeIdent| match wanted {
            NodeIdent::Id(id) => by_id.get(id).copied().cloned(),
            NodeIdent::Name(name) => by_name.get(name.as_str()).copied().cloned(),
        };
        let all = idents.iter().zip(&wanted);
        all.map(|(ident, wanted)| check_access(caller, ident, of(wanted))).collect()
    }

    /// Refuses the request if clusterd would refuse to drain the node's compute host. The check changes nothing; the conductor requests the
    /// drain after the request is recorded.
    pub(crate) async fn check_leave(
        &self,
        caller: &Caller,
        node: &Node,
        forced: &[String],
    ) -> Result<(), Error> {
        let checked = self.conductor.check_leave(node, forced).await;
        checked.map_err(|why| drain_refusal(caller, node, why))
    }

    /// Like [`App::check_leave`], for maintenance. Maintenance powers nothing off, so an unreachable clusterd must not keep an operator
    /// from repairing a broken machine.
    pub(crate) async fn check_maintenance(
        &self,
        caller: &Caller,
        node: &Node,
        forced: &[String],
    ) -> Result<(), Error> {
        match self.conductor.check_leave(node, forced).await {
            Ok(()) | Err(TakeOutRefused::Occupied { .. }) => Ok(()),
            Err(why @ TakeOutRefused::Unknown { .. }) => {
                warn!(node.id = %node.id, "{why}; the node is put into maintenance anyway");
                Ok(())
            }
            Err(why @ TakeOutRefused::Refused { .. }) => Err(drain_refusal(caller, node, why)),
        }
    }

    /// Refuses to delete a node whose compute host is not drained.
    pub(crate) async fn check_drained(
        &self,
        caller: &Caller,
        node: &Node,
        forced: &[String],
    ) -> Result<(), Error> {
        let checked = self.conductor.check_drained(node, forced).await;
        checked.map_err(|why| drain_refusal(caller, node, why))
    }

    /// Returns the node with a request that waits until its compute host is drained; `None` if there is no host to drain.
    pub(crate) fn with_drain_request(
        &self,
        caller: &Caller,
        node: &Node,
        then: AfterDrain,
        forced: &[String],
    ) -> Option<(Node, HistoryEntry)> {
        let host = self.conductor.host_to_drain(node, forced)?;
        let by = caller.user().map(str::to_owned);
        let request = NewDrainRequest { host, then, forced: forced.to_vec(), by };
        Some(wait_for_drain(node, request, (self.clock)()))
    }

    /// Adds the consequences of a change of maintenance for the node's compute host to `after`: the host is drained when maintenance
    /// begins, and undrained when it ends.
    pub(crate) fn with_maintenance_effects(
        &self,
        caller: &Caller,
        before: &Node,
        after: Node,
        forced: &[String],
    ) -> Node {
        let is_waiting = after.leaving.as_ref().is_some_and(DrainRequest::is_waiting);
        match (&before.maintenance, &after.maintenance) {
            (None, Some(_)) if !is_waiting => {
                let left = self.with_drain_request(caller, &after, AfterDrain::Maintenance, forced);
                left.map_or(after, |(left, _)| left)
            }
            (Some(_), None) => match self.conductor.host_to_drain(&after, &[]) {
                Some(host) => {
                    let by = caller.user().map(str::to_owned);
                    end_maintenance_drain(&after, &host, by, (self.clock)())
                }
                None => after,
            },
            (None | Some(_), _) => after,
        }
    }

    /// Changes a node: reads it, calls `decide` and writes the result. Starts over if another writer changed the node meanwhile.
    pub(crate) async fn change(
        &self,
        caller: &Caller,
        asked: Microversion,
        ident: &str,
        decide: impl Fn(&Node) -> Result<(Node, Option<HistoryEntry>), Error>,
    ) -> Result<Node, Error> {
        retry_if_stale(|| async {
            let (mut changed, entry) = decide(&self.node(caller, asked, ident).await?)?;
            changed.updated_at = Some((self.clock)());
            let entry = entry.map(|entry| entry.by(caller.user()));
            Ok(self.store.update_node(&changed, entry.as_slice()).await?)
        })
        .await
    }
}

/// The clusters, or the host, that the query parameter `force` allows to be disrupted.
pub(crate) fn forced(query: &mut Query) -> Vec<String> {
    let named = query.take("force").unwrap_or_default();
    named.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The refusal of a drain, with the details that the caller may know.
fn drain_refusal(caller: &Caller, node: &Node, why: TakeOutRefused) -> Error {
    if relation(caller, node) == Some(Relation::Cloud) {
        return why.into();
    }
    // A lessee must not learn whose servers run on the node.
    ApiError::conflict(format!("node {} runs servers of other projects", node.label())).into()
}

/// Parses the UUID or name of a node.
fn parsed(asked: Microversion, ident: &str) -> Result<NodeIdent, ApiError> {
    let parsed: NodeIdent = ident.parse().map_err(|_| {
        let ident = shown(ident);
        ApiError::bad_request(format!("{ident:?} is neither a UUID nor a valid node name"))
    })?;
    match &parsed {
        NodeIdent::Name(_) if !asked.has(microversion::NODE_NAME) => Err(missing(ident)),
        NodeIdent::Name(_) | NodeIdent::Id(_) => Ok(parsed),
    }
}

/// Checks that the caller may access the node that was found for `ident`.
fn check_access(caller: &Caller, ident: &str, found: Option<Node>) -> Result<Node, Error> {
    let node = found.ok_or_else(|| missing(ident))?;
    let bond = relation(caller, &node).ok_or_else(|| missing(ident))?;
    caller.rule().check(caller, bond)?;
    Ok(node)
}

fn missing(ident: &str) -> ApiError {
    ApiError::not_found(format!("Node {} could not be found.", shown(ident)))
}

fn shown(ident: &str) -> String {
    ident.chars().take(64).collect()
}

/// How the caller is related to a node. `None` if the caller must not learn that the node exists.
pub(crate) fn relation(caller: &Caller, node: &Node) -> Option<Relation> {
    caller.relation_to(node.owner.as_deref(), node.lessee.as_deref())
}

/// The project to which the caller's view is restricted; `None` if the caller may see every node.
pub(crate) fn visible_project(caller: &Caller) -> Option<String> {
    match caller.access_scope() {
        AccessScope::Everything => None,
        AccessScope::Project(own) => Some(own.to_owned()),
        // The gate refuses such callers. If one came through, this id would match no project.
        AccessScope::Nothing => Some(String::new()),
    }
}

/// Repeats `attempt` as long as another writer changes the record meanwhile, up to [`ATTEMPTS`] times.
pub(crate) async fn retry_if_stale<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(Error::Store(StoreError::Stale)) => {}
            done => return done,
        }
    }
    attempt().await
}

impl FromRef<App> for Auth {
    fn from_ref(app: &App) -> Auth {
        app.auth.clone()
    }
}

impl ApiState for App {
    const POLICY: ResourceOwnership = ResourceOwnership::Operators;
}
