//! Who may do what to a node: as Ironic's policy has it, by owner and lessee.
//!
//! An owner's project runs the machine, a lessee's uses it. Ironic's words are those of `ironic/common/policy.py`; where it
//! asks a project for the role `admin` it takes `manager` as well, and so is it here, where an administrator of any project
//! is the cloud's.

use openstack_api::{Role, Rule};

use crate::node::Field;

/// To have to do with a node at all: Ironic's `SYSTEM_OR_PROJECT_READER`.
pub(crate) const SEE: Rule = rule(Role::Reader, Some(Role::Reader), Some(Role::Reader));
/// To see what tells of the place a machine stands in: `SYSTEM_OR_OWNER_READER`.
pub(crate) const SEE_INSIDE: Rule = rule(Role::Reader, Some(Role::Reader), None);
/// To use a machine: `SYSTEM_OR_PROJECT_MEMBER`.
pub(crate) const USE: Rule = rule(Role::Member, Some(Role::Member), Some(Role::Member));
/// To install a machine, and to give it back: `SYSTEM_OR_OWNER_MEMBER_AND_LESSEE_ADMIN`.
pub(crate) const INSTALL: Rule = rule(Role::Member, Some(Role::Member), Some(Role::Manager));
/// To run a machine: `SYSTEM_MEMBER_OR_OWNER_MEMBER`.
pub(crate) const RUN: Rule = rule(Role::Member, Some(Role::Member), None);
/// To see an allocation: `SYSTEM_READER` or `ALLOCATION_OWNER_READER`.
pub(crate) const SEE_ALLOCATION: Rule = rule(Role::Reader, Some(Role::Reader), None);
/// To ask for a node, and to give it up: `SYSTEM_MEMBER` or `ALLOCATION_OWNER_MEMBER`.
pub(crate) const ALLOCATE: Rule = rule(Role::Member, Some(Role::Member), None);
/// To say how a machine is driven: `SYSTEM_MEMBER_OR_OWNER_ADMIN`.
pub(crate) const DRIVE: Rule = rule(Role::Member, Some(Role::Manager), None);
/// To say by which addresses a machine is known: `SYSTEM_ADMIN_OR_OWNER_ADMIN`.
pub(crate) const CONNECT: Rule = rule(Role::Admin, Some(Role::Manager), None);
/// To say whose a machine is, and who looks after it: `SYSTEM_MEMBER`.
pub(crate) const ASSIGN: Rule = rule(Role::Member, None, None);
/// To bring a machine in: `SYSTEM_ADMIN` or `SYSTEM_SERVICE`.
pub(crate) const ENROLL: Rule = rule(Role::Admin, None, None);
/// What is left to administrators: `SYSTEM_ADMIN`.
pub(crate) const ADMINISTER: Rule = Rule { services: false, ..ENROLL };

const fn rule(cloud: Role, owner: Option<Role>, lessee: Option<Role>) -> Rule {
    Rule { cloud, services: true, owner, lessee }
}

/// Who may change this field of a node.
pub(crate) fn writing(field: Field) -> Rule {
    match field {
        Field::Extra | Field::Description | Field::Protected | Field::ProtectedReason => USE,
        Field::InstanceInfo | Field::InstanceName | Field::Maintenance => INSTALL,
        Field::Driver | Field::Interface(_) => DRIVE,
        Field::Owner | Field::ConductorGroup | Field::ParentNode => ASSIGN,
        Field::ChassisUuid | Field::Shard | Field::DisablePowerOff | Field::AutomatedClean => {
            ADMINISTER
        }
        Field::Name
        | Field::DriverInfo
        | Field::Properties
        | Field::InstanceUuid
        | Field::Lessee
        | Field::NetworkData
        | Field::ResourceClass
        | Field::Retired
        | Field::RetiredReason => RUN,
        // Nobody changes these.
        Field::Uuid
        | Field::CreatedAt
        | Field::UpdatedAt
        | Field::DriverInternalInfo
        | Field::PowerState
        | Field::TargetPowerState
        | Field::ProvisionState
        | Field::TargetProvisionState
        | Field::ProvisionUpdatedAt
        | Field::LastError
        | Field::MaintenanceReason
        | Field::ConsoleEnabled
        | Field::Reservation
        | Field::InspectionStartedAt
        | Field::InspectionFinishedAt
        | Field::CleanStep
        | Field::DeployStep
        | Field::ServiceStep
        | Field::RaidConfig
        | Field::TargetRaidConfig
        | Field::Traits
        | Field::Fault
        | Field::Health
        | Field::Conductor
        | Field::AllocationUuid
        | Field::BootMode
        | Field::SecureBoot
        | Field::Links
        | Field::Ports
        | Field::States
        | Field::Portgroups
        | Field::Volume => ADMINISTER,
    }
}

/// Whether a lessee is shown this field: none that tells of the place the machine stands in, as in Ironic, where such a one
/// is there and says that it may not be seen. Here it is absent.
pub(crate) fn shown_to_lessees(field: Field) -> bool {
    !matches!(
        field,
        Field::DriverInfo
            | Field::DriverInternalInfo
            | Field::LastError
            | Field::Reservation
            | Field::Conductor
    )
}
