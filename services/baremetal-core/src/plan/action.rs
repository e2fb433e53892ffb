//! The actions for a machine, and their results.

use hardware::{BootSetting, PowerChange};

use crate::{
    AgentCommand, InspectionChanges, Node, Problem, ServiceNetwork, StepKind, VolumeChange,
};

/// An action of the conductor outside of its database. Every action may be repeated without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the BMC for a change of power.
    RequestPower(PowerChange),
    /// Ask the BMC for a change of a boot setting.
    ChangeBootSetting(BootSetting),
    /// Make a password by the rules of the BMC.
    MakePassword,
    /// Ask the BMC for the wanted password, after it was recorded.
    ChangePassword,
    /// Read the BMC's inventory and store it.
    ReadInventory,
    /// Read the settings and the versions of the firmware and store them.
    ReadBios,
    /// Look whether the firmware has the requested BIOS settings, and store its settings if it has.
    ConfirmBios,
    /// Ask the BMC to update the firmware of the current task, after the intent was recorded.
    UpdateFirmware,
    /// Read the versions of the firmware, which were updated.
    ReadFirmware,
    /// Ask the BMC for the change of a RAID volume of the current task, after the intent was recorded.
    ChangeRaid,
    /// Read the RAID volumes, which were changed.
    ReadRaid,
    /// Read the inventory that the agent has sent, and store the machine's ports.
    TakeInventory,
    /// Bind the ports of the node's VIFs in Neutron to the machine.
    BindVifs,
    /// Release the ports of the node's VIFs in Neutron, and detach the VIFs.
    DetachVifs,
    /// Release the ports of the node's VIFs in Neutron.
    ReleaseVifs,
    /// Create the ports in Neutron that connect the machine to a network of the service, after the network was recorded.
    Connect(ServiceNetwork),
    /// Delete the ports in Neutron that connect the machine to networks of the service.
    Disconnect,
    /// Carry out the recorded changes of the ports in Neutron of a node without work.
    ChangeNetworks,
    BootRamdisk,
    /// Make the disk the boot device of all boots.
    BootDisk,
    /// Make the ISO image or the kernel of the machine's user the boot of all its starts.
    BootOwnImage,
    /// Give the agent a command, after its intent was recorded.
    Command(AgentCommand),
    /// Run the conductor's step of the current task.
    ConductorStep,
    /// Let the agent run the step of the current task, after its intent was recorded.
    Step,
}

