//! The lease of this conductor, and its share in the work of all conductors on the database.
//!
//! On PostgreSQL a conductor renews its lease every second. Its fence closes before the lease passes in the database: the local deadline counts
//! from before the renewal was sent, by the monotonic clock. It ends a second early, so that an effect of the last moment arrives before
//! another conductor begins. SQLite has one conductor, which only records that it is alive.

use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use database::conductors::{ConductorLease, ConductorRow, NewConductor, RegisterOutcome};
use reconcile::with_sources;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use uuid::Uuid;

use crate::clock::{self, ClockChange};
use crate::exchange::{listen, tell, tell_members};
use crate::fence;
use crate::last_renewals::LastRenewals;
use crate::participant::{Applicant, Participant};
use crate::share::{LivingConductors, ShareChange};

/// How often a conductor that is alone records that it is alive.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(10);

/// How often to look whether a part of an upgrade that waits for older conductors can go on.
const FINISH_EVERY: Duration = Duration::from_secs(5);

/// How long a lease lasts in the database.
const LEASE: Duration = Duration::from_secs(6);

/// The pause between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// How long turns of resources that moved to another conductor may take, while all resources that moved wait for them. Then they end as if the
/// process had died. Only the upload of an image takes longer, and the next turn begins it again.
const LET_GO_TIMEOUT: Duration = Duration::from_secs(30);

/// How long turns may take after the service was told to stop.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// Why this conductor gets no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseRefused {
    /// Another process has the host name.
    #[error(
        "another {program} on this database is running as conductor {hostname}; set a hostname of its own for each in [conductor]"
    )]
    HostnameTaken {
        /// The name of the program.
        program: &'static str,
        /// The host name of both.
        hostname: String,
    },
    /// Another conductor has another key.
    #[error("conductor {hostname} on this database {difference}")]
    OtherKey {
        /// The host name of the other conductor.
        hostname: String,
        /// The difference, and what to do about it.
        difference: &'static str,
    },
}

/// Keeps the lease and the share until `stop` is cancelled; then releases both.
///
/// # Errors
///
/// This process must not work on its database.
pub async fn run<P: Participant>(
    participant: Arc<P>,
    applicant: Applicant,
    stop: CancellationToken,
) -> Result<(), LeaseRefused> {
    if !participant.membership().is_shared() {
        announce(&*participant, &applicant.new, &stop).await;
        return Ok(());
    }
    let sender = Uuid::new_v4().to_string();
    let told = CancellationToken::new();
    let mut replica = Replica::new(participant.clone(), applicant, sender.clone());
    let exchange = async {
        tokio::select! {
            () = told.cancelled() => {}
            () = tell(&*participant, &sender) => {}
            () = listen(&*participant, &sender) => {}
            () = finish_upgrade(&*participant) => {}
        }
    };
    let work = async {
        let worked = replica.work(&stop).await;
        replica.leave().await;
        told.cancel();
        worked
    };
    tokio::join!(work, exchange).0
}

