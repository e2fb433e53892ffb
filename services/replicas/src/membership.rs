//! The share of this conductor in the work, and its running turns. The lease in `replica.rs` keeps the share current.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use database::conductors::ConductorReport;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::fence::Fence;
use crate::key_answers::KeyAnswers;
use crate::share::{ConductorShare, LivingConductors, ShareChange, ShareKey};

/// How often a conductor looks whether a task has become its own.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The share of this conductor, and its running turns.
pub struct Membership<K> {
    hostname: String,
    /// `None` for a conductor that shares its database with no other: everything belongs to it.
    shared: Option<Shared<K>>,
    fence: Fence,
    /// Notified when the conductor has to look at the others before its time.
    pub(crate) look_again: Notify,
    /// Notified when resources may have moved to this conductor or away from it.
    pub(crate) share_changed: Notify,
    /// Notified when there is something to tell the other conductors.
    pub(crate) has_news: Notify,
    /// The answers to this conductor in a rotation of the sealing keys.
    pub(crate) key_answers: KeyAnswers,
    /// The URL at which the other conductors reach this process.
    own_address: Option<String>,
    /// The URLs of the others, as far as they have told them.
    addresses: Mutex<HashMap<String, String>>,
}

struct Shared<K> {
    work: Mutex<Work<K>>,
    news: Mutex<News<K>>,
    turn_ended: Notify,
}

struct Work<K> {
    share: ConductorShare,
    turns: HashMap<K, RunningTurn>,
    /// The fingerprint of the last list of living conductors for which no turn was left for a resource of others.
    settled: String,
}

struct RunningTurn {
    /// The conductor group of the resource, once the turn was admitted.
    group: Option<String>,
    stop: CancellationToken,
}

/// Messages to the other conductors that were not sent yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct News<K> {
    /// Resources that may belong to others, and for which something was recorded.
    pub(crate) keys: BTreeSet<K>,
    /// Tasks that have something to do and may belong to others, and other messages.
    pub(crate) tasks: BTreeSet<String>,
    /// Whether a conductor was drained or undrained.
    pub(crate) members: bool,
}

impl<K> Default for News<K> {
    fn default() -> Self {
        News { keys: BTreeSet::new(), tasks: BTreeSet::new(), members: false }
    }
}

impl<K: ShareKey> Membership<K> {
    /// A conductor that shares its database with no other.
    pub fn alone(hostname: &str) -> Membership<K> {
        Membership::new(hostname, None, Fence::default())
    }

    /// A conductor that shares its database. It works on nothing until it has a lease.
    pub fn shared(hostname: &str) -> Membership<K> {
        let work = Work {
            share: ConductorShare::nothing(hostname),
            turns: HashMap::new(),
            settled: String::new(),
        };
        let shared =
            Shared { work: Mutex::new(work), news: Mutex::default(), turn_ended: Notify::new() };
        Membership::new(hostname, Some(shared), Fence::closed())
    }

    fn new(hostname: &str, shared: Option<Shared<K>>, fence: Fence) -> Membership<K> {
        Membership {
            hostname: hostname.to_owned(),
            shared,
            fence,
            look_again: Notify::new(),
            share_changed: Notify::new(),
            has_news: Notify::new(),
            key_answers: KeyAnswers::default(),
            own_address: None,
            addresses: Mutex::default(),
        }
    }

    /// The same conductor, which the others reach at this URL.
    pub fn with_address(self, address: Option<String>) -> Membership<K> {
        Membership { own_address: address, ..self }
    }

    /// Whether other conductors may work on the database.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The fence of the effects of this process.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Waits until resources may have moved to this conductor or away from it.
    pub async fn share_changed(&self) {
        self.share_changed.notified().await;
    }

    /// Whether this conductor works on the resource.
    pub fn has(&self, key: &K, group: &str) -> bool {
        self.shared.as_ref().is_none_or(|it| locked(&it.work).share.has(key, group))
    }

    /// Whether this conductor does a task that one of the living conductors does for all, and its lease lasts.
    pub fn has_task(&self, task: &str) -> bool {
        let has =
            |it: &Shared<K>| self.fence.check().is_ok() && locked(&it.work).share.has_task(task);
        self.shared.as_ref().is_none_or(has)
    }

