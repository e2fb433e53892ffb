//! Memory: the kernel's total, and the installed modules.

use agent_protocol::Memory;

use super::smbios;
use crate::root::Root;

pub(super) fn memory(root: &Root) -> Memory {
    let text = root.text("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    Memory { total: kib.unwrap_or(0) * 1024, physical_mb: smbios::memory_mib(root) }
}
