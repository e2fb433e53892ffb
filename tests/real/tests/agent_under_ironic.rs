//! Our agent under a real Ironic, which inspects, cleans and deploys with it.

use real::stations::{ManagementAccess, deploy_and_undeploy};
use real::{Firmware, Story, image};

#[test]
fn our_agent_installs_a_machine_for_a_real_ironic() {
    let Some(mut story) = Story::begin_under_ironic("ironic", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "ipxe").under_ironic(&machine);
    deploy_and_undeploy(&mut story, &machine, &reach, &image("tiny.raw.gz"));
}