/// Records that this conductor is alive, until `stop` is cancelled.
async fn announce(participant: &impl Participant, new: &NewConductor, stop: &CancellationToken) {
    let NewConductor { hostname, groups, .. } = new;
    loop {
        match participant.conductors().touch(hostname, groups, participant.now()).await {
            Ok(()) => participant.watch().answered(participant.now()),
            Err(error) => {
                participant.watch().failed();
                warn!(error = with_sources(&error), "cannot record that this conductor is alive");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(ANNOUNCE_EVERY) => {}
        }
    }
}

/// Runs the parts of an upgrade that wait for older conductors, once they have ended. It never returns.
async fn finish_upgrade(participant: &impl Participant) {
    loop {
        if let Err(error) = participant.conductors().finish_upgrade().await {
            warn!(error = with_sources(&error), "cannot finish the upgrade of the database");
        }
        sleep(FINISH_EVERY).await;
    }
}

/// This conductor among those on the database.
struct Replica<P> {
    participant: Arc<P>,
    applicant: Applicant,
    lease: Option<ConductorLease>,
    /// Since when another process has the lease of this host name.
    taken_since: Option<Instant>,
    /// Since when resources have been moving between conductors.
    moving_since: Option<Instant>,
    /// The report that the others last read of this conductor.
    published: String,
    renewals: LastRenewals,
    /// The name of this process in notifications.
    sender: String,
}

impl<P: Participant> Replica<P> {
    fn new(participant: Arc<P>, applicant: Applicant, sender: String) -> Replica<P> {
        Replica {
            participant,
            applicant,
            lease: None,
            taken_since: None,
            moving_since: None,
            published: String::new(),
            renewals: LastRenewals::default(),
            sender,
        }
    }

    /// Keeps the lease until `stop` is cancelled.
    async fn work(&mut self, stop: &CancellationToken) -> Result<(), LeaseRefused> {
        let participant = self.participant.clone();
        loop {
            let pause = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                pause = self.step() => pause?,
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = participant.membership().look_again.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Gets or renews the lease. Returns the pause before the next time.
    async fn step(&mut self) -> Result<Duration, LeaseRefused> {
        let stepped = match self.lease.clone() {
            None => self.register().await,
            Some(lease) => self.renew(lease).await.map(Ok),
        };
        stepped.unwrap_or_else(|error| {
            self.participant.watch().failed();
            warn!(error = with_sources(&error), "cannot renew the lease of this conductor");
            Ok(RENEW_EVERY)
        })
    }

    async fn register(&mut self) -> Result<Result<Duration, LeaseRefused>, StoreError> {
        let participant = self.participant.clone();
        participant.membership().let_go_of_all().await;
        let sent = Instant::now();
        let (conductors, now) = (participant.conductors(), participant.now());
        let outcome = conductors.register(&self.applicant.new, LEASE, now).await?;
        match outcome {
            RegisterOutcome::Registered(lease) => {
                participant.membership().fence().open(sent + fence::LASTS);
                info!(conductor.epoch = lease.epoch, "conductor {} has a lease", lease.hostname);
                (self.lease, self.taken_since) = (Some(lease), None);
                self.published.clear();
                tell_members(&*participant, &self.sender).await;
                Ok(Ok(Duration::ZERO))
            }
            RegisterOutcome::Taken => {
                let since = *self.taken_since.get_or_insert(sent);
                // The lease of a process that died has passed by now.
                if since.elapsed() > 2 * LEASE {
                    let Applicant { program, new, .. } = &self.applicant;
                    let (program, hostname) = (*program, new.hostname.clone());
                    return Ok(Err(LeaseRefused::HostnameTaken { program, hostname }));
                }
                Ok(Ok(RENEW_EVERY))
            }
            RegisterOutcome::OtherKey { hostname } => {
                let difference = self.applicant.other_key;
                Ok(Err(LeaseRefused::OtherKey { hostname, difference }))
            }
            RegisterOutcome::TooOld { hostname, program } => {
                warn!(
                    program,
                    "conductor {hostname} is too old to work beside this one; stop it, so that this one can begin"
                );
                Ok(Ok(ANNOUNCE_EVERY))
            }
        }
    }

    async fn renew(&mut self, lease: ConductorLease) -> Result<Duration, StoreError> {
        let participant = self.participant.clone();
        let (membership, now) = (participant.membership(), participant.now());
        let report = membership.report();
        let sent = Instant::now();
        let renewed = participant.conductors().renew(&lease, &report, LEASE, now).await?;
        let Some(rows) = renewed else {
            warn!("the lease of this conductor has passed; it has to get a new one");
            // This process may have been stopped, and deadlines do not count that time.
            participant.watch().failed();
            membership.fence().close();
            self.lease = None;
            return Ok(Duration::ZERO);
        };
        membership.fence().open(sent + fence::LASTS);
        // The own row has the time of the renewal.
        let own = rows.iter().find(|row| row.hostname == lease.hostname);
        let renewed_at = own.filter(|_| sent.elapsed() < clock::PROMPT);
        if renewed_at.is_some_and(|row| clock::follow(row.seen_at, now) == ClockChange::Set) {
            warn!(
                "the clock of the database differs from the time until now; deadlines begin anew"
            );
            participant.watch().clock_was_set(participant.now());
        }
        participant.watch().answered(participant.now());
        self.observe(&rows);
        if report.settled != self.published {
            self.published.clone_from(&report.settled);
            tell_members(&*participant, &self.sender).await;
        }
        let is_news = membership.report().settled != report.settled;
        Ok(if is_news { Duration::ZERO } else { RENEW_EVERY })
    }

    /// Takes note of the living conductors.
    fn observe(&mut self, rows: &[ConductorRow]) {
        let living = self.renewals.living(rows);
        let (membership, count) = (self.participant.membership(), living.len());
        match membership.observe(LivingConductors::new(living)) {
            ShareChange::Unchanged => {}
            ShareChange::Narrowed => {
                info!("conductors came or went: {count} share the work now");
                self.moving_since.get_or_insert_with(Instant::now);
                membership.share_changed.notify_one();
                self.participant.share_narrowed();
            }
            ShareChange::Confirmed => {
                debug!("all {count} conductors have let go of the resources of others");
                self.moving_since = None;
                membership.share_changed.notify_one();
                self.participant.share_confirmed();
            }
        }
        if self.moving_since.is_some_and(|since| since.elapsed() > LET_GO_TIMEOUT) {
            membership.end_lost_turns();
        }
    }

    /// Ends the running turns and releases the lease, so that others take over at once.
    async fn leave(&mut self) {
        let participant = self.participant.clone();
        let membership = participant.membership();
        let _ = timeout(STOP_TIMEOUT, membership.turns_have_ended()).await;
        membership.let_go_of_all().await;
        let Some(lease) = self.lease.take() else { return };
        match participant.conductors().release(&lease, participant.now()).await {
            Ok(()) => tell_members(&*participant, &self.sender).await,
            Err(error) => {
                let error = with_sources(&error);
                warn!(error, "cannot release the lease of this conductor");
            }
        }
    }
}
