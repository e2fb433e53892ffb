//! A process of either service, on a simulated computer of its own. It can be killed at any moment, and at each of its effects and writes.

use std::future::pending;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use api_client::Service;
use database::{Point, Side, Tripwire};
use lab::Api;
use simulated_kernel::Host;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::computer::runtime;
use crate::trace::Trace;

/// A process of a service.
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) service: Service,
    pub(crate) host: Host,
    pub(crate) api: Api,
    config: PathBuf,
    trace: Trace,
    points: Arc<Points>,
    life: Mutex<Option<Life>>,
}

/// From a start of a process to its end.
struct Life {
    killed: CancellationToken,
    stopped: CancellationToken,
    thread: JoinHandle<()>,
}

/// A request for a lease.
#[derive(Clone, Copy, Debug)]
struct Renewal {
    is_new: bool,
    asked_at: Duration,
    had_at: Duration,
}

/// A death or a pause of a process, and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The points that are passed before.
    pub(crate) after: u64,
    /// Whether only effects outside of the database count as points.
    pub(crate) only_effects: bool,
    pub(crate) what: AtPoint,
}

/// A death or a pause at one of the effects or writes of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtPoint {
    Dies,
    Pauses(Duration),
}

/// The effects and writes of a process.
struct Points {
    name: String,
    host: Host,
    trace: Trace,
    state: Mutex<PointsState>,
}

#[derive(Default)]
struct PointsState {
    /// A death or a pause after so many further points.
    plan: Option<Plan>,
    /// The process died at a point, so none of its later effects begins.
    killed: Option<CancellationToken>,
    is_dead: bool,
    /// When the process asked for a new lease or for more of its lease, and when it had the answer.
    renewals: Vec<Renewal>,
    asked_at: Duration,
}

impl Replica {
    /// A process that is not started.
    pub(crate) fn new(
        name: &str,
        service: Service,
        config: PathBuf,
        url: Url,
        trace: &Trace,
    ) -> Replica {
        let host = Host::add();
        let (own, log) = (name.to_owned(), trace.clone());
        let points = Points { name: own, host, trace: log, state: Mutex::default() };
        Replica {
            name: name.to_owned(),
            service,
            host,
            api: Api::new(service, url),
            config,
            trace: trace.clone(),
            points: Arc::new(points),
            life: Mutex::default(),
        }
    }

    /// Starts the process, unless it runs.
    pub(crate) fn start(&self) {
        let mut life = locked(&self.life);
        if life.is_some() {
            return;
        }
        self.trace.note(format!("{} starts", self.name));
        let (killed, stopped) = (CancellationToken::new(), CancellationToken::new());
        self.points.begin(&killed);
        let (host, config, service) = (self.host, self.config.clone(), self.service);
        let (tripwire, trace, name) =
            (self.points.tripwire(), self.trace.clone(), self.name.clone());
        let (end, stop) = (killed.clone(), stopped.clone());
        let thread = thread::spawn(move || {
            host.enter();
            loop {
                let runtime = runtime();
                let lived = runtime.block_on(async {
                    tokio::select! {
                        biased;
                        () = end.cancelled() => Ok(()),
                        lived = live(service, &config, tripwire.clone(), stop.clone()) => lived,
                    }
                });
                runtime.shutdown_background();
                let Err(error) = lived else { return };
                trace.note(format!("{name} ends: {error:#}"));
                // systemd starts it again, unless it was stopped.
                if stop.is_cancelled() {
                    return;
                }
                thread::sleep(RESTART_PAUSE);
            }
        });
        *life = Some(Life { killed, stopped, thread });
    }

    /// Kills the process at once, as SIGKILL does.
    pub(crate) fn kill(&self) {
        let Some(life) = locked(&self.life).take() else { return };
        self.trace.note(format!("{} is killed", self.name));
        self.host.resume();
        self.points.die();
        life.killed.cancel();
        life.thread.join().expect("no service panics");
    }

    /// Stops the process as SIGTERM does.
    pub(crate) fn stop(&self) {
        let Some(life) = locked(&self.life).take() else { return };
        self.trace.note(format!("{} is stopped", self.name));
        self.host.resume();
        life.stopped.cancel();
        life.thread.join().expect("no service panics");
    }

