//! What every handler works with.

use std::collections::BTreeMap;
use std::future::Future;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use axum::extract::FromRef;
use baremetal_conductor::{Conductor, StaysError};
use baremetal_core::{
    AfterDrain, HistoryEntry, LeaveRequest, Leaving, Node, NodeIdent, NodeUuid, come_back, leave,
};
use baremetal_store::{Store, StoreError};
use jiff::Timestamp;
use lease::Terms;
use openstack_api::{
    ApiError, Auth, Bond, Caller, Crowd, Forwarded, Hosts, Limits, Microversion, Policy, Query,
    Reach, Scheme, Ward,
};
use tracing::warn;

use crate::error::Error;
use crate::microversion;

/// What every handler works with.
#[derive(Clone)]
pub struct App {
    /// Where nodes are.
    pub store: Store,
    /// Who looks after them.
    pub conductor: Conductor,
    /// What time it is.
    pub clock: fn() -> Timestamp,
    /// How callers prove who they are.
    pub auth: Auth,
    /// Who looks at how many consoles.
    pub lookers: Crowd,
    /// What an operator configured.
    pub settings: Settings,
}

/// What an operator configured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the listener is reached.
    pub scheme: Scheme,
    /// Whether a proxy before it is believed.
    pub forwarded: Forwarded,
    /// The hosts under which it may be asked.
    pub hosts: Hosts,
    /// How much callers may have.
    pub limits: Limits,
    /// How long a change of power may take when the client does not say.
    pub power_timeout: Duration,
    /// At how many consoles one caller may look at once.
    pub consoles_each: NonZeroUsize,
    /// How many allocations a project may have at once.
    pub allocations_each: NonZeroU32,
    /// Whole nodes for projects.
    pub reservations: Reservations,
}

/// Whole nodes for projects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reservations {
    /// How many each may have at once.
    pub nodes_per_project: u32,
    /// For how long, by default and at most.
    pub lease: Terms,
}

/// How often a change is tried again because someone else was faster.
const ATTEMPTS: usize = 8;

impl App {
    /// The node that `ident` points at, if the caller has to do with it, and may do what it came for.
    pub(crate) async fn node(
        &self,
        caller: &Caller,
        asked: Microversion,
        ident: &str,
    ) -> Result<Node, Error> {
        let node = self.store.find_node(&parsed(asked, ident)?).await?;
        met(caller, ident, node)
    }

    /// As [`App::node`], of many at once: in the order in which they were named.
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
        all.map(|(ident, wanted)| met(caller, ident, of(wanted))).collect()
    }

    /// Refuses to take a node out whose compute host may not be drained, as clusterd says when asked. Nothing changes by the question: the
    /// conductor asks for the drain once the request is written down.
    pub(crate) async fn check_leave(
        &self,
        caller: &Caller,
        node: &Node,
        forced: &[String],
    ) -> Result<(), Error> {
        let checked = self.conductor.check_leave(node, forced).await;
        checked.map_err(|why| stays(caller, node, why))
    }

    /// The same for maintenance. Nothing is switched off by that, so a clusterd that does not answer hinders nobody who looks after a broken
    /// machine.
    pub(crate) async fn check_maintenance(
        &self,
        caller: &Caller,
        node: &Node,
        forced: &[String],
    ) -> Result<(), Error> {
        match self.conductor.check_leave(node, forced).await {
            Ok(()) | Err(StaysError::Occupied { .. }) => Ok(()),
            Err(why @ StaysError::Unknown { .. }) => {
                warn!(node.id = %node.id, "{why}; it is put into maintenance all the same");
                Ok(())
            }
            Err(why @ StaysError::Refused { .. }) => Err(stays(caller, node, why)),
        }
    }

    /// Refuses to forget a node whose compute host is not drained.
    pub(crate) async fn check_drained(
        &self,
        caller: &Caller,
        node: &Node,
        forced: &[String],
    ) -> Result<(), Error> {
        let checked = self.conductor.check_drained(node, forced).await;
        checked.map_err(|why| stays(caller, node, why))
    }

    /// The node with a request that waits for the drain of its compute host; `None` where it waits for none.
    pub(crate) fn leaving(
        &self,
        caller: &Caller,
        node: &Node,
        then: AfterDrain,
        forced: &[String],
    ) -> Option<(Node, HistoryEntry)> {
        let host = self.conductor.host_to_drain(node, forced)?;
        let by = caller.user().map(str::to_owned);
        let request = LeaveRequest { host, then, forced: forced.to_vec(), by };
        Some(leave(node, request, (self.clock)()))
    }

    /// `after` with what its maintenance asks of its compute host: the host is drained once maintenance begins, and takes servers again once
    /// it ends.
    pub(crate) fn maintained(
        &self,
        caller: &Caller,
        before: &Node,
        after: Node,
        forced: &[String],
    ) -> Node {
        let is_waiting = after.leaving.as_ref().is_some_and(Leaving::is_waiting);
        match (&before.maintenance, &after.maintenance) {
            (None, Some(_)) if !is_waiting => {
                let left = self.leaving(caller, &after, AfterDrain::Maintenance, forced);
                left.map_or(after, |(left, _)| left)
            }
            (Some(_), None) => match self.conductor.host_to_drain(&after, &[]) {
                Some(host) => {
                    let by = caller.user().map(str::to_owned);
                    come_back(&after, &host, by, (self.clock)())
                }
                None => after,
            },
            (None | Some(_), _) => after,
        }
    }

    /// Reads a node, has `decide` change it, writes it; all over again when someone else wrote it meanwhile.
    pub(crate) async fn change(
        &self,
        caller: &Caller,
        asked: Microversion,
        ident: &str,
        decide: impl Fn(&Node) -> Result<(Node, Option<HistoryEntry>), Error>,
    ) -> Result<Node, Error> {
        again(|| async {
            let (mut changed, entry) = decide(&self.node(caller, asked, ident).await?)?;
            changed.updated_at = Some((self.clock)());
            let entry = entry.map(|entry| entry.by(caller.user()));
            Ok(self.store.update_node(&changed, entry.as_slice()).await?)
        })
        .await
    }
}

