//! Many simulations, each in a process of its own, as many at a time as there are processors.

use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The result of one seed.
pub struct SeedResult {
    pub seed: u64,
    /// No rule was broken, and the simulation ended.
    pub is_good: bool,
    /// The trace, if a rule was broken, and a line with figures.
    pub output: String,
    pub took: Duration,
}

/// Simulates each seed with the program `sim`. The results are in the order of the seeds.
pub fn simulate_each(sim: &Path, seeds: Range<u64>) -> Vec<SeedResult> {
    simulate_while(sim, seeds, None, |_| true)
}

/// Simulates seeds with a mistake in the services, until one breaks a rule that it does not break without the mistake.
pub fn find_mistake(sim: &Path, seeds: Range<u64>, mutation: u8) -> Option<SeedResult> {
    let mut rest = seeds;
    loop {
        let results = simulate_while(sim, rest.clone(), Some(mutation), |it| it.is_good);
        let found = results.into_iter().find(|it| !it.is_good)?;
        if simulate_one(sim, found.seed, None).is_good {
            return Some(found);
        }
        rest.start = found.seed + 1;
    }
}

/// Simulates seeds as long as `goes_on` holds for their results.
fn simulate_while(
    sim: &Path,
    seeds: Range<u64>,
    mutation: Option<u8>,
    goes_on: fn(&SeedResult) -> bool,
) -> Vec<SeedResult> {
    let (next, results) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let at_once = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let result = simulate_one(sim, seed, mutation);
                    if !goes_on(&result) {
                        next.store(seeds.end, Ordering::Relaxed);
                    }
                    results.lock().expect("no thread panics").push(result);
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panics");
    results.sort_by_key(|it: &SeedResult| it.seed);
    results
}

fn simulate_one(sim: &Path, seed: u64, mutation: Option<u8>) -> SeedResult {
    let begun = Instant::now();
    let mut command = Command::new(sim);
    command.args(["--quiet", "--seed", &seed.to_string()]).env_remove("RUST_LOG");
    if let Some(mutation) = mutation {
        command.args(["--mutation", &mutation.to_string()]);
    }
    let ended = command.output();
    let (is_good, output) = match ended {
        Ok(ended) => {
            let text = [ended.stdout, ended.stderr].concat();
            (ended.status.success(), String::from_utf8_lossy(&text).into_owned())
        }
        Err(error) => (false, format!("seed {seed}: cannot start {}: {error}", sim.display())),
    };
    SeedResult { seed, is_good, output, took: begun.elapsed() }
}

/// How many simulations broke a rule, and how long they took.
pub fn figures(results: &[SeedResult]) -> String {
    let bad: Vec<u64> = results.iter().filter(|it| !it.is_good).map(|it| it.seed).collect();
    let took: Duration = results.iter().map(|it| it.took).sum();
    let longest =
        results.iter().max_by_key(|it| it.took).map(|it| (it.seed, it.took.as_secs_f64()));
    format!(
        "{} seeds, {} of which broke a rule: {bad:?}; {:.0} s in total, the longest {longest:.1?}",
        results.len(),
        bad.len(),
        took.as_secs_f64()
    )
}
