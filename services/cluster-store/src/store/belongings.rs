//! What belongs to one cluster: its ledger, events, secrets, claims, machines and certificates.

use std::net::IpAddr;

use cluster_core::{
    ClaimUuid, Cluster, ClusterUuid, Event, EventUuid, Holder, LedgerEntry, LedgerState,
    LedgerUuid, MachineRef,
};
use database::Extent::{AnyDecides, FirstDecides, OneStatement};
use database::StoreError;
use jiff::Timestamp;

use crate::table::{certificate, claim, cluster, event, holding, ledger, machine, secret};
use crate::{Certificate, Claim, Listener, MachineReport, Redeemed, Said, Store};

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

    /// Writes what is about to be asked for or deleted, as [`Store::save_ledger`] does. `Stale` where a server is among it whose machine is
    /// wanted no more: it would be counted nowhere.
    pub async fn intend(&self, entries: &[LedgerEntry]) -> Result<(), StoreError> {
        let entries = entries.to_vec();
        self.database
            .write(AnyDecides, |c| {
                Box::pin(async move {
                    for entry in &entries {
                        let machine = entry.kind.strip_prefix("server/");
                        let machine = machine.filter(|_| entry.state == LedgerState::Intended);
                        if let (Some(machine), Holder::Cluster(cluster)) = (machine, entry.of)
                            && !holding::is_counted(c, (cluster, machine)).await?
                        {
                            return Err(StoreError::Stale);
                        }
                        ledger::save(c, entry).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Strikes an entry out: the cloud no longer has that object. With a server goes what its machine said, and its claims, and what it took
    /// of limits if it is not to come back.
    pub async fn strike_ledger(&self, entry: LedgerUuid) -> Result<(), StoreError> {
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move {
                    machine::forget(c, entry).await?;
                    holding::forget(c, entry).await?;
                    ledger::strike(c, entry).await
                })
            })
            .await
    }

    /// Strikes out all lines of a cluster whose objects in the cloud are let be, if its version is still the one that was read; the answer
    /// is what they were.
    pub async fn forget_ledger(&self, of: &Cluster) -> Result<Vec<LedgerEntry>, StoreError> {
        let of = of.clone();
        self.database
            .write(AnyDecides, |c| {
                Box::pin(async move {
                    cluster::check_version(c, &of).await?;
                    let left = ledger::of(c, of.id.into()).await?;
                    ledger::forget(c, of.id).await?;
                    Ok(left)
                })
            })
            .await
    }

    /// What the cluster, or the machine, owns in the cloud, or may own.
    pub async fn ledger_of(&self, of: impl Into<Holder>) -> Result<Vec<LedgerEntry>, StoreError> {
        let of = of.into();
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
            .await?;
        self.bell.ring(cluster);
        Ok(())
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

    /// The cluster's events that were written after the one of number `after`, each with its number, the oldest first;
    /// `None` where there is no such cluster. Numbers of one cluster's events are seen in their order.
    pub async fn events_after(
        &self,
        cluster: ClusterUuid,
        after: i64,
        limit: u32,
    ) -> Result<Option<Vec<(i64, Event)>>, StoreError> {
        self.database.read(move |c| Box::pin(event::after(c, cluster, after, limit))).await
    }

    /// Who hears when events of the cluster are written, by this process.
    pub fn listen(&self, cluster: ClusterUuid) -> Listener {
        self.bell.listen(cluster)
    }

    /// Writes a sealed secret in place of the one there was.
    pub async fn save_secret(
        &self,
        cluster: ClusterUuid,
        name: &str,
        sealed: &str,
    ) -> Result<(), StoreError> {
        self.know_seal_of(sealed).await?;
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
        self.know_seal_of(sealed).await?;
        let (name, sealed) = (name.to_owned(), sealed.to_owned());
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move { secret::keep(c, cluster, &name, &sealed).await })
            })
            .await
    }

    /// Deletes a sealed secret, if there is one.
    pub async fn delete_secret(&self, cluster: ClusterUuid, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move { secret::delete(c, cluster, &name).await })
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

    /// Adds a claim, from now on the one of its machine: what that said before is forgotten.
    pub async fn insert_claim(&self, new: &Claim) -> Result<(), StoreError> {
        let new = new.clone();
        self.database
            .write(AnyDecides, |c| {
                Box::pin(async move {
                    claim::insert(c, &new).await?;
                    machine::expect(c, &new).await
                })
            })
            .await
    }

    /// Writes what is known anew of a claim that nobody has redeemed; false, where somebody has.
    pub async fn renew_claim(
        &self,
        claim: ClaimUuid,
        facts: &str,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let facts = facts.to_owned();
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move { claim::renew(c, claim, &facts, expires_at).await })
            })
            .await
    }

    /// A claim, whether it was redeemed or not.
    pub async fn find_claim(&self, claim: ClaimUuid) -> Result<Option<Claim>, StoreError> {
        self.database.read(move |c| Box::pin(claim::find(c, claim))).await
    }

    /// The claim that a machine was given last.
    pub async fn claim_of(
        &self,
        cluster: ClusterUuid,
        machine: &MachineRef,
    ) -> Result<Option<Claim>, StoreError> {
        let machine = machine.clone();
        self.database
            .read(move |c| Box::pin(async move { claim::of(c, cluster, &machine).await }))
            .await
    }

    /// Redeems a claim for who shows it from this address, and who is to report with what the key `reports_by` made. It can be redeemed again if that was after `since`, from the
    /// same address, and the machine has said nothing.
    pub async fn redeem_claim(
        &self,
        claim: ClaimUuid,
        by: IpAddr,
        now: Timestamp,
        since: Timestamp,
        reports_by: &str,
    ) -> Result<Redeemed, StoreError> {
        self.know_seal(reports_by).await?;
        let reports_by = reports_by.to_owned();
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move { claim::redeem(c, claim, by, now, since, &reports_by).await })
            })
            .await
    }

    /// Notes what was said by the machine that got its configuration for `claim`, unless it said the same after `since`.
    /// The answer is its cluster, where it was noted; nobody waits for a machine that is gone or was given another claim.
    pub async fn note_report(
        &self,
        claim: ClaimUuid,
        said: &Said,
        since: Timestamp,
    ) -> Result<Option<ClusterUuid>, StoreError> {
        let said = said.clone();
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move { machine::note(c, claim, &said, since).await })
            })
            .await
    }

    /// Notes which revision of the authorities is held by the machine that got its configuration for `claim`. The answer is
    /// its cluster, where that is news.
    pub async fn note_authorities(
        &self,
        claim: ClaimUuid,
        revision: u32,
    ) -> Result<Option<ClusterUuid>, StoreError> {
        self.database
            .write(OneStatement, move |c| Box::pin(machine::hold(c, claim, revision)))
            .await
    }

    /// The machines of a cluster that were given claims, and what they said last.
    pub async fn machines_of(&self, of: ClusterUuid) -> Result<Vec<MachineReport>, StoreError> {
        self.database.read(move |c| Box::pin(machine::of(c, of))).await
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
