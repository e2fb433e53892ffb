//! The lease of this conductor, and its share in the work of all conductors on the database.
//!
//! On PostgreSQL a conductor renews its lease every second. Its fence closes before the lease passes in the database: the local deadline counts
//! from before the renewal was sent, by the monotonic clock. It ends a second early, so that an effect of the last moment arrives before
//! another conductor begins. SQLite has one conductor, which only records that it is alive.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use baremetal_core::{LivingConductor, LivingConductors, NodeUuid, ShareChange};
use baremetal_store::{
    ConductorLease, ConductorRow, MAX_NOTIFICATION, NewConductor, Notifications, RegisterOutcome,
    StoreError,
};
use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use uuid::Uuid;

use crate::context::TurnContext;
use crate::problem::chain;
use crate::secrets::Purpose;
use crate::settings::Settings;

/// How often a conductor that is alone records that it is alive.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(10);

/// How long a lease lasts in the database.
const LEASE: Duration = Duration::from_secs(6);

/// How long effects are permitted after a renewal. An effect that was sent at the end has a second to arrive.
const FENCE: Duration = Duration::from_secs(5);

/// The pause between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// How long turns of nodes that moved to another conductor may take, while all nodes that moved wait for them. Then they end as if the process
/// had died. Only the upload of an image takes longer, and the next turn begins it again.
const LET_GO_TIMEOUT: Duration = Duration::from_secs(30);

/// How long turns may take after the service was told to stop.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// The time after which a notification is no longer waited for on one connection: a server that is gone closes none.
const SILENCE: Duration = Duration::from_secs(60);

/// The ids of nodes in one notification.
const IDS_AT_ONCE: usize = MAX_NOTIFICATION / 40;

/// Why this conductor gets no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseRefused {
    #[error(
        "another baremetald on this database is running as conductor {hostname}; set a hostname of its own for each in [conductor]"
    )]
    HostnameTaken { hostname: String },
    #[error(
        "conductor {hostname} on this database makes tokens with another key; copy its service.key to the state folder of this conductor"
    )]
    OtherKey { hostname: String },
}

