//! The tasks of each kind of work.

use hardware::{BootSetting, PowerState};

use crate::wanted_boot::changed_boot;
use crate::{
    AgentCommand, DeployMethod, InspectInterface, Node, RescueInterface, ServiceNetwork, StepKind,
    Task, WantedSteps,
};

/// The tasks that check a node's BMC, and read what the BMC knows of the machine's firmware.
pub(crate) fn verify(node: &Node) -> Vec<Task> {
    let reads_firmware =
        node.bios_interface().is_redfish() || node.firmware_interface().is_redfish();
    [Task::TryBmc].into_iter().chain(reads_firmware.then_some(Task::ReadBios)).collect()
}

/// The tasks that take over a machine that is in use. The image of its user is made its boot again, as in Ironic.
pub(crate) fn adopt(node: &Node) -> Vec<Task> {
    let is_diskless = node.deploy_method() == DeployMethod::Ramdisk;
    verify(node).into_iter().chain(is_diskless.then_some(Task::BootOwnImage)).collect()
}

/// The task that makes the system of the machine's user its next boot.
fn boot_system(node: &Node) -> Task {
    match node.deploy_method() {
        DeployMethod::Ramdisk => Task::BootOwnImage,
        DeployMethod::Direct
        | DeployMethod::CustomAgent
        | DeployMethod::Bootc
        | DeployMethod::Fake => Task::BootDisk,
    }
}

/// The tasks that inspect `node`: through the BMC, the agent, or both, as the node's interface says.
pub(crate) fn inspect(node: &Node) -> Vec<Task> {
    let mut tasks = Vec::new();
    if node.driver.speaks_redfish() && node.inspect_interface().looks() {
        tasks.push(Task::AskBmcForInventory);
    }
    if node.inspect_interface() == InspectInterface::Agent {
        tasks.extend(connect(node, ServiceNetwork::Inspection));
        tasks.extend(Task::boot_and(Task::AwaitInventory));
        tasks.push(Task::Power(PowerState::Off));
        tasks.extend(disconnect(node));
        tasks.push(Task::BootDisk);
    }
    tasks
}

/// The tasks that clean `node`, without `steps`, which are added once they are planned. A node without an agent is only switched off by
/// automated cleaning.
pub(crate) fn clean(node: &Node, steps: &WantedSteps) -> Vec<Task> {
    if !node.uses_agent() {
        let off = [Task::Power(PowerState::Off)];
        return plan_without_agent(steps).into_iter().chain(off).collect();
    }
    let mut tasks = connect(node, ServiceNetwork::Cleaning);
    tasks.extend(Task::boot_and(Task::AwaitAgent));
    tasks.extend([AgentCommand::ListSteps(StepKind::Clean), AgentCommand::Sync].map(Task::Agent));
    tasks.push(Task::Power(PowerState::Off));
    tasks.extend(disconnect(node));
    tasks.push(Task::BootDisk);
    tasks
}

/// The task that plans the steps of a node without an agent, if a request named steps.
fn plan_without_agent(steps: &WantedSteps) -> Option<Task> {
    steps.are_named().then_some(Task::PlanSteps)
}

/// The tasks that boot the ramdisk and wait for its agent, with the boot settings of the instance. The ramdisk is not signed, so Secure Boot
/// is off while it runs if the instance wants it on. A boot of the ramdisk begins with a machine that is off.
fn boot_ramdisk(node: &Node) -> Vec<Task> {
    let wanted = changed_boot(node);
    let mode = wanted.mode.map(BootSetting::Mode);
    let no_secure_boot = wanted.secure_boot.then_some(BootSetting::SecureBoot(false));
    let mut tasks: Vec<Task> = mode.into_iter().chain(no_secure_boot).map(Task::SetBoot).collect();
    if !tasks.is_empty() {
        tasks.insert(0, Task::Power(PowerState::Off));
    }
    tasks.extend(Task::boot_and(Task::AwaitAgent));
    tasks.extend(mode.map(Task::ConfirmBoot));
    tasks
}

/// The tasks that start the machine with the boot settings that the instance of `node` wants (ironic, `configure_secure_boot_if_needed`).
fn start_system(node: &Node) -> Vec<Task> {
    let secure = changed_boot(node).secure_boot.then_some(BootSetting::SecureBoot(true));
    let set = secure.map(Task::SetBoot);
    let confirm = secure.map(Task::ConfirmBoot);
    set.into_iter().chain([Task::Power(PowerState::On)]).chain(confirm).collect()
}