/// What the query's `force` names: a host, or clusters.
pub(crate) fn forced(query: &mut Query) -> Vec<String> {
    let named = query.take("force").unwrap_or_default();
    named.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Why a node stays as it is, as this caller may know it.
fn stays(caller: &Caller, node: &Node, why: StaysError) -> Error {
    if bond(caller, node) == Some(Bond::Cloud) {
        return why.into();
    }
    // Whose machines those are is no business of whom the node is lent to.
    ApiError::conflict(format!("node {} carries machines of others", node.label())).into()
}

/// The id or name that a client gave.
fn parsed(asked: Microversion, ident: &str) -> Result<NodeIdent, ApiError> {
    let parsed: NodeIdent = ident.parse().map_err(|_| {
        let ident = shown(ident);
        ApiError::bad_request(format!("{ident:?} is neither a UUID nor a name of a node"))
    })?;
    match &parsed {
        NodeIdent::Name(_) if !asked.has(microversion::NODE_NAME) => Err(missing(ident)),
        NodeIdent::Name(_) | NodeIdent::Id(_) => Ok(parsed),
    }
}

/// What was found of `ident`, if the caller has to do with it, and may do what it came for.
fn met(caller: &Caller, ident: &str, found: Option<Node>) -> Result<Node, Error> {
    let node = found.ok_or_else(|| missing(ident))?;
    let bond = bond(caller, &node).ok_or_else(|| missing(ident))?;
    caller.rule().check(caller, bond)?;
    Ok(node)
}

fn missing(ident: &str) -> ApiError {
    ApiError::not_found(format!("Node {} could not be found.", shown(ident)))
}

fn shown(ident: &str) -> String {
    ident.chars().take(64).collect()
}

/// What the caller has to do with a node; `None`: nothing, and it must not be told that it is there.
pub(crate) fn bond(caller: &Caller, node: &Node) -> Option<Bond> {
    caller.bond(node.owner.as_deref(), node.lessee.as_deref())
}

/// The project whose nodes are all that the caller may see; `None`: the caller may see all there are.
pub(crate) fn project(caller: &Caller) -> Option<String> {
    match caller.reach() {
        Reach::Everything => None,
        Reach::Project(own) => Some(own.to_owned()),
        // Nobody is let in with that; no project has this id.
        Reach::Nothing => Some(String::new()),
    }
}

/// Does `attempt` until nobody else was faster.
pub(crate) async fn again<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
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

impl Ward for App {
    const POLICY: Policy = Policy::Operators;
}
