//! The step of ironic-python-agent that installs a machine from a container: podman of its ramdisk pulls and runs the container, whose
//! program `bootc` writes the disk (ironic, `BootcAgentDeploy`).

use agent_protocol::step;
use baremetal_core::{BootableContainer, Interface, Node, RequestRefused, bootable_container};
use serde_json::{Map, Value};

use crate::agent_command::{StepArgs, StepParams};
use crate::allowed::check_image;
use crate::config_drive::config_drive;
use crate::context::TurnContext;
use crate::problem::{Result, bad_request};

impl TurnContext {
    /// Returns the step that runs the container of the node. The agent requires each argument, also a null one.
    pub(crate) async fn install_container(&self, node: &Node) -> Result<StepParams> {
        let refuse = |refusal: RequestRefused| bad_request(refusal.to_string());
        let node = &self.with_instance(node).map_err(refuse)?;
        let hosts = &self.settings.image_hosts;
        check_image(hosts, &node.instance_info).map_err(refuse)?;
        let container = bootable_container(node).map_err(refuse)?;
        let BootableContainer { reference, secret, settings: _ } = container;
        let drive = config_drive(hosts, node).await?;
        Ok(StepParams {
            interface: Interface::Deploy.as_str(),
            step: step::EXECUTE_BOOTC_INSTALL.to_owned(),
            args: StepArgs::Requested(Map::from_iter([
                ("image_source".to_owned(), reference.to_string().into()),
                ("configdrive".to_owned(), Value::from(drive)),
                ("oci_pull_secret".to_owned(), Value::from(secret)),
            ])),
        })
    }
}