    /// Plans what happens at one of the next effects or writes of the process.
    pub(crate) fn plan(&self, plan: Option<Plan>) {
        self.points.state().plan = plan;
    }

    pub(crate) fn is_running(&self) -> bool {
        locked(&self.life).as_ref().is_some_and(|it| !it.killed.is_cancelled())
    }

    /// Returns when the lease of this process lasted at most: the times from the begin to the end of each, in their order.
    pub(crate) fn leases(&self) -> Vec<(Duration, Duration)> {
        self.points.leases()
    }
}

/// Runs a service until it is stopped.
async fn live(
    service: Service,
    config: &std::path::Path,
    tripwire: Tripwire,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    match service {
        Service::Baremetald => {
            let config = baremetal::config::load(config)?;
            baremetal::Service::start_with(config, tripwire).await?.run(stop).await
        }
        Service::Clusterd => {
            let config = daemon::load::<cluster::Config>(config)?;
            cluster::Service::start_with(config, tripwire).await?.run(stop).await
        }
    }
}

/// The pause before a process that ended by itself is started again, as in `deploy/systemd`.
const RESTART_PAUSE: Duration = Duration::from_secs(2);

/// How long a lease lasts in the database.
const LEASE: Duration = Duration::from_secs(6);

impl Points {
    fn begin(&self, killed: &CancellationToken) {
        let mut state = self.state();
        state.plan = None;
        state.is_dead = false;
        state.killed = Some(killed.clone());
    }

    fn die(&self) {
        self.state().is_dead = true;
    }

    fn tripwire(self: &Arc<Points>) -> Tripwire {
        let points = self.clone();
        Tripwire::new(move |point| {
            let reached = points.reach(point);
            let host = points.host;
            Box::pin(async move {
                match reached {
                    None => {}
                    Some(AtPoint::Dies) => pending::<()>().await,
                    Some(AtPoint::Pauses(pause)) => {
                        host.pause(pause);
                        yield_now().await;
                    }
                }
            })
        })
    }

    /// Returns what happens at this point.
    fn reach(&self, point: Point) -> Option<AtPoint> {
        let mut state = self.state();
        if state.is_dead {
            return Some(AtPoint::Dies);
        }
        let now = simulated_kernel::elapsed();
        let is_new = point.effect.contains("::Conductors::register::");
        if is_new || point.effect.contains("::Conductors::renew::") {
            match point.side {
                Side::Before => state.asked_at = now,
                Side::After => {
                    let asked_at = state.asked_at;
                    state.renewals.push(Renewal { is_new, asked_at, had_at: now });
                }
            }
            return None;
        }
        let mut plan = state.plan?;
        let is_write = point.effect.contains("{{");
        if is_write && plan.only_effects {
            return None;
        }
        if plan.after > 0 {
            plan.after -= 1;
            state.plan = Some(plan);
            return None;
        }
        let side = if point.side == Side::Before { "before" } else { "after" };
        let (name, effect, what) = (&self.name, short(point.effect), plan.what);
        self.trace.note(format!("{name}: {what:?} {side} {effect}"));
        state.plan = None;
        if let AtPoint::Dies = what {
            state.is_dead = true;
            state.killed.iter().for_each(CancellationToken::cancel);
        }
        Some(what)
    }

    fn leases(&self) -> Vec<(Duration, Duration)> {
        let mut leases: Vec<(Duration, Duration)> = Vec::new();
        for Renewal { is_new, asked_at, had_at } in &self.state().renewals {
            match leases.last_mut() {
                _ if *is_new => leases.push((*asked_at, *had_at + LEASE)),
                Some((_, until)) if *asked_at <= *until => *until = *had_at + LEASE,
                // The lease had passed.
                Some(_) | None => {}
            }
        }
        leases
    }

    fn state(&self) -> MutexGuard<'_, PointsState> {
        locked(&self.state)
    }
}

/// Shortens the type name of a write to its function, and keeps the name of an effect.
fn short(effect: &str) -> &str {
    let names = effect.split("::").filter(|part| !part.starts_with("{{"));
    if effect.contains("{{") { names.last().unwrap_or(effect) } else { effect }
}

fn locked<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
