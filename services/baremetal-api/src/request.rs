//! An authenticated request, and the functions that most handlers need.

use std::collections::BTreeMap;
use std::future::Future;

use baremetal_core::{
    AfterDrain, DrainRequest, HistoryEntry, NewDrainRequest, Node, NodeIdent, NodeName, NodeUuid,
    TakeOutRefused, VerbRequest, end_maintenance_drain, wait_for_drain,
};
use baremetal_store::{BMC_FIELD, StoreError};
use hardware::MacAddress;
use http::StatusCode;
use openstack_api::{
    AccessScope, ApiError, Authenticated, Caller, Microversion, Origin, Query, Relation,
};
use tracing::warn;

use crate::app::App;
use crate::error::Error;
use crate::microversion;
use crate::shown::Context;

/// An authenticated request, from which every handler takes the state of the API, the caller and the version.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    pub(crate) asked: Microversion,
}

impl Authenticated for Request {
    fn caller(&self) -> &Caller {
        &self.caller
    }
}

/// The field in which a port's address is refused.
const ADDRESS_FIELD: &str = "address";

/// How often a change is attempted if another writer changes the same record meanwhile.
const ATTEMPTS: usize = 8;

impl Request {
    /// How this answer shows resources.
    pub(crate) fn context<'a>(&'a self, origin: &'a Origin) -> Context<'a> {
        let conductor = &self.app.conductor;
        Context { asked: self.asked, origin, conductor, is_changed: false }
    }

    /// Finds a node by UUID or name, if the caller may access it under the rule of the route.
    pub(crate) async fn node(&self, ident: &str) -> Result<Node, Error> {
        self.node_at(self.asked, ident).await
    }

    /// Like [`Request::node`], for a node in the parameter `parameter` of a query. An early version without names is refused as such.
    pub(crate) async fn node_of_query(
        &self,
        parameter: &'static str,
        ident: &str,
    ) -> Result<Node, Error> {
        if let Ok(NodeIdent::Name(_)) = ident.parse() {
            self.asked.need(microversion::NODE_NAME, parameter)?;
        }
        self.node(ident).await
    }

    /// Like [`Request::node`], in another version than the requested one.
    pub(crate) async fn node_at(&self, asked: Microversion, ident: &str) -> Result<Node, Error> {
        let node = self.app.store.find_node(&parsed(asked, ident)?).await?;
        check_access(&self.caller, ident, node)
    }

    /// Like [`Request::node`] for several nodes, returned in the order of `idents`.
    pub(crate) async fn nodes(&self, idents: &[String]) -> Result<Vec<Node>, Error> {
        let wanted: Result<Vec<NodeIdent>, ApiError> =
            idents.iter().map(|ident| parsed(self.asked, ident)).collect();
        let wanted = wanted?;
        let found = self.app.store.find_nodes(&wanted).await?;
        let by_id: BTreeMap<NodeUuid, &Node> = found.iter().map(|node| (node.id, node)).collect();
        let named = found.iter().filter_map(|node| Some((node.name.as_ref()?.as_str(), node)));
        let by_name: BTreeMap<&str, &Node> = named.collect();
        let of = |wanted: &NodeIdent| match wanted {
            NodeIdent::Id(id) => by_id.get(id).copied().cloned(),
            NodeIdent::Name(name) => by_name.get(name.as_str()).copied().cloned(),
        };
        let all = idents.iter().zip(&wanted);
        all.map(|(ident, wanted)| check_access(&self.caller, ident, of(wanted))).collect()
    }

    /// Checks that the caller may access `node`, of which a resource is a part. Without access the error is `missing`, so that the caller
    /// does not learn that the resource exists.
    pub(crate) async fn check_access_to_part(
        &self,
        node: NodeUuid,
        missing: impl Fn() -> ApiError,
    ) -> Result<(), Error> {
        if visible_project(&self.caller).is_none() {
            return Ok(());
        }
        let node = self.app.store.find_node(&NodeIdent::Id(node)).await?;
        let relation = node.and_then(|node| relation(&self.caller, &node)).ok_or_else(missing)?;
        Ok(self.caller.rule().check(&self.caller, relation)?)
    }

    /// Replaces the refusal of a BMC that another node has by one that names the node, if the caller may see the node.
    pub(crate) async fn name_holder<T>(&self, written: Result<T, Error>) -> Result<T, Error> {
        match &written {
            Err(Error::Store(StoreError::Duplicate { field: BMC_FIELD, value })) => {
                let holder = value.parse().ok();
                let named = self.named_holder("driver_info: this BMC", holder).await?;
                named.map_or(written, |why| Err(why.into()))
            }
            Ok(_) | Err(_) => written,
        }
    }

    /// Like [`Request::name_holder`], for the address of a port.
    pub(crate) async fn name_port_holder<T>(&self, written: Result<T, Error>) -> Result<T, Error> {
        match &written {
            Err(Error::Store(StoreError::Duplicate { field: ADDRESS_FIELD, value })) => {
                let Ok(mac) = value.parse::<MacAddress>() else { return written };
                let port = self.app.store.find_port_by_address(mac).await?;
                let holder = port.map(|port| port.node);
                let named = self.named_holder(&format!("address: {mac}"), holder).await?;
                named.map_or(written, |why| Err(why.into()))
            }
            Ok(_) | Err(_) => written,
        }
    }

    /// The refusal of a value that the node `holder` has; `None` if the caller may not see the node.
    async fn named_holder(
        &self,
        what: &str,
        holder: Option<NodeUuid>,
    ) -> Result<Option<ApiError>, Error> {
        let Some(holder) = holder else { return Ok(None) };
        let found = self.app.store.find_node(&NodeIdent::Id(holder)).await?;
        let seen = found.filter(|node| relation(&self.caller, node).is_some());
        let why = |node: Node| {
            let (label, id) = (node.label(), node.id);
            ApiError::conflict(format!("{what} belongs to node {label} ({id}) already"))
        };
        Ok(seen.map(why))
    }

