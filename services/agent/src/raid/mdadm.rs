//! The programs that the agent starts, without a shell: mdadm for the arrays, and blockdev for partition tables.
//!
//! The md driver is controlled by ioctls, which this workspace forbids (`unsafe`).

use std::process::{Command, Stdio};

use super::error::RaidError;
use super::layout::ArrayPlan;
use crate::root::Root;

const MDADM: &str = "/bin/mdadm";
const BLOCKDEV: &str = "/bin/blockdev";
/// mdadm's own name for arrays that belong to no host: every host starts such an array under its name.
const NO_HOST: &str = "any";
/// The most characters of an error output that are reported.
const LONGEST_SAID: usize = 500;

/// Makes an array of the devices and starts it.
pub(super) fn create(root: &Root, device: &str, plan: &ArrayPlan) -> Result<(), RaidError> {
    let (host, metadata) =
        (format!("--homehost={NO_HOST}"), format!("--metadata={}", plan.metadata));
    let count = plan.members.len().to_string();
    let fixed = ["--create", device, "--force", "--run", &host, &metadata, "--level", plan.level];
    let named = ["--name", &plan.name, "--raid-devices", &count];
    let words = fixed.into_iter().chain(named).chain(plan.members.iter().map(String::as_str));
    run(root, MDADM, &words.collect::<Vec<_>>()).map(|_| ())
}

/// Stops an array.
pub(super) fn stop(root: &Root, device: &str) -> Result<(), RaidError> {
    run(root, MDADM, &["--stop", device]).map(|_| ())
}

/// Starts every array whose members are on the disks, also if a disk of it is missing.
pub(super) fn assemble(root: &Root) -> Result<(), RaidError> {
    let assembled = run(root, MDADM, &["--assemble", "--scan", "--run"]);
    match assembled {
        // mdadm fails if all arrays run already, and if there is none.
        Ok(_) | Err(RaidError::Program { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the name that an array got when it was made.
pub(super) fn name_of(root: &Root, device: &str) -> Option<String> {
    let told = run(root, MDADM, &["--detail", "--export", device]).ok()?;
    let name = told.lines().find_map(|line| line.strip_prefix("MD_NAME="))?;
    Some(name.rsplit(':').next().unwrap_or(name).to_owned())
}

/// Makes the kernel read the partition table of a disk again.
pub(super) fn read_table_again(root: &Root, disk: &str) -> Result<(), RaidError> {
    run(root, BLOCKDEV, &["--rereadpt", disk]).map(|_| ())
}

/// Runs a program of the ramdisk and returns its output.
fn run(root: &Root, program: &'static str, words: &[&str]) -> Result<String, RaidError> {
    let ended = Command::new(root.path(program))
        .args(words)
        .current_dir(root.path("/"))
        // The ramdisk has no udev and no systemd, for which mdadm would wait.
        .envs(["MDADM_NO_UDEV", "MDADM_NO_SYSTEMCTL", "MDADM_NO_MDMON"].map(|name| (name, "1")))
        .stdin(Stdio::null())
        .output()
        .map_err(|source| RaidError::NoProgram { program, source })?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said: Vec<char> =
        said.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let said = said[said.len().saturating_sub(LONGEST_SAID)..].iter().collect();
    Err(RaidError::Program { command: format!("{program} {}", words.join(" ")), said })
}
