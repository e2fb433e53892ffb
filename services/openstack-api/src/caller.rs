//! Who is asking, as far as it was proven.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use jiff::Timestamp;
use openstack::Identity;

use crate::limits::{Limiter, SeatOf};
use crate::policy::Bond;
use crate::routes::Gate;
use crate::watch::Watch;
use crate::{ApiError, Auth, Role, Rule};

/// Someone who may call. There is no other way to make one than to have been let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    who: Who,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    /// Nobody was asked for a name.
    Anyone,
    /// A name of the password file.
    Named(String),
    /// Whose token Keystone vouched for, and whose service token if one came along.
    Known { identity: Arc<Identity>, service: Option<Arc<Identity>> },
}

/// What a caller can have to do with at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'a> {
    /// Everything there is.
    Everything,
    /// What is of this project.
    Project(&'a str),
    /// Nothing: the token is valid nowhere, or in a domain.
    Nothing,
}

impl Caller {
    pub(crate) fn anyone() -> Self {
        Caller::new(Who::Anyone)
    }

    pub(crate) fn named(name: String) -> Self {
        Caller::new(Who::Named(name))
    }

    pub(crate) fn known(identity: Arc<Identity>, service: Option<Arc<Identity>>) -> Self {
        Caller::new(Who::Known { identity, service })
    }

    /// Who it is, before it came to a gate.
    fn new(who: Who) -> Self {
        let rule = Rule { cloud: Role::Admin, services: false, owner: None, lessee: None };
        Caller { who, rule }
    }

    /// The same, at a gate of this rule.
    pub(crate) fn under(self, rule: Rule) -> Self {
        Caller { rule, ..self }
    }

    /// The rule by which the caller was let in.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// By Keystone's word, where it was asked.
    pub fn identity(&self) -> Option<&Identity> {
        match &self.who {
            Who::Anyone | Who::Named(_) => None,
            Who::Known { identity, .. } => Some(identity),
        }
    }

    /// The name that was proven; `None` where nobody asks for one.
    pub fn name(&self) -> Option<&str> {
        match &self.who {
            Who::Anyone => None,
            Who::Named(name) => Some(name),
            Who::Known { identity, .. } => Some(&identity.user_name),
        }
    }

    /// By what things of the caller's are marked: Keystone's id of the user, or the name where there is no Keystone.
    pub fn user(&self) -> Option<&str> {
        self.identity().map(|identity| identity.user_id.as_str()).or_else(|| self.name())
    }

    /// The project that the token is valid in.
    pub fn project(&self) -> Option<&str> {
        self.identity().and_then(|identity| identity.project_id.as_deref())
    }

    /// How long the caller's token lasts still; `None` for who showed none.
    pub fn lasts(&self, now: Timestamp) -> Option<Duration> {
        let end = self.identity()?.expires_at;
        let left = end.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
        Some(left.unwrap_or(Duration::MAX))
    }

    /// The highest role held where the token is valid. Without Keystone everybody who is let in is an administrator.
    pub fn role(&self) -> Option<Role> {
        match self.identity() {
            Some(identity) => identity.roles.iter().filter_map(|name| Role::named(name)).max(),
            None => Some(Role::Admin),
        }
    }

    /// What the caller can have to do with: whose token is valid in the whole cloud, administrators of any project, and
    /// services where the rule says so, with everything; others with what is of their project. A domain has nothing here.
    pub fn reach(&self) -> Reach<'_> {
        let Some(identity) = self.identity() else { return Reach::Everything };
        let over_all = self.is_admin() || (self.rule.services && self.is_service());
        match &identity.project_id {
            _ if identity.system => Reach::Everything,
            Some(_) if over_all => Reach::Everything,
            Some(project) => Reach::Project(project),
            None => Reach::Nothing,
        }
    }

    /// What the caller has to do with a thing of `owner` that is lent to `lessee`; `None`: nothing, and it is not to be told
    /// from one that is not there.
    pub fn bond(&self, owner: Option<&str>, lessee: Option<&str>) -> Option<Bond> {
        match self.reach() {
            Reach::Everything => Some(Bond::Cloud),
            Reach::Project(own) if owner == Some(own) => Some(Bond::Owner),
            Reach::Project(own) if lessee == Some(own) => Some(Bond::Lessee),
            Reach::Project(_) | Reach::Nothing => None,
        }
    }

    /// Whether the caller holds the role `admin` where the token is valid.
    pub fn is_admin(&self) -> bool {
        self.role() == Some(Role::Admin)
    }

    /// Whether this is a service of the cloud: the role `service`, in its own token.
    pub fn is_service(&self) -> bool {
        self.identity().is_some_and(|identity| identity.roles.iter().any(|name| name == "service"))
    }

    /// The service that sends a user's request on, by its own token. Nobody may do more by it.
    pub fn through(&self) -> Option<&Identity> {
        match &self.who {
            Who::Anyone | Who::Named(_) => None,
            Who::Known { service, .. } => service.as_deref(),
        }
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let limits = parts.extensions.get::<(Arc<Limiter>, SeatOf)>().cloned();
        let limits = limits.ok_or_else(|| ApiError::broken("this route has no manners"))?;
        let (limiter, seat) = limits;
        let door = limiter.door(parts);
        let caller = Auth::from_ref(state).identify(&parts.headers, &door).await?;
        // Nothing but `Routes` makes routes of handlers, and that never without a gate; nothing but `apply` serves them.
        let gate = parts.extensions.get::<Gate>().copied();
        let gate = gate.ok_or_else(|| ApiError::broken("this route has no rule"))?;
        let watch = parts.extensions.get::<Watch>().cloned();
        let watch = watch.ok_or_else(|| ApiError::broken("nobody records what is asked here"))?;
        watch.is_by(&caller);
        // One that has one already keeps it.
        let _ = seat.set(limiter.seat(&caller, &parts.method)?);
        let caller = caller.under(gate.rule);
        gate.rule.admit(&caller)?;
        if let Some(action) = gate.recorded {
            watch.ask(action, parts).await?;
        }
        Ok(caller)
    }
}
