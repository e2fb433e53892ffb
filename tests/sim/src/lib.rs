#![doc = include_str!("../README.md")]

mod chance;
mod checks;
mod clusters;
mod computer;
mod faults;
mod hosts;
mod hypervisors;
mod logs;
mod machines;
mod quorum;
mod replica;
mod seeds;
mod site;
mod trace;
mod vms;
mod weather;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reconcile::Mutation;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use simulated_kernel::Summary;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::chance::between;
use crate::site::{Site, Size};
use crate::trace::Trace;

pub use seeds::{SeedResult, figures, find_mistake, simulate_each};

/// A simulation.
pub struct Options {
    pub seed: u64,
    /// The number of a deliberate mistake.
    pub mutation: Option<u8>,
    /// Whether the trace is printed to standard error as it happens.
    pub prints: bool,
}

/// The result of a simulation.
pub struct Outcome {
    pub seed: u64,
    pub trace: String,
    /// The rules that were broken.
    pub violations: Vec<String>,
    pub summary: Summary,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { digest, switches, nanos } = self.summary;
        let (seed, seconds, broken) = (self.seed, nanos / 1_000_000_000, self.violations.len());
        write!(
            f,
            "seed {seed}: {broken} rules broken in {seconds} s, {switches} switches, {digest:016x}"
        )
    }
}

/// Simulates a site. A process can do this once, and its other threads must have ended before; they are part of the simulation from then on.
pub fn simulate(options: &Options) -> Outcome {
    let trace = Trace::default();
    if options.prints {
        trace.print();
    }
    let made =
        options.mutation.and_then(|it| Mutation::ALL.into_iter().find(|known| *known as u8 == it));
    if let Some(made) = made {
        trace.note(format!("the services make the mistake {made:?}"));
        made.make();
    }
    logs::start();
    stay_on_this_processor();
    simulated_kernel::begin(options.seed);
    let _ = TRACE.set(trace.clone());
    simulated_kernel::end_after(MOST_SWITCHES, never_ends);
    computer::runtime().block_on(async {
        tokio::select! {
            () = whole_site(&trace) => {}
            () = trace.is_broken() => {}
        }
    });
    let summary = simulated_kernel::end();
    Outcome { seed: options.seed, trace: trace.text(), violations: trace.violations(), summary }
}

/// A simulation has a tenth of these switches.
const MOST_SWITCHES: u64 = 400_000;

static TRACE: OnceLock<Trace> = OnceLock::new();

/// Ends the process, because the services do something over and over again.
fn never_ends() {
    let text = TRACE.get().map(Trace::text).unwrap_or_default();
    eprintln!("{text}\nVIOLATION: the simulation does not end");
    std::process::exit(2);
}

/// One thread runs at a time. On one processor, the next one begins at once.
fn stay_on_this_processor() {
    let mut processors = CpuSet::new();
    processors.set(sched_getcpu());
    // It is slower otherwise.
    let _ = sched_setaffinity(None, &processors);
}

async fn whole_site(trace: &Trace) {
    let size = Size::choose();
    trace.note(format!("{size:?}"));
    let site = Arc::new(Site::start(size, trace).await);
    tokio::spawn(watch(site.clone()));
    let hypervisors = match size.are_hypervisors {
        true => Some(Arc::new(hypervisors::Story::begin(&site).await)),
        false => None,
    };
    let mut stories = JoinSet::new();
    for machine in site.machines.iter().filter(|_| hypervisors.is_none()) {
        let (site, machine) = (site.clone(), machine.clone());
        stories.spawn(async move {
            let story = machines::Story::begin(&site, &machine).await;
            story.run().await;
            story
        });
    }
    let hosts = tokio::spawn({
        let hypervisors = hypervisors.clone();
        async move {
            if let Some(story) = hypervisors {
                story.run().await;
            }
        }
    });
    let clusters = tokio::spawn({
        let site = site.clone();
        async move {
            let story = clusters::Story::begin(&site).await;
            story.run().await;
            story
        }
    });
    let vms = tokio::spawn({
        let site = site.clone();
        async move {
            let story = vms::Story::begin(&site);
            story.run().await;
            story
        }
    });
    faults::strike(&site, Duration::from_secs(between(60, 300))).await;
    let mut ends = JoinSet::new();
    for story in stories.join_all().await {
        ends.spawn(async move { story.finish().await });
    }
    hosts.await.expect("no story panics");
    if let Some(story) = hypervisors.clone() {
        ends.spawn(async move { story.finish().await });
    }
    let clusters = clusters.await.expect("no story panics");
    ends.spawn(async move { clusters.finish().await });
    let vms = vms.await.expect("no story panics");
    ends.spawn(async move { vms.finish().await });
    ends.join_all().await;
    if let Some(story) = hypervisors {
        story.leave().await;
    }
    checks::nothing_is_left(&site).await;
    let requests = simulated_kernel::take_requests();
    let changes: Vec<_> = requests.into_iter().filter(checks::changes_a_machine).collect();
    checks::leases(&site, &changes);
    checks::leases_by_ipmi(&site, &simulated_kernel::take_datagrams());
    checks::one_at_a_time(&site, &changes);
    checks::steps(&site);
}

/// Looks at the servers of the cloud until the simulation ends.
async fn watch(site: Arc<Site>) {
    loop {
        site.watch.look(&site.off());
        sleep(LOOK_EVERY).await;
    }
}

/// A migration and a start of a machine take longer.
const LOOK_EVERY: Duration = Duration::from_secs(1);
