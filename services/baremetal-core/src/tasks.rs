//! The tasks of each kind of work.

use hardware::PowerState;

use crate::{
    AgentCommand, BiosInterface, Driver, InspectInterface, Node, RescueInterface, StepKind, Task,
    WantedSteps,
};

/// The tasks that check a node's BMC, and read what the BMC knows of the machine's firmware.
pub(crate) fn verify(node: &Node) -> Vec<Task> {
    let reads_bios = node.bios_interface() == BiosInterface::Redfish;
    [Task::TryBmc].into_iter().chain(reads_bios.then_some(Task::ReadBios)).collect()
}

/// The tasks that inspect `node`: through the BMC, the agent, or both, as the node's interface says.
pub(crate) fn inspect(node: &Node) -> Vec<Task> {
    let mut tasks = Vec::new();
    if node.driver == Driver::Redfish && node.inspect_interface().looks() {
        tasks.push(Task::AskBmcForInventory);
    }
    if node.inspect_interface() == InspectInterface::Agent {
        tasks.extend(Task::boot_and(Task::AwaitInventory));
        tasks.extend([Task::Power(PowerState::Off), Task::BootDisk]);
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
    let mut tasks = Vec::from(Task::boot_and(Task::AwaitAgent));
    tasks.extend([AgentCommand::ListSteps(StepKind::Clean), AgentCommand::Sync].map(Task::Agent));
    tasks.extend([Task::Power(PowerState::Off), Task::BootDisk]);
    tasks
}

/// The task that plans the steps of a node without an agent, if a request named steps.
fn plan_without_agent(steps: &WantedSteps) -> Option<Task> {
    steps.are_named().then_some(Task::PlanSteps)
}

/// The tasks that install `node` and boot its disk. A node without an agent is only restarted.
pub(crate) fn deploy(node: &Node, steps: &WantedSteps) -> Vec<Task> {
    if !node.uses_agent() {
        let restart = [Task::Power(PowerState::Off), Task::Power(PowerState::On)];
        return plan_without_agent(steps).into_iter().chain(restart).collect();
    }
    let mut tasks: Vec<Task> = node.keeps_vifs().then_some(Task::BindVifs).into_iter().collect();
    tasks.extend(Task::boot_and(Task::AwaitAgent));
    let list = AgentCommand::ListSteps(StepKind::Deploy);
    tasks.extend(
        [
            list,
            AgentCommand::WriteImage,
            AgentCommand::SetNextBoot,
            AgentCommand::Sync,
            AgentCommand::PowerOff,
        ]
        .map(Task::Agent),
    );
    tasks.extend([Task::Power(PowerState::Off), Task::BootDisk, Task::Power(PowerState::On)]);
    tasks
}

/// The tasks that run service steps on `node` and boot its disk again, without the steps, which are added once they are planned.
pub(crate) fn service(node: &Node) -> Vec<Task> {
    if !node.uses_agent() {
        return vec![Task::PlanSteps];
    }
    let mut tasks = Vec::from(Task::boot_and(Task::AwaitAgent));
    tasks.extend([AgentCommand::ListSteps(StepKind::Service), AgentCommand::Sync].map(Task::Agent));
    tasks.extend([Task::Power(PowerState::Off), Task::BootDisk, Task::Power(PowerState::On)]);
    tasks
}

/// The tasks that boot the ramdisk as the rescue system of `node` and give its agent the password. The next boot is the disk's again, as after
/// Ironic's clean-up. A node with the interface `fake` is only restarted.
pub(crate) fn rescue(node: &Node) -> Vec<Task> {
    if node.rescue_interface() != RescueInterface::Agent {
        return vec![Task::Power(PowerState::Off), Task::Power(PowerState::On)];
    }
    let mut tasks = Vec::from(Task::boot_and(Task::AwaitAgent));
    tasks.extend([Task::Agent(AgentCommand::FinalizeRescue), Task::BootDisk]);
    tasks
}

/// The tasks that boot the installed system of `node` after a rescue.
pub(crate) fn unrescue(node: &Node) -> Vec<Task> {
    let boot = (node.rescue_interface() == RescueInterface::Agent).then_some(Task::BootDisk);
    let (off, on) = (Task::Power(PowerState::Off), Task::Power(PowerState::On));
    [off].into_iter().chain(boot).chain([on]).collect()
}

/// The tasks that take a node out of use, before cleaning.
pub(crate) fn undeploy(node: &Node) -> Vec<Task> {
    let detach = node.keeps_vifs().then_some(Task::DetachVifs);
    [Task::Power(PowerState::Off)].into_iter().chain(detach).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{DeployInterface, NetworkInterface, NodeUuid};

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
