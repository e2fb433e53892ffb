//! Stores the changes of a ledger.

use cluster_core::{ClusterObservation, DesiredObjects, Ledger, LedgerMatch, LedgerUuid};
use cluster_store::{Store, StoreError};
use jiff::SignedDuration;

/// Applies an observation to the ledger and stores the changes.
pub(crate) async fn reconcile_ledger(
    store: &Store,
    ledger: &mut Ledger,
    (seen, shape): (&ClusterObservation, &DesiredObjects),
    lands_within: SignedDuration,
) -> Result<LedgerMatch, StoreError> {
    let update = ledger.reconcile(seen, shape, lands_within, LedgerUuid::new_v4);
    if !update.saved.is_empty() {
        store.save_ledger(&update.saved).await?;
    }
    for id in update.removed {
        store.remove_ledger_entry(id).await?;
    }
    Ok(update.agreed)
}