/// The tasks that install `node` and boot its system. A node without an agent is only restarted, and a node that boots the image of its user
/// runs no agent for that.
pub(crate) fn deploy(node: &Node, steps: &WantedSteps) -> Vec<Task> {
    let off = Task::Power(PowerState::Off);
    let bind = node.keeps_vifs().then_some(Task::BindVifs);
    let writes: &[AgentCommand] = match node.deploy_method() {
        DeployMethod::Fake => {
            let tasks = plan_without_agent(steps).into_iter().chain([off]);
            return tasks.chain(start_system(node)).collect();
        }
        DeployMethod::Ramdisk => {
            let mode = changed_boot(node).mode.map(BootSetting::Mode);
            let boot = [off].into_iter().chain(mode.map(Task::SetBoot)).chain([Task::BootOwnImage]);
            let tasks = bind.into_iter().chain(plan_without_agent(steps)).chain(boot);
            return tasks.chain(start_system(node)).chain(mode.map(Task::ConfirmBoot)).collect();
        }
        DeployMethod::Direct if node.may_have_partition_image() => {
            &[AgentCommand::WriteImage, AgentCommand::ListPartitions, AgentCommand::SetNextBoot]
        }
        DeployMethod::Direct => &[AgentCommand::WriteImage, AgentCommand::SetNextBoot],
        // The program of the container makes the boot entry.
        DeployMethod::Bootc => &[AgentCommand::WriteImage],
        // The requested steps write whatever the machine boots (ironic, `CustomAgentDeploy`).
        DeployMethod::CustomAgent => &[],
    };
    let list = AgentCommand::ListSteps(StepKind::Deploy);
    let ends = [AgentCommand::Sync, AgentCommand::PowerOff];
    let commands = [list].into_iter().chain(writes.iter().copied()).chain(ends);
    // The interface flat has one network for the ramdisk and the installed system, so its VIFs are bound before the ramdisk boots.
    let mut tasks = match node.switches_networks() {
        true => connect(node, ServiceNetwork::Provisioning),
        false => bind.into_iter().collect(),
    };
    tasks.extend(boot_ramdisk(node));
    tasks.extend(commands.map(Task::Agent));
    tasks.push(off);
    tasks.extend(return_to_vifs(node));
    tasks.push(Task::BootDisk);
    tasks.extend(start_system(node));
    tasks
}

/// The tasks that run service steps on `node` and boot its system again, without the steps, which are added once they are planned.
pub(crate) fn service(node: &Node) -> Vec<Task> {
    if !node.uses_agent() {
        return vec![Task::PlanSteps];
    }
    let mut tasks = connect(node, ServiceNetwork::Servicing);
    tasks.extend(boot_ramdisk(node));
    tasks.extend([AgentCommand::ListSteps(StepKind::Service), AgentCommand::Sync].map(Task::Agent));
    tasks.push(Task::Power(PowerState::Off));
    tasks.extend(return_to_vifs(node));
    tasks.push(boot_system(node));
    tasks.extend(start_system(node));
    tasks
}

/// The tasks that boot the ramdisk as the rescue system of `node` and give its agent the password. The next boot is the system's again, as
/// after Ironic's clean-up. A node with the interface `fake` is only restarted.
pub(crate) fn rescue(node: &Node) -> Vec<Task> {
    if node.rescue_interface() != RescueInterface::Agent {
        return vec![Task::Power(PowerState::Off), Task::Power(PowerState::On)];
    }
    let mut tasks = connect(node, ServiceNetwork::Rescuing);
    tasks.extend(boot_ramdisk(node));
    tasks.push(Task::Agent(AgentCommand::FinalizeRescue));
    tasks.extend(return_to_vifs(node));
    tasks.push(boot_system(node));
    tasks
}

/// The tasks that boot the installed system of `node` after a rescue.
pub(crate) fn unrescue(node: &Node) -> Vec<Task> {
    let off = Task::Power(PowerState::Off);
    if node.rescue_interface() != RescueInterface::Agent {
        return vec![off, Task::Power(PowerState::On)];
    }
    let mut tasks = vec![off];
    tasks.extend(return_to_vifs(node));
    tasks.push(boot_system(node));
    tasks.extend(start_system(node));
    tasks
}

