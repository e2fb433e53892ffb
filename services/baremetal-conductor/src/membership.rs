//! The share of this conductor in the work, and its running turns. The tasks in `replicas.rs` keep the share current.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baremetal_core::{ConductorShare, LivingConductors, Node, NodeUuid, ShareChange};
use baremetal_store::ConductorReport;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::fence::Fence;

/// How often a conductor looks whether a task has become its own.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The share of this conductor, and its running turns.
pub(crate) struct Membership {
    hostname: String,
    /// `None` for a conductor that shares its database with no other: everything belongs to it.
    shared: Option<Shared>,
    fence: Fence,
    /// Notified when the conductor has to look at the others before its time.
    pub(crate) look_again: Notify,
    /// Notified when nodes may have moved to this conductor or away from it.
    pub(crate) share_changed: Notify,
    /// Notified when there is something to tell the other conductors.
    pub(crate) has_news: Notify,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    news: Mutex<News>,
    turn_ended: Notify,
}

struct Work {
    share: ConductorShare,
    turns: HashMap<NodeUuid, RunningTurn>,
    /// The fingerprint of the last list of living conductors for which no turn was left for a node of others.
    settled: String,
}

impl Default for Work {
    fn default() -> Self {
        let share = ConductorShare::nothing("");
        Work { share, turns: HashMap::new(), settled: String::new() }
    }
}

struct RunningTurn {
    /// The conductor group of the node, once its record was read.
    group: Option<String>,
    stop: CancellationToken,
}

/// Messages to the other conductors that were not sent yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Nodes that may belong to others, and for which something was recorded.
    pub(crate) nodes: BTreeSet<NodeUuid>,
    /// Whether a rack may have something to do.
    pub(crate) racks: bool,
    /// Whether a conductor was drained or undrained.
    pub(crate) members: bool,
}

impl Membership {
    /// A conductor that shares its database with no other.
    pub(crate) fn alone(hostname: &str) -> Membership {
        Membership::new(hostname, None, Fence::default())
    }

    /// A conductor that shares its database. It works on nothing until it has a lease.
    pub(crate) fn shared(hostname: &str) -> Membership {
        let shared = Shared::default();
        locked(&shared.work).share = ConductorShare::nothing(hostname);
        Membership::new(hostname, Some(shared), Fence::closed())
    }

    fn new(hostname: &str, shared: Option<Shared>, fence: Fence) -> Membership {
        Membership {
            hostname: hostname.to_owned(),
            shared,
            fence,
            look_again: Notify::new(),
            share_changed: Notify::new(),
            has_news: Notify::new(),
        }
    }

    /// Whether other conductors may work on the database.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    pub(crate) fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Whether this conductor works on the node.
    pub(crate) fn has_node(&self, id: NodeUuid, group: &str) -> bool {
        self.shared.as_ref().is_none_or(|it| locked(&it.work).share.has_node(id, group))
    }

    /// Whether this conductor does a task that belongs to no node, and its lease lasts.
    pub(crate) fn has_task(&self, task: &str) -> bool {
        let has = |it: &Shared| self.fence.check().is_ok() && locked(&it.work).share.has_task(task);
        self.shared.as_ref().is_none_or(has)
    }

    /// Returns when the conductor does the task. Others poll, because a share changes rarely.
    pub(crate) async fn gets_task(&self, task: &str) {
        while !self.has_task(task) {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the conductor that works on the node, as far as this one knows; `None` if its group has no conductor.
    pub(crate) fn conductor_of(&self, id: NodeUuid, group: &str) -> Option<Cow<'_, str>> {
        match &self.shared {
            None => Some(Cow::Borrowed(&self.hostname)),
            Some(it) => {
                let work = locked(&it.work);
                let hostname = work.share.living().conductor_of_node(id, group);
                hostname.map(|it| Cow::Owned(it.to_owned()))
            }
        }
    }

    /// Returns the host names of the living conductors, as far as this one knows.
    pub(crate) fn hostnames(&self) -> Vec<String> {
        match &self.shared {
            None => vec![self.hostname.clone()],
            Some(it) => locked(&it.work).share.living().hostnames().map(str::to_owned).collect(),
        }
    }

    /// Returns the conductor groups of all living conductors; `None` if there are no others.
    pub(crate) fn groups(&self) -> Option<Vec<String>> {
        self.shared.as_ref().map(|it| locked(&it.work).share.living().groups())
    }

    /// Begins a turn. [`Membership::admits`] has to admit it once the node was read.
    pub(crate) fn begin_turn(&self, id: NodeUuid) -> TurnGuard<'_> {
        let running = self.shared.as_ref().map(|shared| {
            let stop = CancellationToken::new();
            let turn = RunningTurn { group: None, stop: stop.clone() };
            locked(&shared.work).turns.insert(id, turn);
            (shared, stop)
        });
        TurnGuard { membership: self, id, running }
    }