    /// Refuses the request if clusterd would refuse to drain the node's compute host. The check changes nothing; the conductor requests the
    /// drain after the request is recorded.
    pub(crate) async fn check_leave(&self, node: &Node, forced: &[String]) -> Result<(), Error> {
        let checked = self.app.conductor.check_leave(node, forced).await;
        checked.map_err(|why| drain_refusal(&self.caller, node, why))
    }

    /// Like [`Request::check_leave`], for requests to a broken machine: maintenance and interrupts. They power nothing off, so an unreachable
    /// clusterd must not keep an operator from them.
    pub(crate) async fn check_quorum(&self, node: &Node, forced: &[String]) -> Result<(), Error> {
        match self.app.conductor.check_leave(node, forced).await {
            Ok(()) | Err(TakeOutRefused::Occupied { .. }) => Ok(()),
            Err(why @ TakeOutRefused::Unknown { .. }) => {
                warn!(node.id = %node.id, "{why}; the request is carried out anyway");
                Ok(())
            }
            Err(why @ TakeOutRefused::Refused { .. }) => {
                Err(drain_refusal(&self.caller, node, why))
            }
        }
    }

    /// Refuses to delete a node whose compute host is not drained.
    pub(crate) async fn check_drained(&self, node: &Node, forced: &[String]) -> Result<(), Error> {
        let checked = self.app.conductor.check_drained(node, forced).await;
        checked.map_err(|why| drain_refusal(&self.caller, node, why))
    }

    /// Returns the node with a request that waits until its compute host is drained; `None` if there is no host to drain.
    pub(crate) fn with_drain_request(
        &self,
        node: &Node,
        then: AfterDrain,
        verb: Option<&VerbRequest>,
        forced: &[String],
    ) -> Option<(Node, HistoryEntry)> {
        let host = self.app.conductor.host_to_drain(node, forced)?;
        let by = self.caller.user().map(str::to_owned);
        let project = self.caller.project().map(str::to_owned);
        let steps = verb.and_then(|verb| verb.steps.clone());
        let disables_ramdisk = verb.is_some_and(|verb| verb.disables_ramdisk);
        let forced = forced.to_vec();
        let request = NewDrainRequest { host, then, steps, disables_ramdisk, forced, by, project };
        Some(wait_for_drain(node, request, (self.app.clock)()))
    }

    /// Adds the consequences of a change of maintenance for the node's compute host to `after`: the host is drained when maintenance
    /// begins, and undrained when it ends.
    pub(crate) fn with_maintenance_effects(
        &self,
        before: &Node,
        after: Node,
        forced: &[String],
    ) -> Node {
        let is_waiting = after.leaving.as_ref().is_some_and(DrainRequest::is_waiting);
        match (before.is_maintenance_requested(), after.is_maintenance_requested()) {
            (false, true) if !is_waiting => {
                let left = self.with_drain_request(&after, AfterDrain::Maintenance, None, forced);
                left.map_or(after, |(left, _)| left)
            }
            (true, false) => match self.app.conductor.host_to_drain(&after, &[]) {
                Some(host) => {
                    let by = self.caller.user().map(str::to_owned);
                    end_maintenance_drain(&after, &host, by, (self.app.clock)())
                }
                None => after,
            },
            (false, _) | (true, true) => after,
        }
    }

    /// Changes a node: reads it, calls `decide` and writes the result. Starts over if another writer changed the node meanwhile.
    pub(crate) async fn change(
        &self,
        ident: &str,
        decide: impl Fn(&Node) -> Result<(Node, Option<HistoryEntry>), Error>,
    ) -> Result<Node, Error> {
        self.change_at(self.asked, ident, decide).await
    }

    /// Like [`Request::change`], in another version than the requested one.
    pub(crate) async fn change_at(
        &self,
        asked: Microversion,
        ident: &str,
        decide: impl Fn(&Node) -> Result<(Node, Option<HistoryEntry>), Error>,
    ) -> Result<Node, Error> {
        retry_if_stale(|| async {
            let (mut changed, entry) = decide(&self.node_at(asked, ident).await?)?;
            changed.updated_at = Some((self.app.clock)());
            let entry = entry.map(|entry| entry.by(self.caller.user(), self.caller.project()));
            Ok(self.app.store.update_node(&changed, entry.as_slice()).await?)
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
        let why = format!("{ident:?} is neither a UUID nor a valid node name");
        ApiError::protocol(StatusCode::BAD_REQUEST, why)
    })?;
    match &parsed {
        NodeIdent::Name(_) if !asked.has(microversion::NODE_NAME) => Err(missing(ident)),
        NodeIdent::Name(name) => check_name(asked, name).map(|()| parsed),
        NodeIdent::Id(_) => Ok(parsed),
    }
}

/// Refuses a name that is no host name, for clients of versions that know only host names.
pub(crate) fn check_name(asked: Microversion, name: &NodeName) -> Result<(), ApiError> {
    if asked.has(microversion::ANY_NODE_NAME) || !name.as_str().contains(['_', '~']) {
        return Ok(());
    }
    let since = microversion::ANY_NODE_NAME;
    let why = format!("name: must be a host name before version {since}");
    Err(ApiError::bad_request(why))
}

/// Checks that the caller may access the node that was found for `ident`.
fn check_access(caller: &Caller, ident: &str, found: Option<Node>) -> Result<Node, Error> {
    let node = found.ok_or_else(|| missing(ident))?;
    let relation = relation(caller, &node).ok_or_else(|| missing(ident))?;
    caller.rule().check(caller, relation)?;
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
