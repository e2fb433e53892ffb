//! Files: data are safe after a time that the simulation chooses, and the real disk is not waited for.

use libc::c_int;

use crate::kernel::{self, Wait};
use crate::real::real;
use crate::scheduler;
use crate::virtual_time;

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fsync(file: c_int) -> c_int {
    if is_delayed() { 0 } else { real!(fsync(file => c_int) -> c_int) }
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    if is_delayed() { 0 } else { real!(fdatasync(file => c_int) -> c_int) }
}

/// Waits as long as the disk of this host takes. Returns `false` outside of a simulation.
fn is_delayed() -> bool {
    let delay = kernel::with(|it| {
        let most = it.hosts[it.own_host().0].disk_delay;
        it.faults.below(most)
    });
    match delay {
        None => return false,
        Some(0) => {}
        Some(delay) => scheduler::wait(Wait::Until(virtual_time::now() + delay)),
    }
    true
}
