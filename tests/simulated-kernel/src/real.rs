//! The functions of libc that this crate hides.

use std::ffi::CStr;

/// Returns the address of the function that libc has under this name.
pub(crate) fn address(name: &CStr) -> *mut libc::c_void {
    // SAFETY: the name ends with a zero byte, and `RTLD_NEXT` skips this program.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        // Nothing works without the function, and no caller can handle its absence.
        std::process::abort();
    }
    found
}

/// Calls libc's own function: `real!(close(fd: c_int) -> c_int)`.
macro_rules! real {
    ($name:ident($($arg:expr => $type:ty),*) -> $result:ty) => {{
        use std::sync::atomic::{AtomicPtr, Ordering};
        static ADDRESS: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());
        let mut address = ADDRESS.load(Ordering::Relaxed);
        if address.is_null() {
            let name = concat!(stringify!($name), "\0").as_bytes();
            address = $crate::real::address(
                std::ffi::CStr::from_bytes_with_nul(name).unwrap_or_default(),
            );
            ADDRESS.store(address, Ordering::Relaxed);
        }
        // SAFETY: libc's function of this name has this type, which the caller copied from its documentation.
        let function = unsafe {
            std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn($($type),*) -> $result>(address)
        };
        // SAFETY: the arguments are those that the program gave to the hidden function, or valid by construction.
        unsafe { function($($arg),*) }
    }};
}
pub(crate) use real;

/// Sets `errno` and returns the value that announces an error.
pub(crate) fn fail(errno: libc::c_int) -> libc::c_int {
    // SAFETY: libc returns a valid pointer to the variable of this thread.
    unsafe { *libc::__errno_location() = errno };
    -1
}

pub(crate) fn errno() -> libc::c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}
