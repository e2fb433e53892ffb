//! The header of a swap partition, as mkswap writes it (Linux, `include/linux/swap.h`).

use std::io;
use std::ops::Range;

use super::guard::GuardedDisk;

/// The size of a page of every machine that this agent is built for.
const PAGE: u64 = 4096;

/// Makes the range, in bytes, swap space with this label of at most 15 bytes.
pub fn make(
    disk: &mut GuardedDisk,
    range: Range<u64>,
    label: &str,
    uuid: [u8; 16],
) -> io::Result<()> {
    let mut page = vec![0; PAGE as usize];
    let last_page = u32::try_from((range.end - range.start) / PAGE - 1).unwrap_or(u32::MAX);
    page[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
    page[1028..1032].copy_from_slice(&last_page.to_le_bytes());
    page[1036..1052].copy_from_slice(&uuid);
    page[1052..1052 + label.len().min(15)]
        .copy_from_slice(&label.as_bytes()[..label.len().min(15)]);
    page[PAGE as usize - 10..].copy_from_slice(b"SWAPSPACE2");
    disk.write_at(range.start, &page)
}
