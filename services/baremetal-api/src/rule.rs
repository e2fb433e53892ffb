//! Access rules for nodes, by owner and lessee, following Ironic's policy.
//!
//! The project of the owner operates the machine; the project of the lessee uses it. The names in capitals are rules of
//! `ironic/common/policy.py`. If such a rule requires the role `admin` in a project, Ironic accepts `manager` as well. The rules here
//! require `manager`, because an administrator of any project is an administrator of the cloud.

use openstack_api::{Role, Rule};

/// See that a node exists: Ironic's `SYSTEM_OR_PROJECT_READER`.
pub(crate) const READ: Rule = rule(Role::Reader, Some(Role::Reader), Some(Role::Reader));
/// See how a machine is operated (history, inventory, failures), which reveals details of its site: `SYSTEM_OR_OWNER_READER`.
pub(crate) const READ_DETAILS: Rule = rule(Role::Reader, Some(Role::Reader), None);
/// See what belongs to no project: `SYSTEM_READER`.
pub(crate) const READ_SHARED: Rule = rule(Role::Reader, None, None);
/// Use a machine: `SYSTEM_OR_PROJECT_MEMBER`.
pub(crate) const USE: Rule = rule(Role::Member, Some(Role::Member), Some(Role::Member));
/// Install a machine and give it back: `SYSTEM_OR_OWNER_MEMBER_AND_LESSEE_ADMIN`.
pub(crate) const INSTALL: Rule = rule(Role::Member, Some(Role::Member), Some(Role::Manager));
/// Operate a machine: `SYSTEM_MEMBER_OR_OWNER_MEMBER`.
pub(crate) const OPERATE: Rule = rule(Role::Member, Some(Role::Member), None);
/// See an allocation: `SYSTEM_READER` or `ALLOCATION_OWNER_READER`.
pub(crate) const SEE_ALLOCATION: Rule = rule(Role::Reader, Some(Role::Reader), None);
/// Create and delete an allocation: `SYSTEM_MEMBER` or `ALLOCATION_OWNER_MEMBER`.
pub(crate) const ALLOCATE: Rule = rule(Role::Member, Some(Role::Member), None);
/// See the runbooks of a project: `RUNBOOK_READER`.
pub(crate) const SEE_RUNBOOK: Rule = rule(Role::Reader, Some(Role::Reader), None);
/// Create, change, delete and use a runbook: `RUNBOOK_CREATOR` and `RUNBOOK_ADMIN`.
pub(crate) const USE_RUNBOOK: Rule = rule(Role::Member, Some(Role::Manager), None);
/// Set the driver and interfaces of a machine: `SYSTEM_MEMBER_OR_OWNER_ADMIN`.
pub(crate) const SET_DRIVER: Rule = rule(Role::Member, Some(Role::Manager), None);
/// Set the port addresses of a machine: `SYSTEM_ADMIN_OR_OWNER_ADMIN`.
pub(crate) const SET_PORTS: Rule = rule(Role::Admin, Some(Role::Manager), None);
/// Create and delete the volumes of a machine: `SYSTEM_MEMBER_OR_OWNER_LESSEE_ADMIN`.
pub(crate) const SET_VOLUMES: Rule = rule(Role::Member, Some(Role::Manager), Some(Role::Manager));
/// Set the owner and the conductor group of a machine, and the owner of a runbook: `SYSTEM_MEMBER`.
pub(crate) const SET_OWNER: Rule = rule(Role::Member, None, None);
/// Enroll a machine: `SYSTEM_ADMIN` or `SYSTEM_SERVICE`.
pub(crate) const ENROLL: Rule = rule(Role::Admin, None, None);
/// Reserved to administrators: `SYSTEM_ADMIN`.
pub(crate) const ADMINISTER: Rule = Rule { services: false, ..ENROLL };

const fn rule(cloud: Role, owner: Option<Role>, lessee: Option<Role>) -> Rule {
    Rule { cloud, services: true, owner, lessee }
}
