//! Takes emulated machines from powered off to installed: enrolled as racks, inspected, cleaned, deployed.

mod bring_up;
mod emulated;
mod fast;
mod meanwhile;
mod power_age;
mod real;

pub(crate) use self::emulated::{MachinePace, MachineSet, emulate};
use crate::report::Report;
use crate::sizes::Sizes;

/// Enrolls machines and installs them, at the pace that the command line names.
pub(crate) async fn measure(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    match sizes.pace {
        MachinePace::Fast => fast::measure(sizes, report).await,
        MachinePace::Real | MachinePace::Trial => real::measure(sizes, report).await,
    }
}
