#![doc = include_str!("../README.md")]

mod mutation;
mod span;
mod turn;
mod turn_error;
mod watch;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use metrics::TurnMetrics;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue;

pub use decision::{Requeue, time_left};
pub use mutation::Mutation;
pub use span::{begin_span, end_span};
pub use turn::{Decided, Turn, execute};
pub use turn_error::{RetryPauses, TurnError, TurnErrorKind, requeue, with_sources};
pub use watch::Watch;

/// Wakes keys of a `run` loop. All clones of a queue wake the same loop.
#[derive(Clone)]
pub struct Queue<K> {
    woken: Arc<WokenKeys<K>>,
}

struct WokenKeys<K> {
    keys: Mutex<Keys<K>>,
    notify: Notify,
    meter: TurnMeter<K>,
}

/// Counts the turns of a loop by the kind of their keys.
struct TurnMeter<K> {
    metrics: TurnMetrics,
    kind: fn(&K) -> &'static str,
}

struct Keys<K> {
    woken: HashSet<K>,
    /// Woken only if no turn is planned for them.
    resting: HashSet<K>,
}

impl<K> Default for Keys<K> {
    fn default() -> Self {
        Keys { woken: HashSet::new(), resting: HashSet::new() }
    }
}

impl<K: Eq + Hash> Default for Queue<K> {
    fn default() -> Self {
        Queue::measured(TurnMetrics::default(), |_| "any")
    }
}

impl<K: Eq + Hash> Queue<K> {
    /// Makes a queue whose loop counts its turns. `kind` returns the word under which the turns of a key are counted.
    pub fn measured(metrics: TurnMetrics, kind: fn(&K) -> &'static str) -> Self {
        let meter = TurnMeter { metrics, kind };
        Queue {
            woken: Arc::new(WokenKeys { keys: Mutex::default(), notify: Notify::new(), meter }),
        }
    }

    /// Asks the loop to give `key` a turn soon. Never blocks; a key that already waits is not queued twice.
    pub fn wake(&self, key: K) {
        let new = self.keys().woken.insert(key);
        if new {
            self.woken.notify.notify_one();
        }
    }

    /// Asks the loop to give `key` a turn soon, if the key has no turn now and none is planned for a later time.
    pub fn wake_resting(&self, key: K) {
        let new = self.keys().resting.insert(key);
        if new {
            self.woken.notify.notify_one();
        }
    }