/// Keeps the lease and the share until `stop` is cancelled; then releases both.
pub(crate) async fn run(
    context: Arc<TurnContext>,
    stop: CancellationToken,
) -> Result<(), LeaseRefused> {
    if !context.membership.is_shared() {
        announce(&context, &stop).await;
        return Ok(());
    }
    let sender = Uuid::new_v4().to_string();
    let told = CancellationToken::new();
    let mut replica = Replica::new(context.clone(), sender.clone());
    let exchange = async {
        tokio::select! {
            () = told.cancelled() => {}
            () = tell(&context, &sender) => {}
            () = listen(&context, &sender) => {}
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
async fn announce(context: &TurnContext, stop: &CancellationToken) {
    loop {
        let Settings { hostname, groups, .. } = &context.settings;
        match context.store.touch_conductor(hostname, groups, context.now()).await {
            Ok(()) => context.watch.answered(context.now()),
            Err(error) => {
                context.watch.failed();
                warn!(error = chain(&error), "cannot record that this conductor is alive");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(ANNOUNCE_EVERY) => {}
        }
    }
}

/// This conductor among those on the database.
struct Replica {
    context: Arc<TurnContext>,
    new: NewConductor,
    lease: Option<ConductorLease>,
    /// Since when another process has the lease of this host name.
    taken_since: Option<Instant>,
    /// Since when nodes have been moving between conductors.
    moving_since: Option<Instant>,
    /// What the others last read of this conductor.
    published: String,
    renewals: LastRenewals,
    /// The name of this process in notifications.
    sender: String,
}

impl Replica {
    fn new(context: Arc<TurnContext>, sender: String) -> Replica {
        let Settings { hostname, groups, instance, .. } = &context.settings;
        let new = NewConductor {
            hostname: hostname.clone(),
            groups: groups.clone(),
            instance: instance.clone(),
            installation: context.key.derive(Purpose::Installation, &[])[..16].to_owned(),
        };
        Replica {
            new,
            lease: None,
            taken_since: None,
            moving_since: None,
            published: String::new(),
            renewals: LastRenewals::default(),
            sender,
            context,
        }
    }

    /// Keeps the lease until `stop` is cancelled.
    async fn work(&mut self, stop: &CancellationToken) -> Result<(), LeaseRefused> {
        let context = self.context.clone();
        loop {
            let pause = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                pause = self.step() => pause?,
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = context.membership.look_again.notified() => {}
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
            self.context.watch.failed();
            warn!(error = chain(&error), "cannot renew the lease of this conductor");
            Ok(RENEW_EVERY)
        })
    }

    async fn register(&mut self) -> Result<Result<Duration, LeaseRefused>, StoreError> {
        let context = self.context.clone();
        context.membership.let_go_of_all().await;
        let sent = Instant::now();
        let outcome = context.store.register_conductor(&self.new, LEASE, context.now()).await?;
        match outcome {
            RegisterOutcome::Registered(lease) => {
                context.membership.fence().open(sent + FENCE);
                info!(conductor.epoch = lease.epoch, "conductor {} has a lease", lease.hostname);
                (self.lease, self.taken_since) = (Some(lease), None);
                self.published.clear();
                self.tell_members().await;
                Ok(Ok(Duration::ZERO))
            }
            RegisterOutcome::Taken => {
                let since = *self.taken_since.get_or_insert(sent);
                // The lease of a process that died has passed by now.
                if since.elapsed() > 2 * LEASE {
                    return Ok(Err(LeaseRefused::HostnameTaken {
                        hostname: self.new.hostname.clone(),
                    }));
                }
                Ok(Ok(RENEW_EVERY))
            }
            RegisterOutcome::OtherKey { hostname } => Ok(Err(LeaseRefused::OtherKey { hostname })),
            RegisterOutcome::WithoutLease { hostname } => {
                warn!(
                    "conductor {hostname} of an earlier version works on all nodes; stop it, so that this one can begin"
                );
                Ok(Ok(ANNOUNCE_EVERY))
            }
        }
    }

    async fn renew(&mut self, lease: ConductorLease) -> Result<Duration, StoreError> {
        let context = self.context.clone();
        let (membership, now) = (&context.membership, context.now());
        let report = membership.report();
        let sent = Instant::now();
        let renewed = context.store.renew_conductor(&lease, &report, LEASE, now).await?;
        let Some(rows) = renewed else {
            warn!("the lease of this conductor has passed; it has to get a new one");
            // This process may have been stopped, and deadlines do not count that time.
            context.watch.failed();
            membership.fence().close();
            self.lease = None;
            return Ok(Duration::ZERO);
        };
        membership.fence().open(sent + FENCE);
        context.watch.answered(context.now());
        self.observe(&rows);
        if report.settled != self.published {
            self.published.clone_from(&report.settled);
            self.tell_members().await;
        }
        let is_news = membership.report().settled != report.settled;
        Ok(if is_news { Duration::ZERO } else { RENEW_EVERY })
    }

    /// Takes note of the living conductors.
    fn observe(&mut self, rows: &[ConductorRow]) {
        let living = self.renewals.living(rows);
        let (membership, count) = (&self.context.membership, living.len());
        match membership.observe(LivingConductors::new(living)) {
            ShareChange::Unchanged => {}
            ShareChange::Narrowed => {
                info!("conductors came or went: {count} share the nodes now");
                self.moving_since.get_or_insert_with(Instant::now);
                membership.share_changed.notify_one();
            }
            ShareChange::Confirmed => {
                debug!("all {count} conductors have let go of the nodes of others");
                self.moving_since = None;
                membership.share_changed.notify_one();
                self.context.rack_changed.notify_one();
            }
        }
        if self.moving_since.is_some_and(|since| since.elapsed() > LET_GO_TIMEOUT) {
            membership.end_lost_turns();
        }
    }

    /// Ends the running turns and releases the lease, so that others take over at once.
    async fn leave(&mut self) {
        let context = self.context.clone();
        let _ = timeout(STOP_TIMEOUT, context.membership.turns_have_ended()).await;
        context.membership.let_go_of_all().await;
        let Some(lease) = self.lease.take() else { return };
        match context.store.release_conductor(&lease, context.now()).await {
            Ok(()) => self.tell_members().await,
            Err(error) => {
                warn!(error = chain(&error), "cannot release the lease of this conductor");
            }
        }
    }

    /// Has the other conductors look at each other now.
    async fn tell_members(&self) {
        notify(&self.context, format!("{} {MEMBERS}", self.sender)).await;
    }
}

/// When this process last saw each conductor renew its lease, by its own clock.
///
/// The clock of the database may be set forward, and then all leases seem to have passed at once, while the fences of all conductors are
/// open. So a conductor that renewed its lease a moment ago counts as living.
#[derive(Default)]
struct LastRenewals(HashMap<String, (i64, Timestamp, Instant)>);

impl LastRenewals {
    /// Returns the living conductors.
    fn living(&mut self, rows: &[ConductorRow]) -> Vec<LivingConductor> {
        let now = Instant::now();
        let leased = rows.iter().filter(|row| row.epoch > 0);
        leased.filter(|row| self.is_living(row, now)).map(ConductorRow::living).collect()
    }

    fn is_living(&mut self, row: &ConductorRow, now: Instant) -> bool {
        match self.0.get(&row.hostname) {
            None if !row.is_alive => false,
            Some((epoch, at, since)) if (*epoch, *at) == (row.epoch, row.seen_at) => {
                let is_recent = now.duration_since(*since) < FENCE;
                row.is_alive || (is_recent && !row.is_released)
            }
            // The lease is new, or was renewed or released since the last look.
            Some(_) | None => {
                self.0.insert(row.hostname.clone(), (row.epoch, row.seen_at, now));
                !row.is_released
            }
        }
    }
}

/// The words of notifications, which follow the name of the sender.
const MEMBERS: &str = "members";
const RACKS: &str = "racks";
const NODES: &str = "nodes";

/// Sends a notification. Without it the others look some time later.
async fn notify(context: &TurnContext, text: String) {
    if let Err(error) = context.store.notify_conductors(text).await {
        debug!(error = chain(&error), "cannot notify the other conductors");
    }
}

/// Tells the other conductors of nodes and racks for which this process recorded something.
async fn tell(context: &TurnContext, sender: &str) {
    loop {
        context.membership.has_news.notified().await;
        let news = context.membership.take_news();
        if news.members {
            notify(context, format!("{sender} {MEMBERS}")).await;
        }
        if news.racks {
            notify(context, format!("{sender} {RACKS}")).await;
        }
        let nodes: Vec<String> = news.nodes.iter().map(ToString::to_string).collect();
        for some in nodes.chunks(IDS_AT_ONCE) {
            notify(context, format!("{sender} {NODES} {}", some.join(" "))).await;
        }
    }
}

/// Receives what other conductors tell.
async fn listen(context: &TurnContext, sender: &str) {
    loop {
        match context.store.conductor_notifications().await {
            Ok(Some(mut notifications)) => {
                // Some may have been lost before.
                context.membership.look_again.notify_one();
                context.membership.share_changed.notify_one();
                receive(context, sender, &mut notifications).await;
            }
            Ok(None) => return std::future::pending().await,
            Err(error) => {
                debug!(error = chain(&error), "cannot listen to the other conductors");
                sleep(RENEW_EVERY).await;
            }
        }
    }
}

/// Receives notifications until the connection is lost or silent.
async fn receive(context: &TurnContext, sender: &str, notifications: &mut Notifications) {
    loop {
        match timeout(SILENCE, notifications.next()).await {
            Ok(Ok(Some(text))) => follow(context, sender, &text),
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(error)) => {
                debug!(error = chain(&error), "the connection to the other conductors is lost");
                return sleep(RENEW_EVERY).await;
            }
        }
    }
}

fn follow(context: &TurnContext, own: &str, text: &str) {
    let mut words = text.split(' ');
    if words.next() == Some(own) {
        return;
    }
    match words.next() {
        Some(MEMBERS) => context.membership.look_again.notify_one(),
        Some(RACKS) => context.rack_changed.notify_one(),
        Some(NODES) => {
            let ids = words.filter_map(|id| id.parse::<NodeUuid>().ok());
            ids.for_each(|id| context.queue.wake(id));
        }
        Some(_) | None => debug!("a notification that this version does not know: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn row(hostname: &str, renewals: i64) -> ConductorRow {
        let seen_at = Timestamp::from_second(renewals).unwrap();
        ConductorRow {
            hostname: hostname.to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
            seen_at,
            is_alive: true,
            is_released: false,
            groups: vec![String::new()],
            epoch: 1,
            is_draining: false,
            settled: String::new(),
            turns: 0,
            instance: String::new(),
            installation: String::new(),
        }
    }

    fn living(renewals: &mut LastRenewals, rows: &[ConductorRow]) -> Vec<String> {
        renewals.living(rows).into_iter().map(|it| it.hostname).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_set_forward_ends_no_lease() {
        let mut renewals = LastRenewals::default();
        let long_dead = ConductorRow { is_alive: false, ..row("c", 1) };
        let alive = [row("a", 1), row("b", 1), long_dead.clone()];
        assert_eq!(living(&mut renewals, &alive), ["a", "b"]);
        advance(Duration::from_secs(1)).await;
        let seems_dead = ConductorRow { is_alive: false, ..row("b", 1) };
        let after = [row("a", 2), seems_dead.clone(), long_dead];
        assert_eq!(living(&mut renewals, &after), ["a", "b"]);
        advance(FENCE).await;
        assert_eq!(living(&mut renewals, &after), ["a"], "it has not renewed its lease");
        // A conductor that stopped is gone at once, and one that got a new lease is back.
        let back = ConductorRow { epoch: 2, ..row("b", 9) };
        assert_eq!(living(&mut renewals, &[back]), ["b"]);
        let stopped =
            ConductorRow { is_released: true, epoch: 2, seen_at: seems_dead.seen_at, ..seems_dead };
        assert!(living(&mut renewals, &[stopped]).is_empty());
    }

    #[tokio::test]
    async fn a_conductor_without_leases_shares_nothing() {
        let alone = ConductorRow { epoch: 0, ..row("a", 1) };
        assert!(LastRenewals::default().living(&[alone]).is_empty());
    }
}
