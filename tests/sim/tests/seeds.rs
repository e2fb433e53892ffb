//! One seed gives one trace, and each deliberate mistake in the services is noticed.

use std::path::Path;
use std::process::Command;

use reconcile::Mutation;

const SIM: &str = env!("CARGO_BIN_EXE_sim");

/// The trace of a seed, and the line with its figures and the checksum of all choices.
fn simulated(seed: &str, logs: Option<&str>) -> [String; 2] {
    let mut command = Command::new(SIM);
    command.args(["--seed", seed]).env_remove("RUST_LOG");
    command.envs(logs.map(|level| ("RUST_LOG", level)));
    let ended = command.output().expect("the simulation runs");
    [ended.stderr, ended.stdout].map(|text| String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_seed_gives_the_same_trace_each_time() {
    for seed in ["1", "2", "3"] {
        assert_eq!(simulated(seed, None), simulated(seed, None));
    }
}

#[test]
fn logs_change_nothing() {
    let [[_, without], [_, with]] = [None, Some("info")].map(|logs| simulated("1", logs));
    assert_eq!(without, with);
}

/// How many seeds a mistake may survive.
const TRIES: u64 = 60;

fn is_noticed(mutation: Mutation) {
    let found = sim::find_mistake(Path::new(SIM), 1..TRIES + 1, mutation as u8);
    assert!(found.is_some(), "{TRIES} seeds notice nothing of {mutation:?}");
}

macro_rules! mistakes {
    ($($name:ident: $mutation:ident)*) => {
        $(
            #[test]
            fn $name() {
                is_noticed(Mutation::$mutation);
            }
        )*

        #[test]
        fn every_mistake_has_a_test() {
            assert_eq!(Mutation::ALL, [$(Mutation::$mutation),*]);
        }
    };
}

mistakes! {
    an_effect_after_the_lease_is_noticed: NoFence
    an_action_before_its_record_is_noticed: ActBeforeRecord
    a_resource_with_two_conductors_is_noticed: NoShares
    an_object_that_is_not_looked_for_is_noticed: ForgetUnanswered
    a_request_that_nobody_looks_for_is_noticed: NoCatchUp
    a_drain_that_costs_a_quorum_is_noticed: NoQuorumCheck
    a_machine_that_is_off_before_its_host_is_drained_is_noticed: NoDrain
}
