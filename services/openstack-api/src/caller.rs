//! The authenticated caller of a request.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use openstack::Identity;

use crate::{Relation, Role, Rule};

/// An authenticated caller. Only authentication can make a `Caller`, so a handler with this argument cannot run without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    who: CallerIdentity,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum CallerIdentity {
    /// Authentication is disabled.
    Anyone,
    /// A user of the password file.
    Named(String),
    /// A user whose token Keystone validated, with the service user if the request carries a valid service token.
    Known { identity: Arc<Identity>, service: Option<Arc<Identity>> },
}

/// Which resources a caller can access at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessScope<'a> {
    /// All resources of the cloud.
    Everything,
    Project(&'a str),
    /// No resources: the token is unscoped, or scoped to a domain.
    Nothing,
}

impl Caller {
    pub(crate) fn anyone() -> Self {
        Caller::new(CallerIdentity::Anyone)
    }

    pub(crate) fn named(name: String) -> Self {
        Caller::new(CallerIdentity::Named(name))
    }

    pub(crate) fn known(identity: Arc<Identity>, service: Option<Arc<Identity>>) -> Self {
        Caller::new(CallerIdentity::Known { identity, service })
    }

    /// A caller before the gate of a route has set the rule.
    fn new(who: CallerIdentity) -> Self {
        let rule = Rule { cloud: Role::Admin, services: false, owner: None, lessee: None };
        Caller { who, rule }
    }

    /// The same caller at a route with this rule.
    pub(crate) fn with_rule(self, rule: Rule) -> Self {
        Caller { rule, ..self }
    }

    /// The rule of the route that the caller uses.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The identity from Keystone; `None` without Keystone.
    pub fn identity(&self) -> Option<&Identity> {
        match &self.who {
            CallerIdentity::Anyone | CallerIdentity::Named(_) => None,
            CallerIdentity::Known { identity, .. } => Some(identity),
        }
    }

    /// The authenticated user name; `None` if authentication is disabled.
    pub fn name(&self) -> Option<&str> {
        match &self.who {
            CallerIdentity::Anyone => None,
            CallerIdentity::Named(name) => Some(name),
            CallerIdentity::Known { identity, .. } => Some(&identity.user_name),
        }
    }

    /// The user that resources of this caller are marked with: Keystone's user id, or the user name without Keystone.
    pub fn user(&self) -> Option<&str> {
        self.identity().map(|identity| identity.user_id.as_str()).or_else(|| self.name())
    }

    /// The project that the token is scoped to.
    pub fn project(&self) -> Option<&str> {
        self.identity().and_then(|identity| identity.project_id.as_deref())
    }

    /// How long the caller's token is still valid; `None` if the caller has no token.
    pub fn remaining_validity(&self, now: Timestamp) -> Option<Duration> {
        let end = self.identity()?.expires_at;
        let left = end.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
        Some(left.unwrap_or(Duration::MAX))
    }

    /// The highest role that the caller has in the scope of the token. Without Keystone every authenticated caller is an administrator.
    pub fn role(&self) -> Option<Role> {
        match self.identity() {
            Some(identity) => identity.roles.iter().filter_map(|name| Role::named(name)).max(),
            None => Some(Role::Admin),
        }
    }

    /// The resources that the caller can access. System-scoped tokens and administrators of any project reach everything, and so do
    /// services if the rule says so. Other callers reach the resources of their project. A domain-scoped token reaches nothing.
    pub fn access_scope(&self) -> AccessScope<'_> {
        let Some(identity) = self.identity() else { return AccessScope::Everything };
        let over_all = self.is_admin() || (self.rule.services && self.is_service());
        match &identity.project_id {
            _ if identity.system => AccessScope::Everything,
            Some(_) if over_all => AccessScope::Everything,
            Some(project) => AccessScope::Project(project),
            None => AccessScope::Nothing,
        }
    }

    /// How the caller is related to a resource of the project `owner` that is lent to the project `lessee`. `None` if the caller must not
    /// learn that the resource exists.
    pub fn relation_to(&self, owner: Option<&str>, lessee: Option<&str>) -> Option<Relation> {
        match self.access_scope() {
            AccessScope::Everything => Some(Relation::Cloud),
            AccessScope::Project(own) if owner == Some(own) => Some(Relation::Owner),
            AccessScope::Project(own) if lessee == Some(own) => Some(Relation::Lessee),
            AccessScope::Project(_) | AccessScope::Nothing => None,
        }
    }

    /// Whether the caller has the role `admin` in the scope of the token.
    pub fn is_admin(&self) -> bool {
        self.role() == Some(Role::Admin)
    }

    /// Whether the caller is a service of the cloud: its own token has the role `service`.
    pub fn is_service(&self) -> bool {
        self.identity().is_some_and(|identity| identity.roles.iter().any(|name| name == "service"))
    }

    /// The service that forwarded the user's request and sent its own token along. The service token gives no additional rights.
    pub fn forwarding_service(&self) -> Option<&Identity> {
        match &self.who {
            CallerIdentity::Anyone | CallerIdentity::Named(_) => None,
            CallerIdentity::Known { service, .. } => service.as_deref(),
        }
    }
}
