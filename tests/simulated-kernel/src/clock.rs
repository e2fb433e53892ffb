//! The clocks. All hosts have one monotonic clock, and each has a wall clock that can be wrong. Threads outside the simulation, such as the
//! main thread of a test program, have the real clocks, because each look at a virtual clock moves it.

use libc::{c_int, clockid_t, time_t, timespec, timeval};

use crate::real::{fail, real};
use crate::{kernel, virtual_time};

/// The monotonic clock at the beginning, so that no time before the beginning is negative.
const BOOTED: u64 = 1_000_000 * 1_000_000_000;

/// The wall clock at the beginning, in seconds: 2030-01-01T00:00:00Z.
pub const FIRST_SECOND: u64 = 1_893_456_000;

/// The same in nanoseconds.
const EPOCH: u64 = FIRST_SECOND * 1_000_000_000;

/// The virtual time of a time by the monotonic clock.
pub(crate) fn of_monotonic(time: &timespec) -> u64 {
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).saturating_sub(BOOTED)
}

/// The virtual time of a time by the wall clock of this thread's host.
pub(crate) fn of_wall(time: &timespec) -> u64 {
    let wall = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    wall.saturating_sub(EPOCH).saturating_add_signed(-kernel::skew())
}

pub(crate) fn duration(time: &timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn wall() -> u64 {
    (EPOCH + virtual_time::tick()).saturating_add_signed(kernel::skew())
}

fn to_timespec(nanos: u64) -> timespec {
    timespec {
        tv_sec: (nanos / 1_000_000_000) as time_t,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    }
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clock_gettime(clock: clockid_t, result: *mut timespec) -> c_int {
    if !kernel::is_inside() {
        return real!(clock_gettime(clock => clockid_t, result => *mut timespec) -> c_int);
    }
    let nanos = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => wall(),
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => BOOTED + virtual_time::tick(),
        // The clocks of processor time.
        _ => 0,
    };
    if result.is_null() {
        return fail(libc::EFAULT);
    }
    // SAFETY: the caller's pointer is valid.
    unsafe { *result = to_timespec(nanos) };
    0
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gettimeofday(
    result: *mut timeval,
    zone: *mut libc::c_void,
) -> c_int {
    if !kernel::is_inside() || result.is_null() {
        return real!(gettimeofday(result => *mut timeval, zone => *mut libc::c_void) -> c_int);
    }
    let nanos = wall();
    let micros = (nanos % 1_000_000_000 / 1000) as libc::suseconds_t;
    // SAFETY: the caller's pointer is valid.
    unsafe { *result = timeval { tv_sec: (nanos / 1_000_000_000) as time_t, tv_usec: micros } };
    0
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn time(result: *mut time_t) -> time_t {
    if !kernel::is_inside() {
        return real!(time(result => *mut time_t) -> time_t);
    }
    let seconds = (wall() / 1_000_000_000) as time_t;
    if !result.is_null() {
        // SAFETY: the caller's pointer is valid.
        unsafe { *result = seconds };
    }
    seconds
}
