//! Who may do what: the gate before every handler that has a caller.
//!
//! A route says what it needs ([`Need`]) where it is declared, a service says whose its things are ([`Policy`]).

use http::{Method, StatusCode};

use crate::caller::Reach;
use crate::{ApiError, Caller};

/// Keystone's own roles that mean something here, each more than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May look.
    Reader,
    /// May make and change things.
    Member,
    /// May do everything, everywhere.
    Admin,
}

/// What a route asks of its callers.
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
    /// The operators': whose token is only good in a project of the cloud has nothing to do with them.
    Operators,
}

impl Role {
    /// The role that Keystone calls this; `None` if it means nothing here.
    pub fn named(name: &str) -> Option<Self> {
        // Keystone 2023.2 put `manager` between: nothing here is for managers and not for members.
        match name {
            "reader" => Some(Role::Reader),
            "member" | "manager" | "service" => Some(Role::Member),
            "admin" => Some(Role::Admin),
            _ => None,
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
    /// Refuses with 403 what the caller may not do.
    pub(crate) fn check(self, caller: &Caller, need: Need) -> Result<(), ApiError> {
        let Some(role) = caller.role() else {
            return Err(forbidden("none of the roles reader, member and admin is yours here"));
        };
        if role < need.role() {
            return Err(forbidden(match need {
                Need::Read | Need::Change => "this needs the role member, and yours is reader",
                Need::Administer => "this needs the role admin",
            }));
        }
        match (self, caller.reach()) {
            (Policy::Projects | Policy::Operators, Reach::Everything)
            | (Policy::Projects, Reach::Project(_)) => Ok(()),
            (Policy::Projects, Reach::Nothing) => {
                Err(forbidden("your token is valid in no project: name one when you authenticate"))
            }
            (Policy::Operators, Reach::Project(_) | Reach::Nothing) => match caller.is_service() {
                true => Ok(()),
                false => Err(forbidden(
                    "this is for operators: it needs the role admin, or a token that is valid in the whole cloud",
                )),
            },
        }
    }
}

fn forbidden(why: &str) -> ApiError {
    ApiError::protocol(StatusCode::FORBIDDEN, why)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openstack::Identity;

    use super::*;

    fn caller(scope: &str, roles: &[&str]) -> Caller {
        let identity = Identity {
            roles: roles.iter().map(|&role| role.to_owned()).collect(),
            project_id: (scope == "project").then(|| "p".to_owned()),
            system: scope == "system",
            ..Identity::default()
        };
        Caller::known(Arc::new(identity), None)
    }

    /// Which needs are met.
    #[track_caller]
    fn check(policy: Policy, scope: &str, roles: &[&str], want: &[Need]) {
        let caller = caller(scope, roles);
        let mut may = vec![Need::Read, Need::Change, Need::Administer];
        may.retain(|need| policy.check(&caller, *need).is_ok());
        assert_eq!(may, want);
    }

    #[test]
    fn who_has_a_role_in_a_project_may_what_it_says() {
        use Need::{Administer, Change, Read};
        check(Policy::Projects, "project", &["reader"], &[Read]);
        check(Policy::Projects, "project", &["member", "reader"], &[Read, Change]);
        check(Policy::Projects, "project", &["admin"], &[Read, Change, Administer]);
        check(Policy::Projects, "project", &["load-balancer_member"], &[]);
        check(Policy::Projects, "project", &[], &[]);
        check(Policy::Projects, "domain", &["member"], &[]);
        check(Policy::Projects, "system", &["reader"], &[Read]);
    }

    #[test]
    fn machines_are_for_those_who_run_the_cloud() {
        use Need::{Administer, Change, Read};
        check(Policy::Operators, "project", &["member", "reader"], &[]);
        check(Policy::Operators, "project", &["admin"], &[Read, Change, Administer]);
        check(Policy::Operators, "project", &["service"], &[Read, Change]);
        check(Policy::Operators, "system", &["reader"], &[Read]);
        check(Policy::Operators, "system", &["member"], &[Read, Change]);
        check(Policy::Operators, "domain", &["admin"], &[Read, Change, Administer]);
    }

    #[test]
    fn without_keystone_who_is_let_in_may_everything() {
        for caller in [Caller::anyone(), Caller::named("ann".to_owned())] {
            assert_eq!(Policy::Operators.check(&caller, Need::Administer), Ok(()));
            assert_eq!(Policy::Projects.check(&caller, Need::Administer), Ok(()));
        }
    }
}
