//! How one thread lets another one run, and whether a thread could run: with the real kernel.

use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_long, timespec};

use crate::real::real;

/// Waits, outside of the simulation, until the scheduler has chosen this thread.
pub(crate) fn wait_for_go(go: &AtomicU32) {
    while go.swap(0, Ordering::Acquire) == 0 {
        real_futex(go, libc::FUTEX_WAIT, 0);
    }
}

/// Lets the thread run that waits for this.
pub(crate) fn wake(go: &AtomicU32) {
    go.store(1, Ordering::Release);
    real_futex(go, libc::FUTEX_WAKE, 1);
}

fn real_futex(word: &AtomicU32, operation: c_int, value: u32) {
    real!(syscall(
        libc::SYS_futex => c_long, word.as_ptr() => *mut u32,
        operation | libc::FUTEX_PRIVATE_FLAG => c_int, value => u32,
        std::ptr::null() => *const timespec
    ) -> c_long);
}

/// Whether an epoll instance has events.
pub(crate) fn is_readable(poll: c_int) -> bool {
    let mut entry = libc::pollfd { fd: poll, events: libc::POLLIN, revents: 0 };
    real!(poll(&raw mut entry => *mut libc::pollfd, 1 => libc::nfds_t, 0 => c_int) -> c_int) > 0
}
