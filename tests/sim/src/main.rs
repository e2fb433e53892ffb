//! `sim`: simulates a whole site under a seed, or under many.

use std::process::ExitCode;

use clap::Parser;
use sim::Options;

/// Simulates a whole site under a seed.
#[derive(Parser)]
#[command(name = "sim")]
struct Arguments {
    /// The seed to simulate. The same seed gives the same trace.
    #[arg(long, conflicts_with = "seeds", required_unless_present = "seeds")]
    seed: Option<u64>,
    /// Simulates this many seeds, from `--from` on, each in a process of its own.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first of several seeds.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Makes a deliberate mistake in the services; a number from 1 on, see `reconcile::Mutation`.
    #[arg(long)]
    mutation: Option<u8>,
    /// Prints the trace only if a rule was broken.
    #[arg(long)]
    quiet: bool,
}

fn main() -> ExitCode {
    let Arguments { seed, seeds, from, mutation, quiet } = Arguments::parse();
    match (seed, seeds) {
        (Some(seed), _) => {
            let outcome = sim::simulate(&Options { seed, mutation, prints: !quiet });
            if quiet && !outcome.violations.is_empty() {
                print(&outcome.trace);
            }
            print(&outcome.to_string());
            // The threads of the simulation go on; the process ends them.
            std::process::exit(i32::from(!outcome.violations.is_empty()));
        }
        (None, Some(seeds)) => {
            let own = std::env::current_exe().expect("a program knows its path");
            let range = from..from + seeds;
            let results = match mutation {
                Some(mutation) => sim::find_mistake(&own, range, mutation).into_iter().collect(),
                None => sim::simulate_each(&own, range),
            };
            for result in results.iter().filter(|it| !it.is_good) {
                print(&result.output);
            }
            print(&sim::figures(&results));
            ExitCode::from(u8::from(results.iter().any(|it| !it.is_good)))
        }
        (None, None) => ExitCode::FAILURE,
    }
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
fn print(text: &str) {
    println!("{text}");
}