/// The tasks that take a node out of use, before cleaning. The image of its user is not booted again, also if nothing is cleaned. Secure Boot
/// ends with the instance that wanted it (ironic, `deconfigure_secure_boot_if_needed`).
pub(crate) fn undeploy(node: &Node) -> Vec<Task> {
    let is_diskless = node.deploy_method() == DeployMethod::Ramdisk;
    let disk = is_diskless.then_some(Task::BootDisk);
    let detach = node.keeps_vifs().then_some(Task::DetachVifs);
    let secure = changed_boot(node).secure_boot;
    let unset = secure.then_some(Task::SetBoot(BootSetting::SecureBoot(false)));
    let off = [Task::Power(PowerState::Off)].into_iter();
    off.chain(unset).chain(disk).chain(disconnect(node)).chain(detach).collect()
}

/// The tasks that move a machine from the networks of its VIFs to a network of the service, with the machine off.
fn connect(node: &Node, network: ServiceNetwork) -> Vec<Task> {
    if !node.switches_networks() {
        return Vec::new();
    }
    vec![Task::Power(PowerState::Off), Task::ReleaseVifs, Task::Connect(network)]
}

/// The task that takes a machine out of the networks of the service.
fn disconnect(node: &Node) -> Option<Task> {
    node.switches_networks().then_some(Task::Disconnect)
}

