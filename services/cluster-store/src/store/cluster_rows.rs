//! The rows of a cluster: ledger, events, secrets, claims, member reports and certificates.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cluster_core::{
    ClaimUuid, Cluster, ClusterUuid, Event, EventUuid, LedgerEntry, LedgerOwner, LedgerState,
    LedgerUuid, MemberName,
};
use database::WriteKind::{AnyStatementCanFail, OneStatement, OnlyFirstStatementCanFail};
use database::{Result, StoreError, reading, writing};
use jiff::Timestamp;

use crate::table::{certificate, claim, cluster, event, holding, ledger, machine, secret};
use crate::{
    BootstrapReport, Certificate, Claim, LedgerPosition, Listener, MachineReport, PagePart,
    PageRows, RedeemOutcome, Store,
};

impl Store {
    /// Writes entries of the ledger. An entry with the kind and name of an existing one replaces its id in the cloud and its state. All are
    /// written, or none.
    pub async fn save_ledger(&self, entries: &[LedgerEntry]) -> Result<()> {
        let entries = entries.to_vec();
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            for entry in &entries {
                ledger::save(c, entry).await?;
            }
            Ok(())
        })
    }

    /// Writes what the conductor is about to create or delete, as [`Store::save_ledger`] does.
    ///
    /// `Stale` when an entry is a server whose member was removed meanwhile: the server would be in nobody's quota use.
    pub async fn record_intents(&self, entries: &[LedgerEntry]) -> Result<()> {
        let entries = entries.to_vec();
        writing!(self.database, AnyStatementCanFail, |c| {
            for entry in &entries {
                let machine = entry.kind.strip_prefix("server/");
                let machine = machine.filter(|_| entry.state == LedgerState::Intended);
                if let (Some(machine), LedgerOwner::Cluster(cluster)) = (machine, entry.of)
                    && !holding::is_counted(c, (cluster, machine)).await?
                {
                    return Err(StoreError::Stale);
                }
                ledger::save(c, entry).await?;
            }
            Ok(())
        })
    }

    /// Removes an entry, because the cloud no longer has the object. With a server's entry go the reports and claims of the member, and its
    /// quota use unless the server is created again.
    pub async fn remove_ledger_entry(&self, entry: LedgerUuid) -> Result<()> {
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            machine::forget(c, entry).await?;
            holding::forget(c, entry).await?;
            ledger::strike(c, entry).await
        })
    }

    /// Removes all entries of a cluster whose cloud objects are left behind, if its version is still the one that was read. Returns the
    /// entries.
    pub async fn forget_ledger(&self, of: &Cluster) -> Result<Vec<LedgerEntry>> {
        let of = of.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            cluster::check_version(c, &of).await?;
            let left = ledger::of(c, of.id.into()).await?;
            ledger::forget(c, of.id).await?;
            Ok(left)
        })
    }

    /// Returns the ledger of a cluster or a VM: every object that it owns, or may own, in the cloud.
    pub async fn ledger_of(&self, of: impl Into<LedgerOwner>) -> Result<Vec<LedgerEntry>> {
        let of = of.into();
        reading!(self.database, |c| ledger::of(c, of).await)
    }

    /// Returns a part of the ledger of a cluster or a VM, oldest entry first.
    pub async fn ledger_part_of(
        &self,
        of: impl Into<LedgerOwner>,
        limit: u32,
        part: PagePart<LedgerPosition>,
    ) -> Result<PageRows<LedgerEntry, LedgerPosition>> {
        let of = of.into();
        reading!(self.database, |c| ledger::part_of(c, of, limit, part).await)
    }

    /// Returns the ids in the cloud of these members' servers. A member whose server has no id yet is missing.
    pub async fn servers_of(
        &self,
        cluster: ClusterUuid,
        machines: Vec<MemberName>,
    ) -> Result<BTreeMap<MemberName, String>> {
        reading!(self.database, |c| ledger::servers_of(c, cluster, machines).await)
    }

    /// Adds events. The newest 1000 of each cluster are kept.
    pub async fn append_events(&self, cluster: ClusterUuid, events: &[Event]) -> Result<()> {
        let events = events.to_vec();
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            event::append(c, cluster, &events).await
        })?;
        self.bell.ring(cluster);
        Ok(())
    }

    /// Returns the cluster's events after `marker`, oldest first.
    pub async fn events_of(
        &self,
        cluster: ClusterUuid,
        limit: u32,
        marker: Option<EventUuid>,
    ) -> Result<Vec<Event>> {
        self.events_part_of(cluster, limit, marker, PagePart::whole())
            .await
            .map(|listed| listed.found)
    }

    /// Returns a part of the cluster's events after `marker`, oldest first.
    pub async fn events_part_of(
        &self,
        cluster: ClusterUuid,
        limit: u32,
        marker: Option<EventUuid>,
        part: PagePart<i64>,
    ) -> Result<PageRows<Event, i64>> {
        reading!(self.database, |c| event::list(c, cluster, limit, marker, &part).await)
    }

    /// Returns the cluster's events with numbers above `after`, oldest first, each with its number; `None` when there is no such cluster.
    ///
    /// The numbers of one cluster's events become visible in their order, so a reader that continues after the last number misses none.
    pub async fn events_after(
        &self,
        cluster: ClusterUuid,
        after: i64,
        limit: u32,
    ) -> Result<Option<Vec<(i64, Event)>>> {
        reading!(self.database, |c| event::after(c, cluster, after, limit).await)
    }

    /// Returns a listener that wakes when this process writes events of the cluster.
    pub fn listen(&self, cluster: ClusterUuid) -> Listener {
        self.bell.listen(cluster)
    }

    /// Writes a sealed secret, and replaces an existing one of this name.
    pub async fn save_secret(&self, cluster: ClusterUuid, name: &str, sealed: &str) -> Result<()> {
        self.know_seal_of(sealed).await?;
        let (name, sealed) = (name.to_owned(), sealed.to_owned());
        writing!(self.database, OneStatement, |c| secret::save(c, cluster, &name, &sealed).await)
    }

    /// Writes a sealed secret unless one of this name exists. Returns the secret that is stored then.
    pub async fn keep_secret(
        &self,
        cluster: ClusterUuid,
        name: &str,
        sealed: &str,
    ) -> Result<String> {
        self.know_seal_of(sealed).await?;
        let (name, sealed) = (name.to_owned(), sealed.to_owned());
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            secret::keep(c, cluster, &name, &sealed).await
        })
    }

    /// Deletes a sealed secret, if it exists.
    pub async fn delete_secret(&self, cluster: ClusterUuid, name: &str) -> Result<()> {
        let name = name.to_owned();
        writing!(self.database, OneStatement, |c| secret::delete(c, cluster, &name).await)
    }

    /// Returns a sealed secret.
    pub async fn find_secret(&self, cluster: ClusterUuid, name: &str) -> Result<Option<String>> {
        let name = name.to_owned();
        reading!(self.database, |c| secret::find(c, cluster, &name).await)
    }

    /// Adds a claim, which replaces the former claim of its member. Reports that the member sent before are deleted.
    pub async fn insert_claim(&self, new: &Claim) -> Result<()> {
        let new = new.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            claim::insert(c, &new).await?;
            machine::insert_claim(c, &new).await
        })
    }

    /// Updates a claim that nobody has redeemed. Returns false when it was redeemed.
    pub async fn renew_claim(
        &self,
        claim: ClaimUuid,
        facts: &str,
        expires_at: Timestamp,
    ) -> Result<bool> {
        let facts = facts.to_owned();
        writing!(self.database, OneStatement, |c| claim::renew(c, claim, &facts, expires_at).await)
    }

    /// Returns a claim, whether redeemed or not.
    pub async fn find_claim(&self, claim: ClaimUuid) -> Result<Option<Claim>> {
        reading!(self.database, |c| claim::find(c, claim).await)
    }

    /// Returns the current claim of a member.
    pub async fn claim_of(
        &self,
        cluster: ClusterUuid,
        machine: &MemberName,
    ) -> Result<Option<Claim>> {
        let machine = machine.clone();
        reading!(self.database, |c| claim::of(c, cluster, &machine).await)
    }

    /// Redeems a claim for the caller at address `by`. `reports_by` is the key from which the member's report token is derived.
    ///
    /// When the answer was lost, the same address may redeem again, if the first time was after `since` and the member has not reported
    /// yet.
    pub async fn redeem_claim(
        &self,
        claim: ClaimUuid,
        by: IpAddr,
        now: Timestamp,
        since: Timestamp,
        reports_by: &str,
    ) -> Result<RedeemOutcome> {
        self.register_key(reports_by).await?;
        let reports_by = reports_by.to_owned();
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            claim::redeem(c, claim, by, now, since, &reports_by).await
        })
    }

    /// Records a report of the member that redeemed `claim`, unless it sent the same one after `since`.
    ///
    /// Returns the member's cluster if the report was recorded. A member that was deleted or got another claim is ignored.
    pub async fn note_report(
        &self,
        claim: ClaimUuid,
        said: &BootstrapReport,
        since: Timestamp,
    ) -> Result<Option<ClusterUuid>> {
        let said = said.clone();
        writing!(self.database, OneStatement, |c| machine::note(c, claim, &said, since).await)
    }

    /// Records the CA revision that the member that redeemed `claim` holds. Returns its cluster if the revision is new.
    pub async fn note_authorities(
        &self,
        claim: ClaimUuid,
        revision: u32,
    ) -> Result<Option<ClusterUuid>> {
        writing!(self.database, OneStatement, |c| {
            machine::note_authorities(c, claim, revision).await
        })
    }

    /// Returns the members of a cluster that were given claims, each with its last report.
    pub async fn machines_of(&self, of: ClusterUuid) -> Result<Vec<MachineReport>> {
        reading!(self.database, |c| machine::of(c, of).await)
    }

    /// Records a certificate that was signed.
    pub async fn insert_certificate(&self, new: &Certificate) -> Result<()> {
        let new = new.clone();
        writing!(self.database, OneStatement, |c| certificate::insert(c, &new).await)
    }

    /// Returns the certificates that a cluster's certificate authority signed.
    pub async fn certificates_of(&self, of: ClusterUuid) -> Result<Vec<Certificate>> {
        reading!(self.database, |c| certificate::of(c, of).await)
    }
}
