//! An authenticated request, and the resources that its caller may use.

use axum::extract::FromRequestParts;
use cluster_conductor::ObjectUser;
use cluster_core::{Cluster, ClusterParameters, Ident, NodeGroup, Template};
use cluster_store::Scope;
use http::StatusCode;
use http::request::Parts;
use openstack_api::{AccessScope, ApiError, Authenticated, Caller, Microversion, callers_token};
use secrecy::SecretString;

use crate::app::App;
use crate::error::Result;

/// An authenticated request, from which every handler takes the state of the API, the caller and the version.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    pub(crate) asked: Microversion,
    /// The caller's token of Keystone. Only for calls that the caller's own rights permit; it is never stored.
    pub(crate) token: Option<SecretString>,
}

impl FromRequestParts<App> for Request {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let asked = Microversion::from_request_parts(parts, app).await?;
        let token = caller.identity().and_then(|_| callers_token(&parts.headers));
        Ok(Request { app: app.clone(), caller, asked, token })
    }
}

impl Authenticated for Request {
    fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl Request {
    /// The projects whose resources the caller may see.
    pub(crate) fn scope(&self) -> Scope {
        match (self.caller.identity(), self.caller.access_scope()) {
            (None, _) => Scope::Project(self.app.settings.project.clone()),
            (Some(_), AccessScope::Everything) => Scope::All,
            (Some(_), AccessScope::Project(own)) => Scope::Project(own.to_owned()),
            // A caller without reach is refused before any handler. The empty id is a safe fallback, because no project has this id.
            (Some(_), AccessScope::Nothing) => Scope::Project(String::new()),
        }
    }

    /// The project that owns the resources that the caller creates.
    pub(crate) fn project(&self) -> Result<&str, ApiError> {
        if self.caller.identity().is_none() {
            return Ok(&self.app.settings.project);
        }
        self.caller.project().ok_or_else(|| {
            ApiError::bad_request(
                "your token has no project, and a new resource needs one: authenticate with a project",
            )
        })
    }

    /// The scopes in which names are looked up, in this order: the caller's own project first.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        let own = self.project().ok().map(|own| Scope::Project(own.to_owned()));
        let all = Some(self.scope()).filter(|all| own.as_ref() != Some(all));
        own.into_iter().chain(all).collect()
    }

    /// The caller's user id, which marks the resources that the caller creates.
    pub(crate) fn user(&self) -> String {
        self.caller.user().unwrap_or("anonymous").to_owned()
    }

    /// Refuses a caller for whose project clusterd cannot create clusters, before anything else is checked. Without Keystone there is only
    /// clusterd's own project.
    pub(crate) async fn admit(&self) -> Result<()> {
        let Some((identity, id)) = self.caller.identity().zip(self.caller.project()) else {
            return Ok(());
        };
        let name = identity.project_name.as_deref().unwrap_or(id);
        Ok(self.app.conductor.admit(id, name).await?)
    }

    /// Replaces the names in `wanted` that differ from `before` by ids, and refuses objects that the caller's project may not use. Without
    /// Keystone there is only one project, which may use everything that clusterd may use.
    pub(crate) async fn borrowed(
        &self,
        before: Option<&ClusterParameters>,
        wanted: ClusterParameters,
    ) -> Result<ClusterParameters> {
        match self.caller.identity() {
            None => Ok(wanted),
            Some(_) => Ok(self.app.conductor.borrow(self.borrower(), before, wanted).await?),
        }
    }

    /// As [`Request::borrowed`], for a new record of `project` that an administrator imports.
    pub(crate) async fn borrowed_for(
        &self,
        project: &str,
        wanted: ClusterParameters,
    ) -> Result<ClusterParameters> {
        let who = ObjectUser { project, is_admin: true };
        match self.caller.identity() {
            None => Ok(wanted),
            Some(_) => Ok(self.app.conductor.borrow(who, None, wanted).await?),
        }
    }

    /// Returns the public key of the keypair `name` of the caller. `None` without Keystone, where servers get keypairs of clusterd's own user.
    pub(crate) async fn ssh_key(&self, name: &str) -> Result<Option<String>> {
        let Some((token, project)) = self.token.as_ref().zip(self.caller.project()) else {
            return Ok(None);
        };
        Ok(self.app.conductor.callers_key(project, token, name).await?)
    }

    /// Refuses a flavor that servers of this cluster cannot have.
    pub(crate) async fn check_flavor(&self, cluster: &Cluster, given: &str) -> Result<()> {
        match self.caller.identity() {
            None => Ok(()),
            Some(_) => Ok(self.app.conductor.check_flavor_of(cluster, given).await?),
        }
    }

    /// Resolves the image `given` to its id, and refuses an image that the caller's project may not use for members of this cluster.
    pub(crate) async fn resolve_image(&self, cluster: &Cluster, given: String) -> Result<String> {
        match self.caller.identity() {
            None => Ok(given),
            Some(_) => {
                Ok(self.app.conductor.borrow_image(self.borrower(), cluster, &given).await?)
            }
        }
    }

    /// Finds the template with this id or name.
    pub(crate) async fn template(&self, ident: &str) -> Result<Template> {
        let missing = || missing("ClusterTemplate", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.scopes() {
            let found = self.app.store.find_templates(&parsed, &scope).await?;
            let is_own =
                |it: &Template| scope == Scope::All || scope == Scope::Project(it.project.clone());
            // As in Magnum, other projects do not see a hidden template.
            if let Some(found) = found.into_iter().find(|it| !it.hidden || is_own(it)) {
                return Ok(found);
            }
        }
        Err(missing().into())
    }

    /// Finds the cluster with this id or name.
    pub(crate) async fn cluster(&self, ident: &str) -> Result<Cluster> {
        let missing = || missing("Cluster", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.scopes() {
            let mut found = self.app.store.find_clusters(&parsed, &scope).await?.into_iter();
            match (found.next(), found.next(), &scope) {
                (Some(_), Some(_), Scope::All) => {
                    let why = format!("several projects have a Cluster {ident}: use its id");
                    return Err(ApiError::conflict(why).into());
                }
                (Some(found), ..) => return Ok(found),
                (None, ..) => {}
            }
        }
        Err(missing().into())
    }

    /// Finds the node group of `cluster` with this id or name.
    pub(crate) async fn group(&self, cluster: &Cluster, ident: &str) -> Result<NodeGroup> {
        let groups = self.app.store.groups_of(cluster.id).await?;
        let named = groups
            .into_iter()
            .find(|group| group.name.as_str() == ident || group.id.to_string() == ident);
        Ok(named.ok_or_else(|| missing("Nodegroup", ident))?)
    }

    fn borrower(&self) -> ObjectUser<'_> {
        let project = self.caller.project().unwrap_or_default();
        ObjectUser { project, is_admin: self.caller.is_admin() }
    }
}

/// Magnum's message for a resource that does not exist.
pub(crate) fn missing(what: &str, ident: &str) -> ApiError {
    let ident: String = ident.chars().take(64).collect();
    ApiError::not_found(format!("{what} {ident} could not be found."))
}

pub(crate) fn may_see_project(caller: &Caller, project: &str) -> bool {
    match caller.access_scope() {
        AccessScope::Everything => true,
        AccessScope::Project(own) => own == project,
        AccessScope::Nothing => false,
    }
}

/// The refusal of a field that names another project.
pub(crate) fn other_project_refusal(field: &str) -> ApiError {
    let why = format!("{field}: only administrators may see or change other projects");
    ApiError::new(StatusCode::FORBIDDEN, why)
}
