//! Random numbers: `getrandom` gives each host a stream of its own, which the seed determines.

use libc::{c_uint, c_void, size_t, ssize_t};

use crate::kernel;
use crate::real::real;

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getrandom(
    buffer: *mut c_void,
    length: size_t,
    flags: c_uint,
) -> ssize_t {
    let filled = kernel::with(|it| {
        let stream = it.random_of_this_thread();
        // SAFETY: the caller's buffer has this length.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
        for chunk in bytes.chunks_mut(8) {
            let number = stream.next().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    });
    match filled {
        Some(()) => length as ssize_t,
        None => {
            real!(getrandom(buffer => *mut c_void, length => size_t, flags => c_uint) -> ssize_t)
        }
    }
}
