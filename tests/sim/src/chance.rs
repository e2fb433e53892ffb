//! Random choices of the simulation, which its seed determines.

use std::time::Duration;

/// A number from `least` to `most`.
pub(crate) fn between(least: u64, most: u64) -> u64 {
    least + simulated_kernel::choose(most - least + 1)
}

/// True `of_100` times of 100.
pub(crate) fn happens(of_100: u64) -> bool {
    simulated_kernel::choose(100) < of_100
}

/// A duration up to this many milliseconds.
pub(crate) fn millis(least: u64, most: u64) -> Duration {
    Duration::from_millis(between(least, most))
}

/// One of these.
pub(crate) fn one_of<T>(all: &[T]) -> &T {
    &all[simulated_kernel::choose(all.len() as u64) as usize]
}