    /// Returns whether the turn of this node may go on, because the node belongs to this conductor.
    pub(crate) fn admits(&self, node: &Node) -> bool {
        let Some(shared) = &self.shared else { return true };
        let mut work = locked(&shared.work);
        if !work.share.has_node(node.id, &node.conductor_group) {
            return false;
        }
        if let Some(turn) = work.turns.get_mut(&node.id) {
            turn.group = Some(node.conductor_group.clone());
        }
        true
    }

    /// Takes note of the living conductors.
    pub(crate) fn observe(&self, living: LivingConductors) -> ShareChange {
        match &self.shared {
            None => ShareChange::Unchanged,
            Some(it) => locked(&it.work).share.observe(living),
        }
    }

    /// Returns how far this conductor has let go of everything that belongs to others.
    pub(crate) fn report(&self) -> ConductorReport {
        let Some(shared) = &self.shared else { return ConductorReport::default() };
        let mut work = locked(&shared.work);
        let lost = work.lost_turns().count();
        if lost == 0 {
            work.settled = work.share.living().fingerprint().to_owned();
        }
        let turns = u32::try_from(lost).unwrap_or(u32::MAX);
        ConductorReport { settled: work.settled.clone(), turns }
    }

    /// Ends the turns for nodes that belong to others, as if the process had died there.
    pub(crate) fn end_lost_turns(&self) {
        if let Some(shared) = &self.shared {
            locked(&shared.work).lost_turns().for_each(|turn| turn.stop.cancel());
        }
    }

    /// Works on nothing any more. Returns when the last admitted turn has ended, so that no turn goes on after a new lease has begun.
    pub(crate) async fn let_go_of_all(&self) {
        self.fence.close();
        let Some(shared) = &self.shared else { return };
        {
            let mut work = locked(&shared.work);
            work.share = ConductorShare::nothing(&self.hostname);
            work.settled.clear();
            work.turns.values().for_each(|turn| turn.stop.cancel());
        }
        self.turns_have_ended().await;
    }

    /// Returns when no admitted turn is running.
    pub(crate) async fn turns_have_ended(&self) {
        let Some(shared) = &self.shared else { return };
        loop {
            let ended = shared.turn_ended.notified();
            if locked(&shared.work).turns.values().all(|turn| turn.group.is_none()) {
                return;
            }
            ended.await;
        }
    }

    /// Tells the other conductors that something was recorded for a node, unless the node belongs to this one.
    pub(crate) fn tell_of_node(&self, id: NodeUuid) {
        let Some(shared) = &self.shared else { return };
        if self.may_be_elsewhere(id) {
            locked(&shared.news).nodes.insert(id);
            self.has_news.notify_one();
        }
    }

    /// Tells the other conductors that a rack may have something to do.
    pub(crate) fn tell_of_racks(&self) {
        let Some(shared) = &self.shared else { return };
        locked(&shared.news).racks = true;
        self.has_news.notify_one();
    }

    /// Has all conductors look at each other now.
    pub(crate) fn tell_of_members(&self) {
        let Some(shared) = &self.shared else { return };
        locked(&shared.news).members = true;
        self.has_news.notify_one();
        self.look_again.notify_one();
    }

    /// Takes the messages to the other conductors.
    pub(crate) fn take_news(&self) -> News {
        self.shared.as_ref().map(|it| std::mem::take(&mut *locked(&it.news))).unwrap_or_default()
    }

    fn may_be_elsewhere(&self, id: NodeUuid) -> bool {
        let Some(shared) = &self.shared else { return false };
        locked(&shared.work).share.living().may_be_elsewhere(id, &self.hostname)
    }
}

impl Work {
    /// The turns for nodes that belong to others by now.
    fn lost_turns(&self) -> impl Iterator<Item = &RunningTurn> {
        let is_lost = |id: &NodeUuid, turn: &RunningTurn| {
            turn.group.as_ref().is_some_and(|group| !self.share.has_node(*id, group))
        };
        self.turns.iter().filter(move |(id, turn)| is_lost(id, turn)).map(|(_, turn)| turn)
    }
}

/// A running turn, until this is dropped.
pub(crate) struct TurnGuard<'a> {
    membership: &'a Membership,
    id: NodeUuid,
    running: Option<(&'a Shared, CancellationToken)>,
}

