//! The image that a machine with the deploy interface `ramdisk` boots: an ISO image, or a kernel with a ramdisk, of the machine's user.
//!
//! Nothing is written to the disk, so the machine boots the image at every start.

use crate::image_url::{check_ipxe_url, check_url};
use crate::instance::{config_drive_of, refuse, text};
use crate::{BootInterface, ConfigDrive, DeployMethod, Node, RequestRefused, State, Work};

/// The image that the machine boots at every start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnImage {
    /// The URL of an ISO image.
    Iso(String),
    /// The URLs of a kernel and a ramdisk, and the kernel's arguments, separated by blanks.
    Kernel { kernel: String, ramdisk: String, arguments: String },
}

/// Returns the image that `node` boots, or the field of `instance_info` that is missing or wrong.
pub fn own_image(node: &Node) -> Result<OwnImage, RequestRefused> {
    let by_network = match node.boot_interface() {
        BootInterface::Ipxe | BootInterface::HttpIpxe => true,
        BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia => false,
        BootInterface::Fake => {
            let (field, problem) = ("boot_interface", "fake boots no image of the node");
            return Err(RequestRefused::Field { field: field.into(), problem: problem.into() });
        }
    };
    let is_empty = |drive: &ConfigDrive| match drive {
        ConfigDrive::Encoded(_) | ConfigDrive::Url(_) => false,
        ConfigDrive::Parts(parts) => parts.is_empty(),
    };
    if config_drive_of(node)?.is_some_and(|drive| !is_empty(&drive)) {
        let problem = "the deploy interface ramdisk gives the machine no config drive";
        return Err(refuse("configdrive", problem.to_owned()));
    }
    let url = |key| {
        let check = if by_network { check_ipxe_url } else { check_url };
        let Some(url) = text(node, key)? else { return Ok(None) };
        check(url).map_err(|problem| refuse(key, problem.to_owned()))?;
        Ok(Some(url.to_owned()))
    };
    if let Some(iso) = url("boot_iso")? {
        return Ok(OwnImage::Iso(iso));
    }
    if !by_network {
        let problem = "missing; redfish-virtual-media boots an ISO image";
        return Err(refuse("boot_iso", problem.to_owned()));
    }
    match (url("kernel")?, url("ramdisk")?) {
        (Some(kernel), Some(ramdisk)) => {
            let arguments = text(node, "ramdisk_kernel_arguments")?.unwrap_or_default().to_owned();
            Ok(OwnImage::Kernel { kernel, ramdisk, arguments })
        }
        (None, Some(_)) => Err(refuse("kernel", "missing beside ramdisk".to_owned())),
        (Some(_), None) => Err(refuse("ramdisk", "missing beside kernel".to_owned())),
        (None, None) => {
            let problem = "missing; set it to the URL of an ISO image, or set kernel and ramdisk";
            Err(refuse("boot_iso", problem.to_owned()))
        }
    }
}

impl Node {
    /// Returns whether a network boot of the machine gets the image of its user now.
    ///
    /// A machine in use boots the image at every start. During work, the latest task that set a boot decides.
    pub fn boots_own_image(&self) -> bool {
        if self.deploy_method() != DeployMethod::Ramdisk {
            return false;
        }
        let in_work = self.work.as_ref().and_then(Work::chose_own_image);
        in_work.unwrap_or_else(|| is_used(self.provision_state))
    }
}

/// Returns whether the machine belongs to a user and is to run the user's image.
const fn is_used(state: State) -> bool {
    match state {
        State::Active
        | State::Servicing
        | State::ServiceWait
        | State::ServiceFailed
        | State::ServiceHold
        | State::RescueFailed
        | State::Unrescuing
        | State::UnrescueFailed => true,
        State::Enroll
        | State::Verifying
        | State::Manageable
        | State::Inspecting
        | State::InspectWait
        | State::InspectFailed
        | State::Cleaning
        | State::CleanWait
        | State::CleanFailed
        | State::CleanHold
        | State::Available
        | State::Deploying
        | State::DeployWait
        | State::DeployFailed
        | State::DeployHold
        | State::Rescuing
        | State::RescueWait
        | State::Rescued
        | State::Deleting
        | State::Error
        | State::Adopting
        | State::AdoptFailed => false,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::{DeployInterface, Driver, NodeUuid, Task, WorkUuid};

    fn node(boot: BootInterface, info: Value) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.interfaces.boot = Some(boot);
        node.interfaces.deploy = Some(DeployInterface::Ramdisk);
        node.instance_info = info.as_object().expect("an object").clone();
        node
    }

    #[track_caller]
    fn refuses(boot: BootInterface, info: Value, want: &str) {
        assert_eq!(own_image(&node(boot, info)).unwrap_err().to_string(), want);
    }

    #[test]
    fn an_iso_image_or_a_kernel_with_a_ramdisk_is_needed() {
        use BootInterface::{Ipxe, VirtualMedia};

        for boot in [Ipxe, VirtualMedia] {
            let iso = node(boot, json!({"boot_iso": "http://h/live.iso", "configdrive": {}}));
            assert_eq!(own_image(&iso), Ok(OwnImage::Iso("http://h/live.iso".to_owned())));
        }
        let kernel = json!({"kernel": "http://h/k", "ramdisk": "http://h/r", "ramdisk_kernel_arguments": "a b"});
        let want = OwnImage::Kernel {
            kernel: "http://h/k".to_owned(),
            ramdisk: "http://h/r".to_owned(),
            arguments: "a b".to_owned(),
        };
        assert_eq!(own_image(&node(Ipxe, kernel.clone())), Ok(want));
        let iso_only = "instance_info.boot_iso: missing; redfish-virtual-media boots an ISO image";
        refuses(VirtualMedia, kernel, iso_only);
        let none = "instance_info.boot_iso: missing; set it to the URL of an ISO image, or set kernel and ramdisk";
        refuses(Ipxe, json!({}), none);
        let half = json!({"kernel": "http://h/k"});
        refuses(Ipxe, half, "instance_info.ramdisk: missing beside kernel");
        let https = "instance_info.boot_iso: must be an http URL, because iPXE loads the file";
        refuses(Ipxe, json!({"boot_iso": "https://h/i"}), https);
        let drive = json!({"boot_iso": "http://h/i", "configdrive": {"user_data": "x"}});
        let refused = "instance_info.configdrive: the deploy interface ramdisk gives the machine no config drive";
        refuses(VirtualMedia, drive, refused);
    }

    #[test]
    fn a_machine_in_use_boots_its_image_at_every_start() {
        let mut own = node(BootInterface::Ipxe, json!({"boot_iso": "http://h/i"}));
        assert!(!own.boots_own_image(), "it is not deployed");
        own.provision_state = State::Active;
        assert!(own.boots_own_image());
        own.provision_state = State::Servicing;
        let work = |task| Some(Work::new(WorkUuid::nil(), vec![task], Timestamp::UNIX_EPOCH));
        for (task, boots) in
            [(Task::BootRamdisk, false), (Task::BootOwnImage, true), (Task::PlanSteps, true)]
        {
            own.work = work(task);
            assert_eq!(own.boots_own_image(), boots);
        }
        own.interfaces.deploy = Some(DeployInterface::Direct);
        assert!(!own.boots_own_image());
    }
}