impl Action {
    /// Returns the action's name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Action::RequestPower(PowerChange::On) => "power_on",
            Action::RequestPower(PowerChange::ForceOff) => "power_off",
            Action::RequestPower(PowerChange::SoftOff) => "soft_power_off",
            Action::RequestPower(PowerChange::ForceRestart) => "restart",
            Action::RequestPower(PowerChange::SoftRestart) => "soft_restart",
            Action::ChangeBootSetting(BootSetting::Mode(_)) => "boot_mode",
            Action::ChangeBootSetting(BootSetting::SecureBoot(_)) => "secure_boot",
            Action::MakePassword => "make_password",
            Action::ChangePassword => "change_password",
            Action::ReadInventory => "read_inventory",
            Action::ReadBios => "read_bios",
            Action::ConfirmBios => "confirm_bios",
            Action::UpdateFirmware => "update_firmware",
            Action::ReadFirmware => "read_firmware",
            Action::ChangeRaid => "change_raid",
            Action::ReadRaid => "read_raid",
            Action::TakeInventory => "take_inventory",
            Action::BindVifs => "bind_vifs",
            Action::DetachVifs => "detach_vifs",
            Action::ReleaseVifs => "release_vifs",
            Action::Connect(_) => "connect",
            Action::Disconnect => "disconnect",
            Action::ChangeNetworks => "change_networks",
            Action::BootRamdisk => "boot_ramdisk",
            Action::BootDisk => "boot_disk",
            Action::BootOwnImage => "boot_own_image",
            Action::Command(AgentCommand::ListSteps(StepKind::Clean)) => "list_clean_steps",
            Action::Command(AgentCommand::ListSteps(StepKind::Deploy)) => "list_deploy_steps",
            Action::Command(AgentCommand::WriteImage) => "write_image",
            Action::Command(AgentCommand::ListPartitions) => "list_partitions",
            Action::Command(AgentCommand::SetNextBoot) => "set_next_boot",
            Action::Command(AgentCommand::Sync) => "sync",
            Action::Command(AgentCommand::FinalizeRescue) => "finalize_rescue",
            Action::Command(AgentCommand::PowerOff) => "shut_down",
            Action::Command(AgentCommand::ListSteps(StepKind::Service)) => "list_service_steps",
            Action::ConductorStep => "conductor_step",
            Action::Step => "step",
        }
    }
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionOutcome {
    /// The current task is done. The node has the facts that the action found.
    TaskDone(Box<Node>),
    /// The current task is done: the inventory was taken. The ports and the report are written together with the node.
    Inspected(Box<(Node, InspectionChanges)>),
    /// The recorded changes of the node's ports in Neutron are done, and the node records none.
    NetworksChanged(Box<Node>),
    /// The BMC accepted the change of power.
    PowerRequested,
    /// The BMC accepted the change of a boot setting.
    BootSettingAccepted,
    /// The node has a wanted password, for which the BMC was not asked.
    PasswordMade(Box<Node>),
    /// The BMC accepted the wanted password, or may have accepted it.
    PasswordAsked,
    /// The BMC refused the wanted password, so it has the present one.
    PasswordRefused(Problem),
    /// The BMC accepted BIOS settings that take effect when the machine starts again.
    BiosAccepted,
    /// The firmware does not have the requested BIOS settings. The text names them.
    BiosNotApplied(String),
    /// The requested updates of firmware are possible. The number tells how many there are.
    FirmwareChecked(usize),
    /// The BMC accepted an update of firmware, with this task.
    UpdateAccepted(Option<String>),
    /// The BMC refused an update of firmware, so it did not begin.
    UpdateRefused(Problem),
    /// The requested changes of RAID volumes are possible.
    RaidChecked(Vec<VolumeChange>),
    /// The BMC accepted the change of a RAID volume, with this task.
    RaidChangeAccepted(Option<String>),
    /// The BMC refused the change of a RAID volume, so it did not begin.
    RaidChangeRefused(Problem),
    CommandGiven,
    NoAgent,
    /// The machine, its BMC or its agent did not do as asked.
    Failed(Problem),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_action_has_a_name_of_its_own_in_logs() {
        use AgentCommand::{
            FinalizeRescue, ListPartitions, ListSteps, PowerOff, SetNextBoot, Sync, WriteImage,
        };
        use PowerChange::{ForceOff, ForceRestart, On, SoftOff, SoftRestart};

        let power = [On, ForceOff, SoftOff, ForceRestart, SoftRestart].map(Action::RequestPower);
        let lists = [StepKind::Clean, StepKind::Deploy, StepKind::Service].map(ListSteps);
        let commands = lists.into_iter().chain([
            WriteImage,
            ListPartitions,
            SetNextBoot,
            Sync,
            FinalizeRescue,
            PowerOff,
        ]);
        let commands = commands.map(Action::Command);
        let boots = [Action::BootRamdisk, Action::BootDisk, Action::BootOwnImage];
        let steps = [Action::Step, Action::ConductorStep];
        let settings = [BootSetting::Mode(hardware::BootMode::Uefi), BootSetting::SecureBoot(true)];
        let settings = settings.map(Action::ChangeBootSetting);
        let others = [Action::ReadInventory, Action::TakeInventory].into_iter().chain(steps);
        let others = others
            .chain([Action::ReadBios, Action::ConfirmBios, Action::BindVifs, Action::DetachVifs])
            .chain([Action::UpdateFirmware, Action::ReadFirmware])
            .chain([Action::ChangeRaid, Action::ReadRaid])
            .chain(settings)
            .chain([Action::ReleaseVifs, Action::Connect(ServiceNetwork::Cleaning)])
            .chain([Action::Disconnect, Action::ChangeNetworks])
            .chain([Action::MakePassword, Action::ChangePassword]);
        let all = power.into_iter().chain(commands).chain(boots).chain(others);
        let mut names = BTreeSet::new();
        for action in all {
            let is_word = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(is_word(action.name()) && !action.name().is_empty(), "{action:?}");
            assert!(names.insert(action.name()), "{action:?}");
        }
    }
}
