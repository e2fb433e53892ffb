//! A trap for a service that is to be killed at each of its effects and records, one after another.

use std::collections::BTreeSet;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baremetal_core::{Boot, Node, NodeFilter, NodeSort, Page, PowerRequest, Work};
use baremetal_store::{Store, StoreError, Tripwire};
use database::{Point, Side};
use tokio::sync::{Notify, OnceCell};

/// Writes that come with time or with each start, whatever is going on.
const REGULAR: [&str; 3] = ["::touch_conductor::", "::record_power::", "::know::"];

/// Stops the service once at each point: an effect or a write, with what had been recorded by then. From then on nothing more is done, as if
/// the service had died at that moment.
pub(crate) struct Trap {
    state: Mutex<State>,
    changed: Notify,
    database: PathBuf,
    reader: OnceCell<Store>,
}

/// At which points that come up for the first time a service is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bait {
    /// At every so-many-th.
    pub(crate) every: usize,
    /// But for those of these names.
    pub(crate) spares: fn(&str) -> bool,
}

#[derive(Debug, Default)]
struct State {
    set: Option<Bait>,
    is_shut: bool,
    known: BTreeSet<String>,
    stopped_at: Vec<String>,
}

impl Trap {
    /// For a service whose state is in this folder; it lets everything pass.
    pub(crate) fn new(state: &Path) -> Arc<Trap> {
        Arc::new(Trap {
            state: Mutex::default(),
            changed: Notify::new(),
            database: state.join("baremetal.db"),
            reader: OnceCell::new(),
        })
    }

    /// What the service is started with.
    pub(crate) fn tripwire(self: &Arc<Trap>) -> Tripwire {
        let trap = self.clone();
        Tripwire::new(move |point| {
            let trap = trap.clone();
            Box::pin(async move { trap.pass(point).await })
        })
    }

    /// Stops the service at such points from now on; no point is known.
    pub(crate) fn set(&self, bait: Bait) {
        *self.state() = State { set: Some(bait), ..State::default() };
    }

    /// Lets everything pass from now on; tells where the service was stopped.
    pub(crate) fn remove(&self) -> Vec<String> {
        std::mem::take(&mut *self.state()).stopped_at
    }

    /// Waits for the next service to be stopped.
    pub(crate) fn open(&self) {
        self.state().is_shut = false;
    }

    /// Waits until the service is stopped.
    pub(crate) async fn shut(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state().is_shut {
                return;
            }
            changed.await;
        }
    }

    async fn pass(&self, point: Point) {
        let (is_set, is_shut) = {
            let state = self.state();
            (state.set.is_some(), state.is_shut)
        };
        if !is_set || REGULAR.iter().any(|write| point.effect.contains(write)) {
            return;
        }
        if !is_shut {
            let recorded = self.recorded().await.expect("what is recorded can be read");
            if !self.stops(point, &recorded) {
                return;
            }
            self.changed.notify_waiters();
        }
        pending().await
    }

    /// Whether the service dies here, or has died meanwhile.
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
        let Some(Bait { every, spares }) = state.set else { return false };
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

    /// What has been recorded of every node so far, without its times.
    async fn recorded(&self) -> Result<String, StoreError> {
        let url = format!("sqlite://{}", self.database.display());
        let store = self.reader.get_or_try_init(|| Store::open(&url)).await?;
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

/// How far a node is.
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
        text += &format!(" lent, {:?}", lending.lease.wanted());
    }
    let work = node.work.as_ref().map(|work| work.id);
    if let Some(boot) = boot.filter(|boot| Some(boot.work) == work) {
        text += if boot.callback_url.is_some() { " reported" } else { " booting" };
        text += if boot.inventory_at.is_some() { " inventoried" } else { "" };
    }
    text
}

/// `update_node` of `baremetal_store::store::Store::update_node::{{closure}}::…`; the effect's own name where it is none of Rust's.
fn short(effect: &str) -> &str {
    let names = effect.split("::").filter(|part| !part.starts_with("{{"));
    if effect.contains("{{") { names.last().unwrap_or(effect) } else { effect }
}