impl TurnGuard<'_> {
    /// Returns when the turn has to end at once, because another conductor may work on the node.
    pub(crate) async fn has_to_end(&self) {
        match &self.running {
            Some((_, stop)) => stop.cancelled().await,
            None => pending().await,
        }
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        let Some((shared, _)) = &self.running else { return };
        let mut work = locked(&shared.work);
        let ended = work.turns.remove(&self.id).and_then(|turn| turn.group);
        let was_lost = ended.is_some_and(|group| !work.share.has_node(self.id, &group));
        drop(work);
        shared.turn_ended.notify_waiters();
        if was_lost {
            self.membership.look_again.notify_one();
        }
    }
}

fn locked<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock is held ends the process, so the poisoned lock can be used until then.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use baremetal_core::{Driver, LivingConductor};
    use jiff::Timestamp;

    use super::*;

    fn living(hostnames: &[&str]) -> LivingConductors {
        let one = |hostname: &&str| LivingConductor {
            hostname: (*hostname).to_owned(),
            epoch: 1,
            groups: vec![String::new()],
            is_draining: false,
            settled: String::new(),
        };
        LivingConductors::new(hostnames.iter().map(one).collect())
    }

    /// The same conductors, all of which have let go of what they lost.
    fn settled(hostnames: &[&str]) -> LivingConductors {
        let settled = living(hostnames).fingerprint().to_owned();
        let one = |hostname: &&str| LivingConductor {
            hostname: (*hostname).to_owned(),
            epoch: 1,
            groups: vec![String::new()],
            is_draining: false,
            settled: settled.clone(),
        };
        LivingConductors::new(hostnames.iter().map(one).collect())
    }

    /// The conductor "a" with all nodes, and a node that moves to "b" once "b" lives.
    fn given() -> (Membership, Node) {
        let membership = Membership::shared("a");
        assert_eq!(membership.observe(living(&["a"])), ShareChange::Narrowed);
        assert_eq!(membership.observe(settled(&["a"])), ShareChange::Confirmed);
        let both = living(&["a", "b"]);
        let moves = |id: &NodeUuid| both.conductor_of_node(*id, "") == Some("b");
        let id = std::iter::repeat_with(NodeUuid::new_v4).find(moves).unwrap();
        (membership, Node::new(id, Driver::FakeHardware, Timestamp::UNIX_EPOCH))
    }

    #[tokio::test]
    async fn a_node_is_let_go_of_when_its_turn_has_ended() {
        let (membership, node) = given();
        let turn = membership.begin_turn(node.id);
        assert!(membership.admits(&node));
        let before = membership.report();
        assert_eq!((before.settled.as_str(), before.turns), (living(&["a"]).fingerprint(), 0));

        assert_eq!(membership.observe(living(&["a", "b"])), ShareChange::Narrowed);
        assert!(!membership.has_node(node.id, ""));
        assert_eq!(membership.report(), ConductorReport { turns: 1, ..before });
        // The next turn of the node is not begun.
        let another = membership.begin_turn(NodeUuid::new_v4());
        assert!(!membership.admits(&node));
        drop(another);
        drop(turn);
        membership.look_again.notified().await;
        let after = membership.report();
        assert_eq!((after.settled.as_str(), after.turns), (living(&["a", "b"]).fingerprint(), 0));
    }

    #[tokio::test]
    async fn a_conductor_that_lost_its_lease_ends_its_turns() {
        let (membership, node) = given();
        assert!(!membership.has_task("rack r1"), "without a lease");
        membership.fence().open(tokio::time::Instant::now() + Duration::from_secs(60));
        assert!(membership.has_task("rack r1"));
        let turn = membership.begin_turn(node.id);
        assert!(membership.admits(&node));
        tokio::join!(membership.let_go_of_all(), async {
            turn.has_to_end().await;
            assert!(membership.fence().check().is_err());
            drop(turn);
        });
        assert!(!membership.has_node(node.id, ""));
    }

    #[tokio::test]
    async fn others_are_told_of_their_nodes_only() {
        let (membership, node) = given();
        membership.tell_of_node(node.id);
        assert_eq!(membership.take_news(), News::default());
        membership.observe(living(&["a", "b"]));
        membership.tell_of_node(node.id);
        membership.tell_of_racks();
        let want = News { nodes: BTreeSet::from([node.id]), racks: true, members: false };
        assert_eq!(membership.take_news(), want);
        assert_eq!(membership.take_news(), News::default());
    }

    #[tokio::test]
    async fn everything_belongs_to_a_conductor_that_is_alone() {
        let (_, node) = given();
        let membership = Membership::alone("a");
        let turn = membership.begin_turn(node.id);
        assert!(membership.admits(&node) && membership.has_task("rack r1"));
        membership.tell_of_node(node.id);
        assert_eq!(membership.take_news(), News::default());
        membership.let_go_of_all().await;
        drop(turn);
        assert_eq!(membership.conductor_of(node.id, "").as_deref(), Some("a"));
    }
}
