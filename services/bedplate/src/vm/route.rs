//! The routes of VMs and snapshots.

use api_client::element_path;

pub(super) const MACHINES: &str = "/bedplate/v1/machines";
pub(super) const SNAPSHOTS: &str = "/bedplate/v1/snapshots";

/// The path of a VM in the API.
pub(super) fn path(vm: &str, rest: &str) -> anyhow::Result<String> {
    element_path(MACHINES, vm, rest).map_err(Into::into)
}
