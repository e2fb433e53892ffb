//! The keys of a store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use sealing::Keyring;

/// The keys of a store.
#[derive(Clone)]
pub(super) struct SealKeys {
    pub(super) keys: Arc<Keyring>,
    /// The keys that the table `seals` is known to contain.
    pub(super) known: Arc<Mutex<BTreeSet<String>>>,
}
