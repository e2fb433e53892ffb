//! Who is asking, as far as it was proven.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use openstack::Identity;

use crate::{ApiError, Auth, Need, Policy, Role};

/// Someone who may call. There is no other way to make one than to have been let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(Who);

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
        Caller(Who::Anyone)
    }

    pub(crate) fn named(name: String) -> Self {
        Caller(Who::Named(name))
    }

    pub(crate) fn known(identity: Arc<Identity>, service: Option<Arc<Identity>>) -> Self {
        Caller(Who::Known { identity, service })
    }

    /// By Keystone's word, where it was asked.
    pub fn identity(&self) -> Option<&Identity> {
        match &self.0 {
            Who::Anyone | Who::Named(_) => None,
            Who::Known { identity, .. } => Some(identity),
        }
    }

    /// The name that was proven; `None` where nobody asks for one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
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

    /// The highest role held where the token is valid. Without Keystone everybody who is let in is an administrator.
    pub fn role(&self) -> Option<Role> {
        match self.identity() {
            Some(identity) => identity.roles.iter().filter_map(|name| Role::named(name)).max(),
            None => Some(Role::Admin),
        }
    }

    /// What the caller can have to do with: administrators, and whose token is valid in the whole cloud, with everything.
    pub fn reach(&self) -> Reach<'_> {
        match self.identity() {
            None => Reach::Everything,
            Some(identity) if identity.system => Reach::Everything,
            Some(_) if self.role() == Some(Role::Admin) => Reach::Everything,
            Some(identity) => identity.project_id.as_deref().map_or(Reach::Nothing, Reach::Project),
        }
    }

    /// Whether the caller may do as administrators of the cloud do.
    pub fn is_admin(&self) -> bool {
        self.role() == Some(Role::Admin)
    }

    /// Whether this is a service of the cloud, or speaks through one: the role `service`, in its own token or in that which
    /// a service sent along.
    pub fn is_service(&self) -> bool {
        let of = |identity: &Identity| identity.roles.iter().any(|name| name == "service");
        match &self.0 {
            Who::Anyone | Who::Named(_) => false,
            Who::Known { identity, service } => {
                of(identity) || service.as_ref().is_some_and(|service| of(service))
            }
        }
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Auth: FromRef<S>,
    Policy: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Auth::from_ref(state).identify(&parts.headers).await?;
        let said = parts.extensions.get::<Need>().copied();
        let need = said.unwrap_or_else(|| Need::of(&parts.method));
        Policy::from_ref(state).check(&caller, need)?;
        Ok(caller)
    }
}