/// The tasks that move a machine from a network of the service to the networks of its VIFs.
fn return_to_vifs(node: &Node) -> Vec<Task> {
    if !node.switches_networks() {
        return Vec::new();
    }
    vec![Task::Disconnect, Task::BindVifs]
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{DeployInterface, Driver, NetworkInterface, NodeUuid};

    const OFF: Task = Task::Power(PowerState::Off);
    const ON: Task = Task::Power(PowerState::On);

    fn node(driver: Driver) -> Node {
        Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_inspection_asks_what_the_interface_names_and_the_driver_can_ask() {
        use InspectInterface::{Agent, Fake, NoInspect, Redfish};

        let tasks = |driver, chosen| {
            let mut node = node(driver);
            node.interfaces.inspect = Some(chosen);
            inspect(&node)
        };
        let agent = [OFF, Task::BootRamdisk, ON, Task::AwaitInventory, OFF, Task::BootDisk];
        let both: Vec<Task> = [Task::AskBmcForInventory].into_iter().chain(agent.clone()).collect();
        assert_eq!(tasks(Driver::Redfish, Agent), both);
        assert_eq!(tasks(Driver::Redfish, Redfish), [Task::AskBmcForInventory]);
        assert_eq!(tasks(Driver::Idrac, Agent), both);
        assert_eq!(tasks(Driver::Idrac, InspectInterface::Idrac), [Task::AskBmcForInventory]);
        assert_eq!(tasks(Driver::Redfish, NoInspect), []);
        assert_eq!(tasks(Driver::Ipmi, Agent), agent);
        assert_eq!(tasks(Driver::Ipmi, NoInspect), []);
        assert_eq!(tasks(Driver::FakeHardware, Fake), []);
    }

    #[test]
    fn a_fake_node_can_use_an_agent() {
        let mut node = node(Driver::FakeHardware);
        node.interfaces.deploy = Some(DeployInterface::Direct);
        node.interfaces.inspect = Some(InspectInterface::Agent);
        let deploys = deploy(&node, &WantedSteps::default());
        assert!(deploys.contains(&Task::Agent(AgentCommand::WriteImage)), "{deploys:?}");
        let cleans = clean(&node, &WantedSteps::default());
        assert!(cleans.contains(&Task::Agent(AgentCommand::ListSteps(StepKind::Clean))));
        assert_eq!(inspect(&node)[..4], Task::boot_and(Task::AwaitInventory));
    }

    #[test]
    fn a_node_with_an_image_of_its_user_boots_the_image_instead_of_its_disk() {
        let mut node = node(Driver::Redfish);
        node.interfaces.deploy = Some(DeployInterface::Ramdisk);
        node.interfaces.rescue = Some(RescueInterface::Agent);
        let steps = WantedSteps::default();
        assert_eq!(deploy(&node, &steps), [OFF, Task::BootOwnImage, ON]);
        assert_eq!(undeploy(&node), [OFF, Task::BootDisk]);
        for tasks in [service(&node), unrescue(&node), rescue(&node), adopt(&node)] {
            let own = tasks.contains(&Task::BootOwnImage);
            assert!(own && !tasks.contains(&Task::BootDisk), "{tasks:?}");
        }
        assert!(clean(&node, &steps).contains(&Task::AwaitAgent), "the agent cleans it");
        let named = WantedSteps::Deployment(vec![crate::DeployStep {
            step: crate::RequestedStep {
                name: crate::StepName::erase_devices(),
                args: serde_json::Map::new(),
                children: None,
            },
            priority: 90,
        }]);
        assert_eq!(deploy(&node, &named)[0], Task::PlanSteps);
    }

    #[test]
    fn a_custom_agent_gets_only_the_requested_steps() {
        let mut node = node(Driver::Ipmi);
        node.interfaces.deploy = Some(DeployInterface::CustomAgent);
        let tasks = deploy(&node, &WantedSteps::default());
        let list = AgentCommand::ListSteps(StepKind::Deploy);
        let commands = [list, AgentCommand::Sync, AgentCommand::PowerOff].map(Task::Agent);
        let is_command = |task: &&Task| matches!(task, Task::Agent(_));
        assert!(tasks.iter().filter(is_command).eq(&commands), "{tasks:?}");
        assert_eq!(tasks[tasks.len() - 2..], [Task::BootDisk, ON]);
    }

    #[test]
    fn a_rescue_by_the_agent_boots_the_ramdisk_and_its_end_boots_the_disk() {
        let tasks = |driver, chosen| {
            let mut node = node(driver);
            node.interfaces.rescue = Some(chosen);
            (rescue(&node), unrescue(&node))
        };
        let finalize = Task::Agent(AgentCommand::FinalizeRescue);
        let begins = [OFF, Task::BootRamdisk, ON, Task::AwaitAgent, finalize, Task::BootDisk];
        for driver in Driver::ALL {
            let by_agent = tasks(driver, RescueInterface::Agent);
            assert_eq!(by_agent, (Vec::from(begins.clone()), vec![OFF, Task::BootDisk, ON]));
        }
        let fake = tasks(Driver::FakeHardware, RescueInterface::Fake);
        assert_eq!(fake, (vec![OFF, ON], vec![OFF, ON]));
    }

    #[test]
    fn the_network_interface_flat_binds_vifs_before_the_ramdisk_and_detaches_them_with_the_machine_off()
     {
        let mut node = node(Driver::Redfish);
        assert_eq!(undeploy(&node), [OFF]);
        assert!(!deploy(&node, &WantedSteps::default()).contains(&Task::BindVifs));
        node.interfaces.network = Some(NetworkInterface::Flat);
        assert_eq!(undeploy(&node), [OFF, Task::DetachVifs]);
        assert_eq!(deploy(&node, &WantedSteps::default())[..2], [Task::BindVifs, OFF]);
    }

    #[test]
    fn the_network_interface_neutron_moves_the_machine_between_networks_while_it_is_off() {
        use ServiceNetwork::{Cleaning, Inspection, Provisioning, Rescuing, Servicing};

        let mut node = node(Driver::Redfish);
        node.interfaces.network = Some(NetworkInterface::Neutron);
        node.interfaces.rescue = Some(RescueInterface::Agent);
        let steps = WantedSteps::default();
        let leaves_agent = [
            (deploy(&node, &steps), Provisioning),
            (clean(&node, &steps), Cleaning),
            (inspect(&node), Inspection),
            (service(&node), Servicing),
        ];
        for (tasks, network) in leaves_agent {
            let begin = [OFF, Task::ReleaseVifs, Task::Connect(network), OFF, Task::BootRamdisk];
            let at = tasks.iter().position(|task| *task == OFF).unwrap();
            assert_eq!(tasks[at..at + 5], begin);
            let end = tasks.iter().rposition(|task| *task == OFF).unwrap();
            assert_eq!(tasks[end + 1], Task::Disconnect);
            let returns = tasks[end + 2] == Task::BindVifs;
            assert_eq!(returns, matches!(network, Provisioning | Servicing), "{tasks:?}");
        }
        let finalize = Task::Agent(AgentCommand::FinalizeRescue);
        let rescues = rescue(&node);
        assert_eq!(rescues[2], Task::Connect(Rescuing));
        assert_eq!(
            rescues[rescues.len() - 4..],
            [finalize, Task::Disconnect, Task::BindVifs, Task::BootDisk]
        );
        assert_eq!(unrescue(&node), [OFF, Task::Disconnect, Task::BindVifs, Task::BootDisk, ON]);
        assert_eq!(undeploy(&node), [OFF, Task::Disconnect, Task::DetachVifs]);
    }

    #[test]
    fn secure_boot_is_on_while_the_instance_that_wants_it_runs_and_off_while_the_ramdisk_runs() {
        const ENABLE: Task = Task::SetBoot(BootSetting::SecureBoot(true));
        const DISABLE: Task = Task::SetBoot(BootSetting::SecureBoot(false));
        const CONFIRM: Task = Task::ConfirmBoot(BootSetting::SecureBoot(true));

        let mut node = node(Driver::Redfish);
        node.interfaces.rescue = Some(RescueInterface::Agent);
        let wanted = serde_json::json!({"secure_boot": "true"});
        node.instance_info.insert("capabilities".to_owned(), wanted);
        let steps = WantedSteps::default();
        for tasks in [deploy(&node, &steps), service(&node), rescue(&node)] {
            assert_eq!(tasks[..5], [OFF, DISABLE, OFF, Task::BootRamdisk, ON]);
        }
        for tasks in [deploy(&node, &steps), service(&node), unrescue(&node)] {
            assert_eq!(tasks[tasks.len() - 4..], [Task::BootDisk, ENABLE, ON, CONFIRM]);
        }
        assert_eq!(undeploy(&node), [OFF, DISABLE]);
        node.interfaces.deploy = Some(DeployInterface::Ramdisk);
        assert_eq!(deploy(&node, &steps), [OFF, Task::BootOwnImage, ENABLE, ON, CONFIRM]);
        node.interfaces.management = Some(crate::ManagementInterface::Noop);
        assert_eq!(undeploy(&node), [OFF, Task::BootDisk], "the interface changes no setting");
    }

    #[test]
    fn the_boot_mode_of_an_instance_is_set_before_its_ramdisk_or_its_image_boots() {
        let uefi = BootSetting::Mode(hardware::BootMode::Uefi);
        let mut node = node(Driver::Redfish);
        let wanted = serde_json::json!({"boot_mode": "uefi"});
        node.instance_info.insert("capabilities".to_owned(), wanted);
        let steps = WantedSteps::default();
        let (set, confirm) = (Task::SetBoot(uefi), Task::ConfirmBoot(uefi));
        let boot = Task::boot_and(Task::AwaitAgent);
        let begin = [&[OFF, set.clone()][..], &boot, std::slice::from_ref(&confirm)].concat();
        assert_eq!(deploy(&node, &steps)[..7], begin);
        assert_eq!(undeploy(&node), [OFF]);
        node.interfaces.deploy = Some(DeployInterface::Ramdisk);
        assert_eq!(deploy(&node, &steps), [OFF, set, Task::BootOwnImage, ON, confirm]);
    }

    #[test]
    fn the_program_of_a_container_makes_the_boot_entry() {
        let mut machine = node(Driver::Redfish);
        machine.interfaces.deploy = Some(DeployInterface::Bootc);
        assert!(machine.uses_agent());
        let tasks = deploy(&machine, &WantedSteps::default());
        let commands = tasks.iter().filter(|task| matches!(task, Task::Agent(_))).cloned();
        let want = [
            AgentCommand::ListSteps(StepKind::Deploy),
            AgentCommand::WriteImage,
            AgentCommand::Sync,
            AgentCommand::PowerOff,
        ];
        assert_eq!(commands.collect::<Vec<_>>(), want.map(Task::Agent));
    }

    #[test]
    fn the_partitions_of_a_partition_image_are_asked_for_before_the_next_boot_is_set() {
        let mut machine = node(Driver::Redfish);
        let commands = |machine: &Node| {
            let tasks = deploy(machine, &WantedSteps::default());
            let writes = Task::Agent(AgentCommand::WriteImage);
            let from = tasks.iter().position(|task| *task == writes).unwrap();
            tasks[from + 1..from + 3].to_vec()
        };
        let sets = Task::Agent(AgentCommand::SetNextBoot);
        assert_eq!(commands(&machine)[0], sets);
        machine.instance_info.insert("image_type".to_owned(), "partition".into());
        assert_eq!(commands(&machine), [Task::Agent(AgentCommand::ListPartitions), sets]);
    }

    #[test]
    fn only_a_node_that_boots_the_ramdisk_gets_an_image() {
        assert_eq!(deploy(&node(Driver::FakeHardware), &WantedSteps::default()), [OFF, ON]);
        for driver in [Driver::Ipmi, Driver::Redfish] {
            let tasks = deploy(&node(driver), &WantedSteps::default());
            let at = |wanted: Task| tasks.iter().position(|task| *task == wanted);
            let writes = at(Task::Agent(AgentCommand::WriteImage));
            assert!(at(Task::BootRamdisk) < writes && writes < at(Task::BootDisk), "{tasks:?}");
            assert_eq!((tasks.first(), tasks.last()), (Some(&OFF), Some(&ON)));
        }
    }
}
