//! The scheduler: of all threads of the simulation one runs at a time. A thread runs until it waits; then the seed chooses the next of those
//! that can go on. The virtual time passes only when none can.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::cuts::cut_due;
use crate::handoff::{is_readable, wait_for_go, wake};
use crate::kernel::{self, Kernel, Thread, Wait, with};
use crate::virtual_time;

/// The result of a simulation. Two runs with one seed have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// A checksum of every choice of a thread with its time.
    pub digest: u64,
    /// How often a thread was chosen.
    pub switches: u64,
    /// The virtual time in nanoseconds.
    pub nanos: u64,
}

/// Ends the simulation for the calling thread.
pub(crate) fn end() -> Summary {
    let nanos = virtual_time::now();
    let summary = with(|it| Summary { digest: it.digest, switches: it.switches, nanos });
    kernel::end();
    summary.unwrap_or(Summary { digest: 0, switches: 0, nanos })
}

/// Makes the calling, new thread the one with this number, and waits until it may run.
pub(crate) fn arrive(number: usize, go: &'static AtomicU32) {
    kernel::become_thread(number);
    wait_for_go(go);
}

/// Ends the calling thread, so that another one runs.
pub(crate) fn leave() {
    let own = kernel::own();
    let next = with(|it| {
        it.threads[own].wait = Wait::Over;
        choose_thread(it)
    });
    kernel::become_thread(usize::MAX);
    if let Some(next) = next {
        wake(next);
    }
}

/// Waits. Other threads run meanwhile.
pub(crate) fn wait(for_what: Wait) {
    let own = kernel::own();
    let chosen = with(|it| {
        it.threads[own].wait = for_what;
        (choose_thread(it), it.threads[own].go)
    });
    if let Some((next, go)) = chosen
        && !std::ptr::eq(next, go)
    {
        wake(next);
        wait_for_go(go);
    }
}

/// Chooses the thread that runs next, and lets the time pass until there is one.
fn choose_thread(kernel: &mut Kernel) -> &'static AtomicU32 {
    loop {
        let now = virtual_time::now();
        cut_due(kernel, now);
        let ready = ready(kernel, now);
        if !ready.is_empty() {
            let chosen = ready[kernel.schedule.below(ready.len() as u64) as usize];
            kernel.threads[chosen].wait = Wait::Nothing;
            note(kernel, chosen as u64, now);
            return kernel.threads[chosen].go;
        }
        match next_time(kernel, now) {
            Some(next) => virtual_time::set(next),
            None => stuck(kernel),
        }
    }
}

fn note(kernel: &mut Kernel, chosen: u64, now: u64) {
    kernel.switches += 1;
    if kernel.switches == kernel.limit.0 {
        kernel.limit.1();
    }
    for number in [chosen, now] {
        kernel.digest = (kernel.digest ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
    if let Some(log) = trace() {
        log(kernel.switches, chosen, now, kernel.digest);
    }
}

/// The threads that can run.
fn ready(kernel: &Kernel, now: u64) -> Vec<usize> {
    let runs = |(number, thread): (usize, &Thread)| {
        let is_paused = kernel.hosts[thread.host.0].paused_until > now;
        (!is_paused && is_ready(kernel, thread, now)).then_some(number)
    };
    kernel.threads.iter().enumerate().filter_map(runs).collect()
}

fn is_ready(kernel: &Kernel, thread: &Thread, now: u64) -> bool {
    match thread.wait {
        Wait::Nothing => true,
        Wait::Events { poll, until } => until <= now || is_readable(poll),
        Wait::Address { until, .. } | Wait::Until(until) => until <= now,
        Wait::End(other) => kernel.threads[other].wait == Wait::Over,
        Wait::Over => false,
    }
}

/// The next time at which a thread can run that cannot run now.
fn next_time(kernel: &Kernel, now: u64) -> Option<u64> {
    let due = |thread: &Thread| {
        let until = match thread.wait {
            Wait::Events { until, .. } | Wait::Address { until, .. } | Wait::Until(until) => until,
            Wait::Nothing => 0,
            Wait::End(_) | Wait::Over => u64::MAX,
        };
        until.max(kernel.hosts[thread.host.0].paused_until)
    };
    let ends = kernel.hosts.iter().map(|host| host.paused_until);
    let cuts = kernel.cuts.keys().map(|(at, _)| *at);
    let times = kernel.threads.iter().map(due).chain(ends).chain(cuts);
    times.filter(|at| *at > now && *at < u64::MAX).min()
}

/// All threads wait for each other.
fn stuck(kernel: &Kernel) -> ! {
    let waits: Vec<_> = kernel.threads.iter().map(|it| (it.host, it.wait)).collect();
    eprintln!("all threads of the simulation wait for each other: {waits:?}");
    std::process::abort();
}

/// Prints each choice of a thread if `BEDPLATE_SIM_SWITCHES` is set, to find where two runs begin to differ.
fn trace() -> Option<fn(u64, u64, u64, u64)> {
    static WANTED: AtomicU32 = AtomicU32::new(0);
    match WANTED.load(Ordering::Relaxed) {
        0 => {
            let wanted = std::env::var_os("BEDPLATE_SIM_SWITCHES").is_some();
            WANTED.store(1 + u32::from(wanted), Ordering::Relaxed);
            None
        }
        1 => None,
        _ => Some(|switches, chosen, now, digest| {
            eprintln!("{switches} thread {chosen} at {now} {digest:016x}");
        }),
    }
}
