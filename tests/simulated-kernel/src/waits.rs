//! Waiting: for events, for a wake at an address, for a time.

use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_long, c_uint, clockid_t, epoll_event, timespec};

use crate::kernel::{self, Wait};
use crate::real::{fail, real};
use crate::{clock, scheduler, virtual_time};

/// The operations of futex(2), without their flags.
const OPERATION: c_int = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_wait(
    poll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    if !kernel::is_inside() {
        return real!(epoll_wait(poll => c_int, events => *mut epoll_event, most => c_int, timeout => c_int) -> c_int);
    }
    let until = match u64::try_from(timeout) {
        Ok(millis) => virtual_time::now() + millis * 1_000_000,
        Err(_) => u64::MAX,
    };
    loop {
        scheduler::wait(Wait::Events { poll, until });
        let found = real!(epoll_wait(poll => c_int, events => *mut epoll_event, most => c_int, 0 => c_int) -> c_int);
        if found != 0 || virtual_time::now() >= until {
            return found;
        }
    }
}

/// libc's function takes any number of arguments, which are in the same registers as six.
///
/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if number == libc::SYS_futex && kernel::is_inside() {
        let operation = b as c_int;
        let answer = match operation & OPERATION {
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => {
                // SAFETY: the caller passes the arguments of this operation.
                unsafe {
                    futex_wait(a as *const AtomicU32, operation, c as u32, d as *const timespec)
                }
            }
            libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => futex_wake(a as usize, c as u32),
            _ => fail(libc::ENOSYS),
        };
        return c_long::from(answer);
    }
    if number == libc::SYS_getrandom && kernel::is_inside() {
        // SAFETY: the caller passes the arguments of this system call.
        return unsafe { crate::random::getrandom(a as *mut _, b as usize, c as c_uint) as c_long };
    }
    real!(syscall(
        number => c_long, a => c_long, b => c_long, c => c_long, d => c_long, e => c_long, f => c_long
    ) -> c_long)
}

/// # Safety
///
/// `word` is valid, and `timeout` is valid or null.
unsafe fn futex_wait(
    word: *const AtomicU32,
    operation: c_int,
    value: u32,
    timeout: *const timespec,
) -> c_int {
    // SAFETY: by the caller.
    let (now, timeout) = unsafe { ((*word).load(Ordering::SeqCst), timeout.as_ref()) };
    if now != value {
        return fail(libc::EAGAIN);
    }
    let is_absolute = operation & OPERATION == libc::FUTEX_WAIT_BITSET;
    let until = match timeout {
        None => u64::MAX,
        Some(time) if !is_absolute => virtual_time::now() + clock::duration(time),
        Some(time) if operation & libc::FUTEX_CLOCK_REALTIME != 0 => clock::of_wall(time),
        Some(time) => clock::of_monotonic(time),
    };
    let own = kernel::own();
    kernel::with(|it| it.woken.remove(&own));
    scheduler::wait(Wait::Address { address: word as usize, until });
    match kernel::with(|it| it.woken.remove(&own)) {
        Some(true) => 0,
        Some(false) | None => fail(libc::ETIMEDOUT),
    }
}

fn futex_wake(address: usize, most: u32) -> c_int {
    let woken = kernel::with(|it| {
        let mut count = 0;
        for (number, thread) in it.threads.iter_mut().enumerate() {
            let waits = matches!(thread.wait, Wait::Address { address: at, .. } if at == address);
            if waits && count < most {
                thread.wait = Wait::Nothing;
                it.woken.insert(number);
                count += 1;
            }
        }
        count
    });
    woken.unwrap_or_default() as c_int
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sched_yield() -> c_int {
    if !kernel::is_inside() {
        return real!(sched_yield() -> c_int);
    }
    scheduler::wait(Wait::Nothing);
    0
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    if !kernel::is_inside() {
        return real!(nanosleep(time => *const timespec, left => *mut timespec) -> c_int);
    }
    // SAFETY: the caller's pointer is valid.
    let pause = clock::duration(unsafe { &*time });
    scheduler::wait(Wait::Until(virtual_time::now() + pause));
    0
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    if !kernel::is_inside() {
        return real!(clock_nanosleep(
            clock => clockid_t, flags => c_int, time => *const timespec, left => *mut timespec
        ) -> c_int);
    }
    // SAFETY: the caller's pointer is valid.
    let time = unsafe { &*time };
    let until = match (flags & libc::TIMER_ABSTIME != 0, clock == libc::CLOCK_REALTIME) {
        (false, _) => virtual_time::now() + clock::duration(time),
        (true, true) => clock::of_wall(time),
        (true, false) => clock::of_monotonic(time),
    };
    scheduler::wait(Wait::Until(until));
    0
}
