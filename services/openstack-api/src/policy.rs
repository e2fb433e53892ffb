//! Authorization: the check that runs before every handler with a caller.
//!
//! Each route has one [`Rule`]. The policy table shows the same rule that the check enforces.

use http::{Method, StatusCode};
use serde::Serialize;

use crate::caller::AccessScope;
use crate::{ApiError, Caller};

/// The roles of Keystone that this policy knows, each including the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May read.
    Reader,
    /// May create and change resources.
    Member,
    /// May also make decisions for a whole project.
    Manager,
    /// May do everything in the whole cloud.
    Admin,
}

/// The access that a route requires, unless the route has a rule of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredAccess {
    /// The route reads, and returns no secret.
    Read,
    /// The route changes something, or returns a secret.
    Change,
    /// The route is for administrators of the cloud.
    Administer,
}

/// Whether the resources of a service belong to projects or to the operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceOwnership {
    /// The resources belong to projects, and a role in a project gives access to the resources of that project. Handlers ask
    /// [`Caller::access_scope`].
    Projects,
    /// The resources belong to the operators. A project-scoped token gives access only if the rule of a route says so.
    Operators,
}

/// The state of an API's handlers, which also decides whom the resources belong to.
pub trait ApiState {
    const POLICY: ResourceOwnership;
}

/// The callers who may use a route, and the resources they may use it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The role required of callers who reach all resources.
    pub cloud: Role,
    /// Whether services of the cloud may use the route with all resources, whatever role other callers need.
    pub services: bool,
    /// The role required in the project that owns the resource; `None` if owners may not use the route.
    pub owner: Option<Role>,
    /// The role required in the project that the resource is lent to; `None` if lessees may not use the route.
    pub lessee: Option<Role>,
}

/// How a caller is related to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The caller reaches all resources.
    Cloud,
    /// The resource belongs to the caller's project.
    Owner,
    /// The resource is lent to the caller's project.
    Lessee,
}

impl Role {
    /// Parses Keystone's name of a role; `None` if the policy does not know the role.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "reader" => Some(Role::Reader),
            "member" | "service" => Some(Role::Member),
            "manager" => Some(Role::Manager),
            "admin" => Some(Role::Admin),
            _ => None,
        }
    }

    /// Keystone's name of the role.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Reader => "reader",
            Role::Member => "member",
            Role::Manager => "manager",
            Role::Admin => "admin",
        }
    }
}

impl RequiredAccess {
    /// The default need of a route with this method.
    pub fn of(method: &Method) -> Self {
        if method.is_safe() { RequiredAccess::Read } else { RequiredAccess::Change }
    }

    fn role(self) -> Role {
        match self {
            RequiredAccess::Read => Role::Reader,
            RequiredAccess::Change => Role::Member,
            RequiredAccess::Administer => Role::Admin,
        }
    }
}

impl ResourceOwnership {
    /// The rule of a route with this need and no rule of its own.
    pub(crate) fn rule(self, need: RequiredAccess) -> Rule {
        let cloud = need.role();
        let for_all = need != RequiredAccess::Administer;
        match self {
            ResourceOwnership::Projects => {
                Rule { cloud, services: false, owner: for_all.then_some(cloud), lessee: None }
            }
            ResourceOwnership::Operators => {
                Rule { cloud, services: for_all, owner: None, lessee: None }
            }
        }
    }
}

impl Rule {
    /// Lets every caller with any role read, for data that belongs to nobody.
    pub const ANY_READER: Rule = Rule {
        cloud: Role::Reader,
        services: true,
        owner: Some(Role::Reader),
        lessee: Some(Role::Reader),
    };

    /// Lets administrators read everything and managers the data of their project, for the audit trail.
    pub const TRAIL: Rule =
        Rule { cloud: Role::Admin, services: false, owner: Some(Role::Manager), lessee: None };

    /// The role required of a caller with this relation; `None` if such callers may not use the route.
    pub fn role(self, bond: Relation) -> Option<Role> {
        match bond {
            Relation::Cloud => Some(self.cloud),
            Relation::Owner => self.owner,
            Relation::Lessee => self.lessee,
        }
    }

    /// The lowest role that permits anything in a project.
    fn lowest_project_role(self) -> Option<Role> {
        self.owner.into_iter().chain(self.lessee).min()
    }

    /// Refuses with 403 a caller who may not use the route with any resource.
    pub(crate) fn admit(self, caller: &Caller) -> Result<(), ApiError> {
        if caller.role().is_none() {
            let why = "you have none of the roles reader, member, manager and admin in this scope";
            return Err(forbidden(why));
        }
        match (caller.access_scope(), self.lowest_project_role()) {
            (AccessScope::Everything, _) => self.check(caller, Relation::Cloud),
            (AccessScope::Project(_), Some(least)) => lacks(caller, least),
            (AccessScope::Project(_), None) => Err(forbidden(operators())),
            (AccessScope::Nothing, _) => {
                Err(forbidden("your token is not scoped to a project: authenticate with a project"))
            }
        }
    }

    /// Refuses with 403 a caller who may not use the route with a resource of this relation.
    ///
    /// # Errors
    ///
    /// Names the role that the caller lacks.
    pub fn check(self, caller: &Caller, bond: Relation) -> Result<(), ApiError> {
        match self.role(bond) {
            Some(_) if bond == Relation::Cloud && self.services && caller.is_service() => Ok(()),
            Some(role) => lacks(caller, role),
            None if bond == Relation::Lessee && self.owner.is_some() => Err(forbidden(
                "only the owning project may do this; your project is only the lessee",
            )),
            None => Err(forbidden(operators())),
        }
    }
}

fn lacks(caller: &Caller, needed: Role) -> Result<(), ApiError> {
    match caller.role() {
        Some(role) if role >= needed => Ok(()),
        role => {
            let yours = role.map_or("none", Role::as_str);
            let needed = needed.as_str();
            Err(forbidden(&format!("this requires the role {needed}; your role is {yours}")))
        }
    }
}

fn operators() -> &'static str {
    "only operators may do this: it requires the role admin, or a token that is valid in the whole cloud"
}

fn forbidden(why: &str) -> ApiError {
    ApiError::protocol(StatusCode::FORBIDDEN, why)
}

#[cfg(test)]
mod tests;
