//! Who may do what: the gate before every handler that has a caller.
//!
//! Each route has a [`Rule`], which its row in the table shows and the gate before it reads: there is one of each.

use http::{Method, StatusCode};
use serde::Serialize;

use crate::caller::Reach;
use crate::{ApiError, Caller};

/// Keystone's own roles that mean something here, each more than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May look.
    Reader,
    /// May make and change things.
    Member,
    /// May also do what a project's members do not decide alone.
    Manager,
    /// May do everything, everywhere.
    Admin,
}

/// What a route asks of its callers, where it has no rule of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It shows things, and no secret.
    Read,
    /// It changes things, or tells a secret.
    Change,
    /// It is for administrators of the cloud.
    Administer,
}

/// Whose the things of a service are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Projects': whoever has a role in one has to do with what is its own. Handlers ask [`Caller::reach`].
    Projects,
    /// The operators': whose token is only good in a project has to do with them only where a route's rule says so.
    Operators,
}

/// What the handlers of an API work with: it says whose the things are.
pub trait Ward {
    /// Whose they are.
    const POLICY: Policy;
}

/// Who may use a route, and with which things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The role it takes of those who have to do with everything.
    pub cloud: Role,
    /// Whether services of the cloud have to do with everything here, whatever role it takes of others.
    pub services: bool,
    /// The role it takes in the project that a thing is of; `None`: it is not for projects.
    pub owner: Option<Role>,
    /// The role it takes in the project that a thing is lent to; `None`: it is not for those.
    pub lessee: Option<Role>,
}

/// What a caller has to do with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// It has to do with everything.
    Cloud,
    /// The thing is of the caller's project.
    Owner,
    /// The thing is lent to the caller's project.
    Lessee,
}

impl Role {
    /// The role that Keystone calls this; `None` if it means nothing here.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "reader" => Some(Role::Reader),
            "member" | "service" => Some(Role::Member),
            "manager" => Some(Role::Manager),
            "admin" => Some(Role::Admin),
            _ => None,
        }
    }

    /// Keystone's name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Reader => "reader",
            Role::Member => "member",
            Role::Manager => "manager",
            Role::Admin => "admin",
        }
    }
}

impl Need {
    /// What a route needs that does not say otherwise.
    pub fn of(method: &Method) -> Self {
        if method.is_safe() { Need::Read } else { Need::Change }
    }

    fn role(self) -> Role {
        match self {
            Need::Read => Role::Reader,
            Need::Change => Role::Member,
            Need::Administer => Role::Admin,
        }
    }
}

impl Policy {
    /// The rule of a route that has none of its own.
    pub(crate) fn rule(self, need: Need) -> Rule {
        let cloud = need.role();
        let for_all = need != Need::Administer;
        match self {
            Policy::Projects => {
                Rule { cloud, services: false, owner: for_all.then_some(cloud), lessee: None }
            }
            Policy::Operators => Rule { cloud, services: for_all, owner: None, lessee: None },
        }
    }
}

impl Rule {
    /// For what is of nobody: whoever has a role at all may look.
    pub const LOOK: Rule = Rule {
        cloud: Role::Reader,
        services: true,
        owner: Some(Role::Reader),
        lessee: Some(Role::Reader),
    };

    /// For what was asked by a project's people: of projects, for those who manage them.
    pub const TRAIL: Rule =
        Rule { cloud: Role::Admin, services: false, owner: Some(Role::Manager), lessee: None };

    /// The role it takes of who has this bond; `None`: it is not for such.
    pub fn role(self, bond: Bond) -> Option<Role> {
        match bond {
            Bond::Cloud => Some(self.cloud),
            Bond::Owner => self.owner,
            Bond::Lessee => self.lessee,
        }
    }

    /// The least role by which anything at all may be done in a project.
    fn least(self) -> Option<Role> {
        self.owner.into_iter().chain(self.lessee).min()
    }

    /// Refuses with 403 who can use the route with nothing.
    pub(crate) fn admit(self, caller: &Caller) -> Result<(), ApiError> {
        if caller.role().is_none() {
            let why = "none of the roles reader, member, manager and admin is yours here";
            return Err(forbidden(why));
        }
        match (caller.reach(), self.least()) {
            (Reach::Everything, _) => self.check(caller, Bond::Cloud),
            (Reach::Project(_), Some(least)) => lacks(caller, least),
            (Reach::Project(_), None) => Err(forbidden(operators())),
            (Reach::Nothing, _) => {
                Err(forbidden("your token is valid in no project: name one when you authenticate"))
            }
        }
    }

    /// Refuses with 403 what the caller may not do to a thing that it has this to do with.
    ///
    /// # Errors
    ///
    /// What it would take.
    pub fn check(self, caller: &Caller, bond: Bond) -> Result<(), ApiError> {
        match self.role(bond) {
            Some(_) if bond == Bond::Cloud && self.services && caller.is_service() => Ok(()),
            Some(role) => lacks(caller, role),
            None if bond == Bond::Lessee && self.owner.is_some() => {
                Err(forbidden("this is for the project that owns it: it is only lent to yours"))
            }
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
            Err(forbidden(&format!("this needs the role {needed}, and yours is {yours}")))
        }
    }
}

fn operators() -> &'static str {
    "this is for operators: it needs the role admin, or a token that is valid in the whole cloud"
}

fn forbidden(why: &str) -> ApiError {
    ApiError::protocol(StatusCode::FORBIDDEN, why)
}

#[cfg(test)]
mod tests;
