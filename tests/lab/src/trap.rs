//! Stops a service at its effects and writes, one after another, as if it had died there.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baremetal_core::{Boot, DrainStage, Node, NodeFilter, NodeSort, Page, PowerRequest, Work};
use baremetal_store::{Store, StoreError, Tripwire};
use database::{Point, Side};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OnceCell};

/// Writes that happen at intervals or at each start, independent of the request under test.
const REGULAR: [&str; 6] = [
    "::Conductors::touch::",
    "::Conductors::register::",
    "::Conductors::renew::",
    "::Conductors::release::",
    "::record_power::",
    "::know::",
];

/// Stops the service at points that it reaches for the first time. A point is an effect or a write, together with the state recorded at
/// that moment. After the service was stopped, all its later effects and writes block too, as if it had died at that moment.
pub(crate) struct Trap {
    state: Mutex<State>,
    changed: Notify,
    /// Its URL.
    database: String,
    reader: OnceCell<Store>,
    /// The test's own, for connections of the reader outlive the service's.
    runtime: Handle,
}

/// Selects the new points at which a service is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopRule {
    /// Stops at every `every`-th new point.
    pub(crate) every: usize,
    /// Never stops at points whose name this function accepts.
    pub(crate) spares: fn(&str) -> bool,
}

#[derive(Debug, Default)]
struct State {
    set: Option<StopRule>,
    is_shut: bool,
    known: BTreeSet<String>,
    stopped_at: Vec<String>,
}

impl Trap {
    /// A trap for a service with this database. The trap is not set at first.
    pub(crate) fn new(database: &str) -> Arc<Trap> {
        Arc::new(Trap {
            state: Mutex::default(),
            changed: Notify::new(),
            database: database.to_owned(),
            reader: OnceCell::new(),
            runtime: Handle::current(),
        })
    }

    /// The tripwire to start the service with.
    pub(crate) fn tripwire(self: &Arc<Trap>) -> Tripwire {
        let trap = self.clone();
        Tripwire::new(move |point| {
            let trap = trap.clone();
            Box::pin(async move { trap.at_point(point).await })
        })
    }

    /// Sets the trap, with no points known yet.
    pub(crate) fn set(&self, bait: StopRule) {
        *self.state() = State { set: Some(bait), ..State::default() };
    }

    /// Disables the trap, and returns the points at which the service was stopped.
    pub(crate) fn remove(&self) -> Vec<String> {
        std::mem::take(&mut *self.state()).stopped_at
    }

    /// Makes the trap ready for the next life of the service.
    pub(crate) fn open(&self) {
        self.state().is_shut = false;
    }

    pub(crate) async fn wait_until_stopped(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state().is_shut {
                return;
            }
            changed.await;
        }
    }

    async fn at_point(self: Arc<Trap>, point: Point) {
        let (is_set, is_shut) = {
            let state = self.state();
            (state.set.is_some(), state.is_shut)
        };
        if !is_set || REGULAR.iter().any(|write| point.effect.contains(write)) {
            return;
        }
        if !is_shut {
            let trap = self.clone();
            let reading = self.runtime.spawn(async move { trap.recorded().await });
            let recorded = reading.await.expect("reading does not panic");
            let recorded = recorded.expect("what is recorded can be read");
            if !self.stops(point, &recorded) {
                return;
            }
            self.changed.notify_waiters();
        }
        pending().await
    }

    /// Whether the service stops at this point, or was stopped already.
    fn stops(&self, point: Point, recorded: &str) -> bool {
        let side = match point.side {
            Side::Before => "before",
            Side::After => "after",
        };
        let mut state = self.state();
        if state.is_shut {
            return true;
        }
        let name = format!("{side} {}: {recorded}", short(point.effect));
        let Some(StopRule { every, spares }) = state.set else { return false };
        if spares(&name) || !state.known.insert(name.clone()) {
            return false;
        }
        if !state.known.len().is_multiple_of(every) {
            return false;
        }
        state.is_shut = true;
        state.stopped_at.push(name);
        true
    }

    /// The recorded progress of every node, without times.
    async fn recorded(&self) -> Result<String, StoreError> {
        let store = self.reader.get_or_try_init(|| Store::open(&self.database)).await?;
        let page = Page { limit: 100, marker: None, sort: NodeSort::Id, descending: false };
        let filter = NodeFilter { include_children: true, ..NodeFilter::default() };
        let mut text = Vec::new();
        for node in store.list_nodes(&filter, &page).await? {
            let boot = store.find_boot(node.id).await?;
            text.push(progress(&node, boot.as_ref()));
        }
        Ok(text.join(", "))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Describes how far the work of a node has come.
fn progress(node: &Node, boot: Option<&Boot>) -> String {
    let mut text = node.provision_state.to_string();
    if let Some(Work { cursor, intent, asked_at, .. }) = &node.work {
        text += &format!(" {cursor}");
        text += if intent.is_some() { " intended" } else { "" };
        text += if asked_at.is_some() { " asked" } else { "" };
    }
    if let Some(PowerRequest { remaining, asked_at, .. }) = &node.power_request {
        text += &format!(" {remaining:?}");
        text += if asked_at.is_some() { " asked" } else { "" };
    }
    if let Some(lending) = &node.lending {
        text += &format!(" lent, {:?}", lending.lease.required_state());
    }
    if node.maintenance.is_some() {
        text += " maintained";
    }
    if let Some(leaving) = &node.leaving {
        text += match leaving.stage {
            DrainStage::Wanted => " leaving",
            DrainStage::Asking(_) => " asks for a drain",
            DrainStage::Waiting(_) => " waits for a drain",
            DrainStage::Ending => " ends a drain",
        };
    }
    let work = node.work.as_ref().map(|work| work.id);
    if let Some(boot) = boot.filter(|boot| Some(boot.work) == work) {
        text += if boot.callback_url.is_some() { " reported" } else { " booting" };
        text += if boot.inventory_at.is_some() { " inventoried" } else { "" };
    }
    text
}

/// Shortens `baremetal_store::store::Store::update_node::{{closure}}::…` to `update_node`; keeps the name of an effect that is not a Rust
/// path.
fn short(effect: &str) -> &str {
    let names = effect.split("::").filter(|part| !part.starts_with("{{"));
    if effect.contains("{{") { names.last().unwrap_or(effect) } else { effect }
}
