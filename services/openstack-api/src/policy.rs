//! Authorization: the check that runs before every handler with a caller.
//!
//! Each route has one [`Rule`]. The policy table shows the same rule that the check enforces.

use http::{Method, StatusCode};

use crate::{AccessScope, ApiError, Caller, Relation, Role, Rule};

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
    pub fn check(self, caller: &Caller, relation: Relation) -> Result<(), ApiError> {
        match self.role(relation) {
            Some(_) if relation == Relation::Cloud && self.services && caller.is_service() => {
                Ok(())
            }
            Some(role) => lacks(caller, role),
            None if relation == Relation::Lessee && self.owner.is_some() => Err(forbidden(
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
