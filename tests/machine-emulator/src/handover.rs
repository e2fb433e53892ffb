//! The handover from a boot loader to the kernel.

/// A kernel that is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    pub(crate) command_line: String,
    pub(crate) kernel_bytes: u64,
    pub(crate) ramdisk_bytes: u64,
}