    /// Returns when the conductor does the task. It polls, because a share changes rarely.
    pub async fn gets_task(&self, task: &str) {
        while !self.has_task(task) {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the conductor that works on the resource, as far as this one knows; `None` if its group has no conductor.
    pub fn conductor_of(&self, key: &K, group: &str) -> Option<Cow<'_, str>> {
        match &self.shared {
            None => Some(Cow::Borrowed(&self.hostname)),
            Some(it) => {
                let work = locked(&it.work);
                let hostname = work.share.living().conductor_of(key, group);
                hostname.map(|it| Cow::Owned(it.to_owned()))
            }
        }
    }

    /// Returns the host names of the living conductors, as far as this one knows.
    pub fn hostnames(&self) -> Vec<String> {
        match &self.shared {
            None => vec![self.hostname.clone()],
            Some(it) => locked(&it.work).share.living().hostnames().map(str::to_owned).collect(),
        }
    }

    /// Returns the URL of another living conductor, if it has told one.
    pub fn address_of(&self, hostname: &str) -> Option<String> {
        let is_alive = self.others().iter().any(|it| it == hostname);
        is_alive.then(|| locked(&self.addresses).get(hostname).cloned()).flatten()
    }

    /// Takes note of the URL of another conductor.
    pub(crate) fn note_address(&self, hostname: &str, address: &str) {
        locked(&self.addresses).insert(hostname.to_owned(), address.to_owned());
    }

    /// Tells the URL of this process to all other conductors.
    pub(crate) fn tell_address(&self, word: &str) {
        if let Some(address) = &self.own_address {
            self.tell_all(format!("{word} {} {address}", self.hostname));
        }
    }

    /// Returns the host names of the other living conductors, as far as this one knows.
    pub(crate) fn others(&self) -> Vec<String> {
        let mut others = self.hostnames();
        others.retain(|hostname| *hostname != self.hostname);
        others
    }

    /// The host name of this conductor.
    pub(crate) fn own_hostname(&self) -> &str {
        &self.hostname
    }

    /// Returns the conductor groups of all living conductors; `None` if there are no others.
    pub fn groups(&self) -> Option<Vec<String>> {
        self.shared.as_ref().map(|it| locked(&it.work).share.living().groups())
    }

    /// Begins a turn. [`Membership::admits`] has to admit it before it has any effect.
    pub fn begin_turn(&self, key: K) -> TurnGuard<'_, K> {
        let running = self.shared.as_ref().map(|shared| {
            let stop = CancellationToken::new();
            let turn = RunningTurn { group: None, stop: stop.clone() };
            locked(&shared.work).turns.insert(key, turn);
            (shared, stop)
        });
        TurnGuard { membership: self, key, running }
    }

