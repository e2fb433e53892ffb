#![doc = include_str!("../README.md")]
#![allow(clippy::print_stdout)]

mod compile;
mod explained;
mod list;
mod run;
#[cfg(test)]
mod switch;
mod tree;
mod weave;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;

use crate::compile::{Build, TestProgram, test_programs};
use crate::explained::{Entry, Explanations, Tried, entry};
use crate::list::{Mutant, Number, list};
use crate::run::{Outcome, run, trace};
use crate::tree::{Refusals, Tree};

/// Changes decision code in one place at a time, and checks that a test fails.
#[derive(Parser)]
struct Options {
    /// The program cargo-mutants, which lists the mutants
    #[arg(long)]
    cargo_mutants: PathBuf,
    /// Tests that run side by side
    #[arg(long, short)]
    jobs: Option<usize>,
    /// Crates whose tests try the mutants that survive the tests of their own crate
    #[arg(long)]
    also: Vec<String>,
    /// Runs nothing, and compares the outcomes of the last run with explained.toml
    #[arg(long)]
    check: bool,
    /// Options of cargo-mutants that select mutants, for example `-p lease` or `-p baremetal-core --re src/plan.rs`
    #[arg(last = true)]
    select: Vec<String>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let origin = env::current_dir()?;
    let work = origin.join("target/mutants");
    if options.check {
        return check(&options.cargo_mutants, &origin);
    }
    let jobs =
        options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let mutants = list(&options.cargo_mutants, &origin, &options.select)?;
    ensure!(!mutants.is_empty(), "cargo-mutants lists no mutant");
    let packages: BTreeSet<String> = mutants.iter().map(|one| one.package.clone()).collect();
    println!("{} mutants in {} crates", mutants.len(), packages.len());

    let tested: BTreeSet<String> = packages.iter().chain(&options.also).cloned().collect();
    let mut tree = Tree::new(&origin, &work.join("tree"));
    let build = work.join("build");
    let mut refused = Refusals::default();
    let (not_woven, programs) = loop {
        let not_woven = tree.weave(&mutants, &refused)?;
        match test_programs(&tree, &tested, &build)? {
            Build::Ready(programs) => break (not_woven, programs),
            Build::Refused(more) => {
                println!("the compiler refuses {} mutants more", more.mutants.len());
                if !more.constant.is_empty() {
                    println!("constants call {} functions", more.constant.len());
                }
                refused.extend(more);
            }
        }
    };

    let scratch = work.join("scratch");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch)?;
    let mut outcomes: BTreeMap<Number, Outcome> = BTreeMap::new();
    let all_refused = refused.mutants.iter().chain(&not_woven.refused);
    outcomes.extend(all_refused.map(|number| (*number, Outcome::Refused)));
    outcomes.extend(not_woven.left_out.iter().map(|number| (*number, Outcome::LeftOut)));
    // Crates with few test programs come first, because they are the quickest.
    let programs_of = |package: &str| {
        programs.iter().filter(|program| program.package == package).cloned().collect::<Vec<_>>()
    };
    let mut in_order: Vec<&String> = packages.iter().collect();
    in_order.sort_by_key(|package| programs_of(package).len());
    for package in in_order {
        let programs = programs_of(package);
        let tests = trace(&programs, &scratch, jobs)?;
        let wanted: Vec<Number> = (0..mutants.len())
            .filter(|n| mutants[*n].package == *package && !outcomes.contains_key(n))
            .collect();
        println!("{package}: {} mutants, {} tests", wanted.len(), tests.len());
        outcomes.extend(run(&wanted, &tests, &scratch, jobs)?);
        report(&mutants, &outcomes, &work.join("outcomes"))?;
    }
    let programs: Vec<TestProgram> = options.also.iter().flat_map(|it| programs_of(it)).collect();
    if !programs.is_empty() {
        let tests = trace(&programs, &scratch, jobs)?;
        let wanted: Vec<Number> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.survived())
            .map(|(number, _)| *number)
            .collect();
        println!("{}: {} mutants, {} tests", options.also.join(", "), wanted.len(), tests.len());
        for (number, outcome) in run(&wanted, &tests, &scratch, jobs)? {
            // A mutant that only its own crate reaches has survived there.
            if outcome != Outcome::Unreached {
                outcomes.insert(number, outcome);
            }
        }
    }
    fs::remove_dir_all(&scratch)?;
    report(&mutants, &outcomes, &work.join("outcomes"))
}

/// Compares the outcomes of the last run in the workspace at `root` with `explained.toml`. Other outcomes come from cargo-mutants, which
/// compiles the mutants that were left out.
fn check(cargo_mutants: &Path, root: &Path) -> Result<()> {
    let mutants = list(cargo_mutants, root, &[])?;
    let listed = mutants.iter().map(|mutant| entry(&mutant.name, root)).collect::<Result<_>>()?;
    let read = |folder: &str, files: &[&str]| -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for file in files {
            let path = root.join("target").join(folder).join(file);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            for name in text.lines() {
                entries.push(entry(name, root)?);
            }
        }
        Ok(entries)
    };
    let mut survived = read("mutants/outcomes", &["survived", "unreached"])?;
    let mut caught = read("mutants/outcomes", &["caught", "endless"])?;
    // The folder exists if mutants were compiled alone.
    if root.join("target/mutants.out").exists() {
        survived.extend(read("mutants.out", &["missed.txt"])?);
        caught.extend(read("mutants.out", &["caught.txt", "timeout.txt"])?);
    }
    let tried =
        Tried { survived: survived.into_iter().collect(), caught: caught.into_iter().collect() };
    let explanations = Explanations::load(&root.join("tests/mutants/explained.toml"))?;
    let differences = explanations.differences(&listed, &tried);
    for difference in &differences {
        println!("{difference}");
    }
    let found = differences.len();
    ensure!(found == 0, "{found} mutants: add a test, or correct tests/mutants/explained.toml");
    Ok(())
}

/// Prints a row for each crate, and writes the names of the mutants of each outcome into `folder`.
fn report(mutants: &[Mutant], outcomes: &BTreeMap<Number, Outcome>, folder: &Path) -> Result<()> {
    let columns = [
        ("caught", Outcome::Caught),
        ("endless", Outcome::Endless),
        ("survived", Outcome::Survived),
        ("unreached", Outcome::Unreached),
        ("refused", Outcome::Refused),
        ("left-out", Outcome::LeftOut),
    ];
    fs::create_dir_all(folder)?;
    let mut table: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (title, outcome) in &columns {
        let mut names = String::new();
        for (number, _) in outcomes.iter().filter(|(_, one)| *one == outcome) {
            let mutant = &mutants[*number];
            writeln!(names, "{}", mutant.name)?;
            *table.entry(&mutant.package).or_default().entry(title).or_default() += 1;
        }
        fs::write(folder.join(title), &names).with_context(|| folder.display().to_string())?;
    }
    println!("{:<22}{}", "crate", columns.map(|(title, _)| format!("{title:>10}")).concat());
    for (package, row) in &table {
        let cells = columns.map(|(title, _)| format!("{:>10}", row.get(title).unwrap_or(&0)));
        println!("{package:<22}{}", cells.concat());
    }
    Ok(())
}
