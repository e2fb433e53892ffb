//! Runs the tests that reach a mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::compile::TestProgram;
use crate::list::Number;

/// The shortest time a test gets before it counts as endless.
const SHORTEST_LIMIT: Duration = Duration::from_secs(20);
/// The time of all tests of one mutant, as they take without mutants. Others would need hours for a mutant that hundreds of tests reach.
const LONGEST: Duration = Duration::from_secs(120);
/// The address space of a test, because a mutant may allocate without end. In KiB.
const MEMORY: &str = "8000000";

/// A test that passes without mutants.
pub(crate) struct Test<'a> {
    program: &'a TestProgram,
    name: String,
    took: Duration,
    reaches: BTreeSet<Number>,
}

/// The end of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A test failed.
    Caught,
    /// A test did not end.
    Endless,
    /// Tests reach the mutant and pass.
    Survived,
    /// No test reaches the mutant.
    Unreached,
    /// The mutant does not compile.
    Refused,
    /// The weaver cannot make the mutant conditional.
    LeftOut,
}

impl Outcome {
    /// Returns whether no test noticed the mutant.
    pub(crate) fn survived(self) -> bool {
        matches!(self, Outcome::Survived | Outcome::Unreached)
    }
}

/// Finds the tests of `programs` that pass, their time, and the mutants that each of them reaches.
pub(crate) fn trace<'a>(
    programs: &'a [TestProgram],
    scratch: &Path,
    at_once: usize,
) -> Result<Vec<Test<'a>>> {
    let mut names = Vec::new();
    for program in programs {
        let listed = Command::new(&program.path)
            .args(["--list", "--format", "terse"])
            .current_dir(&program.folder)
            .stderr(Stdio::null())
            .output()
            .with_context(|| program.path.display().to_string())?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        names.extend(
            listed
                .lines()
                .filter_map(|line| line.strip_suffix(": test"))
                .map(|name| (program, name.to_owned())),
        );
    }
    ensure!(!names.is_empty(), "no test was found");
    let traced = parallel(at_once, &names, |index, (program, name)| {
        let file = scratch.join(format!("trace-{index}"));
        let begun = Instant::now();
        let variable = ("MUTANT_TRACE".to_owned(), file.display().to_string());
        let passed = run_test(program, name, &variable, Duration::from_secs(300), scratch)?;
        let took = begun.elapsed();
        let reached = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        let reaches = reached.lines().filter_map(|line| line.parse().ok()).collect();
        Ok((passed == Some(true)).then(|| Test { program, name: name.clone(), took, reaches }))
    })?;
    for (test, (program, name)) in traced.iter().zip(&names) {
        if test.is_none() {
            eprintln!("not used, it fails without mutants: {} {name}", program.package);
        }
    }
    Ok(traced.into_iter().flatten().collect())
}

/// Activates each mutant of `wanted` in turn, and runs the `tests` that reach it, the quickest first, until one fails.
pub(crate) fn run(
    wanted: &[Number],
    tests: &[Test<'_>],
    scratch: &Path,
    at_once: usize,
) -> Result<BTreeMap<Number, Outcome>> {
    let outcomes = parallel(at_once, wanted, |_, number| {
        let mut reaching: Vec<_> =
            tests.iter().filter(|test| test.reaches.contains(number)).collect();
        reaching.sort_by_key(|test| test.took);
        let mut outcome = Outcome::Unreached;
        let mut spent = Duration::ZERO;
        for test in reaching {
            spent += test.took;
            if outcome == Outcome::Survived && spent > LONGEST {
                break;
            }
            outcome = Outcome::Survived;
            let limit = SHORTEST_LIMIT.max(test.took * 5);
            let variable = ("MUTANT".to_owned(), number.to_string());
            match run_test(test.program, &test.name, &variable, limit, scratch)? {
                Some(true) => {}
                Some(false) => outcome = Outcome::Caught,
                None => outcome = Outcome::Endless,
            }
            if outcome != Outcome::Survived {
                break;
            }
        }
        Ok(outcome)
    })?;
    Ok(wanted.iter().copied().zip(outcomes).collect())
}

/// Runs one test with a variable. Returns whether it passed, or nothing if it did not end within `limit`.
fn run_test(
    program: &TestProgram,
    name: &str,
    variable: &(String, String),
    limit: Duration,
    scratch: &Path,
) -> Result<Option<bool>> {
    let mut child = Command::new("prlimit")
        .arg(format!("--as={MEMORY}000"))
        .arg(&program.path)
        .args(["--exact", name, "--test-threads=1"])
        .current_dir(&program.folder)
        .env(&variable.0, &variable.1)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("TMPDIR", scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot run prlimit")?;
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if begun.elapsed() > limit {
            // The test may have started daemons.
            kill_process_group(Pid::from_child(&child), Signal::KILL)?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Does `work` for each item on `at_once` threads, and returns the results in the order of the items.
fn parallel<T: Sync, R: Send>(
    at_once: usize,
    items: &[T],
    work: impl Fn(usize, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(index, item);
                    results.lock().expect("no worker panics").insert(index, result);
                }
            });
        }
    });
    results.into_inner().expect("no worker panics").into_values().collect()
}
