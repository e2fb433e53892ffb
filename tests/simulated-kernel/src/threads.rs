//! Threads: a new one belongs to the host of the thread that starts it.

use std::sync::atomic::AtomicU32;

use libc::{c_int, c_void, pthread_attr_t, pthread_t};

use crate::kernel::{self, Wait};
use crate::real::real;
use crate::scheduler;

type Start = extern "C" fn(*mut c_void) -> *mut c_void;

/// A thread that was started, before it runs.
struct Started {
    number: usize,
    go: &'static AtomicU32,
    start: Start,
    argument: *mut c_void,
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let added = kernel::with(|it| {
        let number = it.add_thread(it.own_host(), 0);
        (number, it.threads[number].go)
    });
    let Some((number, go)) = added else {
        return real!(pthread_create(
            thread => *mut pthread_t, attributes => *const pthread_attr_t, start => Start, argument => *mut c_void
        ) -> c_int);
    };
    let started = Box::into_raw(Box::new(Started { number, go, start, argument }));
    let created = real!(pthread_create(
        thread => *mut pthread_t, attributes => *const pthread_attr_t, run => Start, started.cast() => *mut c_void
    ) -> c_int);
    // SAFETY: libc has stored the name of the thread, or else the caller's pointer is still valid.
    let handle = unsafe { *thread };
    kernel::with(|it| match created {
        0 => it.threads[number].handle = handle,
        _ => it.threads[number].wait = Wait::Over,
    });
    created
}

extern "C" fn run(started: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` made this box for this thread alone.
    let started = unsafe { Box::from_raw(started.cast::<Started>()) };
    let Started { number, go, start, argument } = *started;
    scheduler::arrive(number, go);
    let result = start(argument);
    scheduler::leave();
    result
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    let other = kernel::with(|it| it.threads.iter().rposition(|other| other.handle == thread));
    if let Some(other) = other.flatten() {
        scheduler::wait(Wait::End(other));
    }
    real!(pthread_join(thread => pthread_t, result => *mut *mut c_void) -> c_int)
}