    /// Returns whether the turn of this resource may go on, because the resource belongs to this conductor.
    pub fn admits(&self, key: K, group: &str) -> bool {
        let Some(shared) = &self.shared else { return true };
        let mut work = locked(&shared.work);
        if !work.share.has(&key, group) {
            return false;
        }
        if let Some(turn) = work.turns.get_mut(&key) {
            turn.group = Some(group.to_owned());
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
        let lost = work.lost_turns().len();
        if lost == 0 {
            work.settled = work.share.living().fingerprint().to_owned();
        }
        let turns = u32::try_from(lost).unwrap_or(u32::MAX);
        ConductorReport { settled: work.settled.clone(), turns }
    }

    /// Ends the turns for resources that belong to others, as if the process had died there.
    pub(crate) fn end_lost_turns(&self) {
        if let Some(shared) = &self.shared {
            locked(&shared.work).lost_turns().iter().for_each(|turn| turn.stop.cancel());
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

    /// Tells the other conductors that something was recorded for a resource, unless the resource belongs to this one.
    pub fn tell_of(&self, key: K) {
        let Some(shared) = &self.shared else { return };
        let may_be_elsewhere =
            locked(&shared.work).share.living().may_be_elsewhere(&key, &self.hostname);
        if may_be_elsewhere {
            locked(&shared.news).keys.insert(key);
            self.has_news.notify_one();
        }
    }

    /// Tells the other conductors that a task has something to do, unless the task belongs to this one.
    pub fn tell_of_task(&self, task: String) {
        let Some(shared) = &self.shared else { return };
        let is_own = locked(&shared.work).share.living().conductor_of_task(&task)
            == Some(self.hostname.as_str());
        if !is_own {
            locked(&shared.news).tasks.insert(task);
            self.has_news.notify_one();
        }
    }

    /// Tells a message to all other conductors.
    pub(crate) fn tell_all(&self, message: String) {
        let Some(shared) = &self.shared else { return };
        locked(&shared.news).tasks.insert(message);
        self.has_news.notify_one();
    }

    /// Has all conductors look at each other now.
    pub fn tell_of_members(&self) {
        let Some(shared) = &self.shared else { return };
        locked(&shared.news).members = true;
        self.has_news.notify_one();
        self.look_again.notify_one();
    }

    /// Takes the messages to the other conductors.
    pub(crate) fn take_news(&self) -> News<K> {
        self.shared.as_ref().map(|it| take(&mut *locked(&it.news))).unwrap_or_default()
    }
}

impl<K: ShareKey> Work<K> {
    /// The turns for resources that belong to others by now.
    fn lost_turns(&self) -> Vec<&RunningTurn> {
        let is_lost = |key: &K, turn: &RunningTurn| {
            turn.group.as_ref().is_some_and(|group| !self.share.has(key, group))
        };
        let mut lost = Vec::new();
        for (key, turn) in &self.turns {
            if is_lost(key, turn) {
                lost.push(turn);
            }
        }
        lost
    }
}

/// A running turn, until this is dropped.
pub struct TurnGuard<'a, K: ShareKey> {
    membership: &'a Membership<K>,
    key: K,
    running: Option<(&'a Shared<K>, CancellationToken)>,
}

impl<K: ShareKey> TurnGuard<'_, K> {
    /// Returns when the turn has to end at once, because another conductor may work on the resource.
    pub async fn has_to_end(&self) {
        match &self.running {
            Some((_, stop)) => stop.cancelled().await,
            None => pending().await,
        }
    }
}

impl<K: ShareKey> Drop for TurnGuard<'_, K> {
    fn drop(&mut self) {
        let Some((shared, _)) = &self.running else { return };
        let mut work = locked(&shared.work);
        let ended = work.turns.remove(&self.key).and_then(|turn| turn.group);
        let was_lost = ended.is_some_and(|group| !work.share.has(&self.key, &group));
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
    use newtype_uuid::{TypedUuid, TypedUuidKind, TypedUuidTag};

    use super::*;
    use crate::share::LivingConductor;

    /// The kind of the ids of nodes.
    enum Node {}

    impl TypedUuidKind for Node {
        fn tag() -> TypedUuidTag {
            const TAG: TypedUuidTag = TypedUuidTag::new("node");
            TAG
        }
    }

    type NodeUuid = TypedUuid<Node>;

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
    fn given() -> (Membership<NodeUuid>, NodeUuid) {
        let membership = Membership::shared("a");
        assert_eq!(membership.observe(living(&["a"])), ShareChange::Narrowed);
        assert_eq!(membership.observe(settled(&["a"])), ShareChange::Confirmed);
        let both = living(&["a", "b"]);
        let moves = |id: &NodeUuid| both.conductor_of(id, "") == Some("b");
        let id = std::iter::repeat_with(NodeUuid::new_v4).find(moves).unwrap();
        (membership, id)
    }

    #[tokio::test]
    async fn a_node_is_let_go_of_when_its_turn_has_ended() {
        let (membership, node) = given();
        let turn = membership.begin_turn(node);
        assert!(membership.admits(node, ""));
        let before = membership.report();
        assert_eq!((before.settled.as_str(), before.turns), (living(&["a"]).fingerprint(), 0));

        assert_eq!(membership.observe(living(&["a", "b"])), ShareChange::Narrowed);
        assert!(!membership.has(&node, ""));
        assert_eq!(membership.report(), ConductorReport { turns: 1, ..before });
        // The next turn of the node is not begun.
        let another = membership.begin_turn(NodeUuid::new_v4());
        assert!(!membership.admits(node, ""));
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
        let turn = membership.begin_turn(node);
        assert!(membership.admits(node, ""));
        tokio::join!(membership.let_go_of_all(), async {
            turn.has_to_end().await;
            assert!(membership.fence().check().is_err());
            drop(turn);
        });
        assert!(!membership.has(&node, ""));
    }

    #[tokio::test]
    async fn others_are_told_of_their_nodes_and_tasks_only() {
        let (membership, node) = given();
        let both = living(&["a", "b"]);
        let task_of = |hostname: &str| {
            let mut tasks = (1..).map(|number| format!("rack r{number}"));
            tasks.find(|task| both.conductor_of_task(task) == Some(hostname)).unwrap()
        };
        membership.tell_of(node);
        membership.tell_of_task(task_of("b"));
        assert_eq!(membership.take_news(), News::default());
        membership.observe(living(&["a", "b"]));
        membership.tell_of(node);
        membership.tell_of_task(task_of("a"));
        membership.tell_of_task(task_of("b"));
        let want = News {
            keys: BTreeSet::from([node]),
            tasks: BTreeSet::from([task_of("b")]),
            members: false,
        };
        assert_eq!(membership.take_news(), want);
        assert_eq!(membership.take_news(), News::default());
    }

    #[tokio::test]
    async fn the_address_of_a_living_conductor_is_known() {
        let membership = Membership::<NodeUuid>::shared("a").with_address(Some("http://a/".into()));
        membership.tell_address("address");
        let told = membership.take_news().tasks;
        assert_eq!(told, BTreeSet::from(["address a http://a/".to_owned()]));
        membership.note_address("b", "http://b/");
        assert_eq!(membership.address_of("b"), None, "it is not alive");
        membership.observe(living(&["a", "b", "c"]));
        assert_eq!(membership.address_of("b").as_deref(), Some("http://b/"));
        assert_eq!(membership.address_of("c"), None);
        membership.observe(living(&["a", "c"]));
        assert_eq!(membership.address_of("b"), None);
    }

    #[tokio::test]
    async fn everything_belongs_to_a_conductor_that_is_alone() {
        let (_, node) = given();
        let membership = Membership::alone("a");
        let turn = membership.begin_turn(node);
        assert!(membership.admits(node, "") && membership.has_task("rack r1"));
        membership.tell_of(node);
        assert_eq!(membership.take_news(), News::default());
        membership.let_go_of_all().await;
        drop(turn);
        assert_eq!(membership.conductor_of(&node, "").as_deref(), Some("a"));
    }
}