    fn drain(&self) -> Keys<K> {
        std::mem::take(&mut *self.keys())
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, Keys<K>> {
        self.woken.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives turns to woken keys, at most `at_once` in parallel, until `stop` is cancelled; then waits until the running turns have ended.
///
/// # Errors
///
/// Returns the `JoinError` of the first turn that panicked; the turns still running are aborted.
pub async fn run<K, F, T>(
    queue: Queue<K>,
    at_once: usize,
    stop: CancellationToken,
    turn: F,
) -> Result<(), JoinError>
where
    K: Copy + Eq + Hash + Send + 'static,
    F: Fn(K) -> T,
    T: Future<Output = Requeue> + Send + 'static,
{
    let mut book = KeyStates::new(&queue.woken.meter);
    let mut turns: JoinSet<(K, Requeue)> = JoinSet::new();

    loop {
        while turns.len() < at_once {
            let Some(key) = book.next() else { break };
            let turn = turn(key);
            turns.spawn(async move { (key, turn.await) });
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = queue.woken.notify.notified() => {
                let Keys { woken, resting } = queue.drain();
                for key in woken {
                    book.wake(key);
                }
                for key in resting {
                    book.wake_resting(key);
                }
            }
            Some(expired) = book.timers.next(), if !book.timers.is_empty() => {
                let key = expired.into_inner();
                book.slots.remove(&key);
                book.wake(key);
            }
            Some(ended) = turns.join_next(), if !turns.is_empty() => {
                let (key, requeue) = ended?;
                book.end(key, requeue);
            }
        }
    }
    while let Some(ended) = turns.join_next().await {
        ended?;
    }
    Ok(())
}

/// The state of every key that waits for a turn, has a turn, or sleeps until a timer expires.
struct KeyStates<'m, K> {
    /// The keys that are due, with the time since when.
    ready: VecDeque<(K, Instant)>,
    slots: HashMap<K, KeyState>,
    timers: DelayQueue<K>,
    meter: &'m TurnMeter<K>,
}

enum KeyState {
    Ready,
    Running { again: bool, begun_at: Instant },
    Sleeping(delay_queue::Key),
}

impl<'m, K: Copy + Eq + Hash> KeyStates<'m, K> {
    fn new(meter: &'m TurnMeter<K>) -> Self {
        KeyStates {
            ready: VecDeque::new(),
            slots: HashMap::new(),
            timers: DelayQueue::new(),
            meter,
        }
    }

    fn next(&mut self) -> Option<K> {
        let (key, ready_at) = self.ready.pop_front()?;
        let begun_at = Instant::now();
        self.meter.metrics.begun((self.meter.kind)(&key), begun_at - ready_at);
        self.slots.insert(key, KeyState::Running { again: false, begun_at });
        Some(key)
    }

    fn wake(&mut self, key: K) {
        match self.slots.get_mut(&key) {
            Some(KeyState::Ready) => return,
            Some(KeyState::Running { again, .. }) => {
                *again = true;
                return;
            }
            Some(KeyState::Sleeping(timer)) => {
                self.timers.remove(timer);
            }
            None => {}
        }
        self.slots.insert(key, KeyState::Ready);
        self.ready.push_back((key, Instant::now()));
        self.meter.metrics.queued((self.meter.kind)(&key));
    }

    fn wake_resting(&mut self, key: K) {
        if !self.slots.contains_key(&key) {
            self.wake(key);
        }
    }

    fn end(&mut self, key: K, requeue: Requeue) {
        let again = match self.slots.remove(&key) {
            Some(KeyState::Running { again, begun_at }) => {
                self.meter.metrics.ended((self.meter.kind)(&key), begun_at.elapsed());
                again
            }
            Some(KeyState::Ready | KeyState::Sleeping(_)) | None => false,
        };
        match requeue {
            _ if again => self.wake(key),
            Requeue::Now => self.wake(key),
            Requeue::After(pause) => {
                let timer = self.timers.insert(key, pause);
                self.slots.insert(key, KeyState::Sleeping(timer));
            }
            Requeue::OnChange => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_woken_often_gets_one_turn() {
        let (sender, mut turns) = mpsc::unbounded_channel();
        let queue = Queue::default();
        for _ in 0..10 {
            queue.wake(7);
        }
        queue.wake(8);
        let stop = CancellationToken::new();
        let end = stop.clone();
        let turn = move |key: u32| {
            let sender = sender.clone();
            async move {
                sender.send(key).unwrap();
                Requeue::OnChange
            }
        };
        let running = tokio::spawn(run(queue, 1, stop, turn));
        let mut seen = [turns.recv().await.unwrap(), turns.recv().await.unwrap()];
        seen.sort_unstable();
        assert_eq!(seen, [7, 8]);
        end.cancel();
        running.await.unwrap().unwrap();
        assert_eq!(turns.recv().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_never_has_two_turns_at_once_and_misses_no_wake() {
        let at_once = Arc::new(AtomicUsize::new(0));
        let (sender, mut turns) = mpsc::unbounded_channel();
        let queue = Queue::default();
        queue.wake(1);
        let (stop, waker) = (CancellationToken::new(), queue.clone());
        let turn = move |key: u32| {
            let (at_once, sender, waker) = (at_once.clone(), sender.clone(), waker.clone());
            async move {
                assert_eq!(at_once.fetch_add(1, SeqCst), 0, "two turns at once");
                waker.wake(key);
                tokio::time::sleep(Duration::from_secs(1)).await;
                at_once.fetch_sub(1, SeqCst);
                sender.send(()).unwrap();
                Requeue::OnChange
            }
        };
        let running = tokio::spawn(run(queue, 8, stop.clone(), turn));
        for _ in 0..3 {
            turns.recv().await.unwrap();
        }
        stop.cancel();
        running.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleeping_key_wakes_by_itself_or_when_woken() {
        let (sender, mut turns) = mpsc::unbounded_channel();
        let queue = Queue::default();
        queue.wake(1);
        let (stop, waker) = (CancellationToken::new(), queue.clone());
        let turn = move |_: u32| {
            let sender = sender.clone();
            async move {
                sender.send(tokio::time::Instant::now()).unwrap();
                Requeue::After(Duration::from_secs(60))
            }
        };
        let _running = tokio::spawn(run(queue, 1, stop, turn));
        let first = turns.recv().await.unwrap();
        let second = turns.recv().await.unwrap();
        assert!(second - first >= Duration::from_secs(60));
        waker.wake(1);
        let third = turns.recv().await.unwrap();
        assert!(third - second < Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn turns_and_the_wait_for_them_are_counted_by_kind() {
        let mut page = metrics::Metrics::new("test", "0");
        let kind = |key: &u32| if key.is_multiple_of(2) { "even" } else { "odd" };
        let queue = Queue::measured(page.turns(), kind);
        for key in [1, 2, 3] {
            queue.wake(key);
        }
        let (sender, mut turns) = mpsc::unbounded_channel();
        let turn = move |key: u32| {
            let sender = sender.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                sender.send(key).unwrap();
                Requeue::OnChange
            }
        };
        let stop = CancellationToken::new();
        let running = tokio::spawn(run(queue.clone(), 1, stop.clone(), turn));
        for _ in 0..3 {
            turns.recv().await.unwrap();
        }
        // The loop has noted the end of the third turn once a fourth one runs.
        queue.wake(4);
        turns.recv().await.unwrap();
        let text = page.text().unwrap();
        for line in [
            "bedplate_turn_duration_seconds_count{kind=\"odd\"} 2",
            "bedplate_turn_wait_seconds_count{kind=\"even\"} 2",
            "bedplate_turns_waiting{kind=\"odd\"} 0",
            "bedplate_turns_running{kind=\"odd\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "no line {line} in:\n{text}");
        }
        stop.cancel();
        running.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_with_a_planned_turn_does_not_rest() {
        let (sender, mut turns) = mpsc::unbounded_channel();
        let queue = Queue::default();
        queue.wake(1);
        queue.wake(2);
        let waker = queue.clone();
        let turn = move |key: u32| {
            let sender = sender.clone();
            async move {
                sender.send(key).unwrap();
                if key == 2 { Requeue::After(Duration::from_secs(60)) } else { Requeue::OnChange }
            }
        };
        let _running = tokio::spawn(run(queue, 1, CancellationToken::new(), turn));
        let mut seen = [turns.recv().await.unwrap(), turns.recv().await.unwrap()];
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
        for key in [2, 1, 3] {
            waker.wake_resting(key);
        }
        let mut seen = [turns.recv().await.unwrap(), turns.recv().await.unwrap()];
        seen.sort_unstable();
        assert_eq!(seen, [1, 3], "2 sleeps on");
        assert_eq!(turns.recv().await, Some(2), "until its time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_ends_the_loop() {
        let queue = Queue::default();
        queue.wake(1);
        let turn = |key: u32| async move {
            assert_ne!(key, 1);
            Requeue::OnChange
        };
        assert!(run(queue, 1, CancellationToken::new(), turn).await.is_err());
    }
}
