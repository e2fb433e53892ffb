//! What belongs to one cluster: its ledger, events, secrets, claims and certificates.

use cluster_core::{ClusterUuid, Event, EventUuid, LedgerEntry, LedgerUuid};
use database::Extent::{FirstDecides, OneStatement};
use database::StoreError;
use jiff::Timestamp;

use crate::table::{certificate, claim, event, ledger, secret};
use crate::{Certificate, Claim, Store};

impl Store {
    /// Writes entries of the ledger, or what is known anew of those of the same kind and name; all or none.
    pub async fn save_ledger(&self, entries: &[LedgerEntry]) -> Result<(), StoreError> {
        let entries = entries.to_vec();
        self.database
            .write(FirstDecides, |c| {
                Box::pin(async move {
                    for entry in &entries {
                        ledger::save(c, entry).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Strikes an entry out: the cloud no longer has that object.
    pub async fn strike_ledger(&self, entry: LedgerUuid) -> Result<(), StoreError> {
        self.database.write(OneStatement, move |c| Box::pin(ledger::strike(c, entry))).await
    }

    /// What the cluster owns in the cloud, or may own.
    pub async fn ledger_of(&self, of: ClusterUuid) -> Result<Vec<LedgerEntry>, StoreError> {
        self.database.read(move |c| Box::pin(ledger::of(c, of))).await
    }

    /// Notes what happened. The newest 1000 of each cluster are kept.
    pub async fn append_events(
        &self,
        cluster: ClusterUuid,
        events: &[Event],
    ) -> Result<(), StoreError> {
        let events = events.to_vec();
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move { event::append(c, cluster, &events).await })
            })
            .await
    }

    /// The cluster's events after `marker`, the oldest first.
    pub async fn events_of(
        &self,
        cluster: ClusterUuid,
        limit: u32,
        marker: Option<EventUuid>,
    ) -> Result<Vec<Event>, StoreError> {
        self.database.read(move |c| Box::pin(event::list(c, cluster, limit, marker))).await
    }

    /// Writes a sealed secret in place of the one there was.
    pub async fn save_secret(
        &self,
        cluster: ClusterUuid,
        name: &str,
        sealed: &str,
    ) -> Result<(), StoreError> {
        let (name, sealed) = (name.to_owned(), sealed.to_owned());
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move { secret::save(c, cluster, &name, &sealed).await })
            })
            .await
    }

    /// Writes a sealed secret unless there is one of that name; the answer is the one that is there then.
    pub async fn keep_secret(
        &self,
        cluster: ClusterUuid,
        name: &str,
        sealed: &str,
    ) -> Result<String, StoreError> {
        let (name, sealed) = (name.to_owned(), sealed.to_owned());
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move { secret::keep(c, cluster, &name, &sealed).await })
            })
            .await
    }

    /// A sealed secret.
    pub async fn find_secret(
        &self,
        cluster: ClusterUuid,
        name: &str,
    ) -> Result<Option<String>, StoreError> {
        let name = name.to_owned();
        self.database
            .read(move |c| Box::pin(async move { secret::find(c, cluster, &name).await }))
            .await
    }

    /// Adds a claim.
    pub async fn insert_claim(&self, new: &Claim) -> Result<(), StoreError> {
        let new = new.clone();
        self.database
            .write(OneStatement, |c| Box::pin(async move { claim::insert(c, &new).await }))
            .await
    }

    /// The claim of this digest, whether it was redeemed or not.
    pub async fn find_claim(&self, digest: &str) -> Result<Option<Claim>, StoreError> {
        let digest = digest.to_owned();
        self.database.read(|c| Box::pin(async move { claim::find(c, &digest).await })).await
    }

    /// Redeems the claim of this digest. `None` where there is none that can be redeemed: it is unknown, too old, or was
    /// redeemed before.
    pub async fn redeem_claim(
        &self,
        digest: &str,
        now: Timestamp,
    ) -> Result<Option<Claim>, StoreError> {
        let digest = digest.to_owned();
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move { claim::redeem(c, &digest, now).await })
            })
            .await
    }

    /// Notes a certificate that was signed.
    pub async fn insert_certificate(&self, new: &Certificate) -> Result<(), StoreError> {
        let new = new.clone();
        self.database
            .write(OneStatement, |c| Box::pin(async move { certificate::insert(c, &new).await }))
            .await
    }

    /// The certificates that were signed by a cluster's authority.
    pub async fn certificates_of(&self, of: ClusterUuid) -> Result<Vec<Certificate>, StoreError> {
        self.database.read(move |c| Box::pin(certificate::of(c, of))).await
    }
}
