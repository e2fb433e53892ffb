//! The program that makes an ephemeral file system, which the agent starts without a shell.

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use super::partition_error::PartitionError;
use crate::root::Root;

const MKE2FS: &str = "/bin/mke2fs";
/// The label of ironic-python-agent.
pub(super) const LABEL: &str = "ephemeral0";
/// The most characters of an error output that are reported.
const LONGEST_SAID: usize = 500;

/// Makes a file system of this format in a range of a disk, in bytes. The kernel does not know the partition yet, so the program gets its
/// place on the disk.
pub(super) fn make(
    root: &Root,
    (disk, range): (&Path, &Range<u64>),
    format: &str,
) -> Result<(), PartitionError> {
    let placed = format!("offset={},nodiscard", range.start);
    let size = format!("{}k", (range.end - range.start) >> 10);
    let ended = Command::new(root.path(MKE2FS))
        .args(["-q", "-F", "-t", format, "-L", LABEL, "-E", &placed])
        .arg(disk)
        .arg(size)
        .stdin(Stdio::null())
        .output()
        .map_err(PartitionError::NoProgram)?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    Err(PartitionError::Program(said.take(LONGEST_SAID).collect()))
}
