//! The state that every handler works with.

use axum::extract::FromRef;
use cluster_conductor::{Conductor, ObjectUser, Tenancy};
use cluster_core::{
    Cluster, ClusterParameters, DefaultLimits, Event, Ident, NodeGroup, Severity, Template,
};
use cluster_store::{Scope, Store};
use http::StatusCode;
use jiff::Timestamp;
use lease::{LeaseSchedule, Terms};
use openstack_api::{
    AccessScope, ApiError, ApiSettings, ApiState, Auth, Caller, ResourceOwnership,
};
use uuid::Uuid;

use crate::error::Error;
use crate::streams::Streams;

/// The state that every handler works with.
#[derive(Clone)]
pub struct App {
    pub store: Store,
    /// Carries out changes of clusters and VMs.
    pub conductor: Conductor,
    pub clock: fn() -> Timestamp,
    /// Makes new random ids.
    pub ids: fn() -> Uuid,
    pub auth: Auth,
    /// The open event streams.
    pub streams: Streams,
    pub settings: Settings,
}

/// The settings of the API, from the configuration file.
#[derive(Clone, Debug)]
pub struct Settings {
    pub api: ApiSettings,
    /// The project of all callers if Keystone is not used.
    pub project: String,
    /// The limits of projects and users for whom an administrator set none.
    pub quotas: DefaultLimits,
    /// The default and maximum duration of cluster leases.
    pub leases: Terms,
    /// The stages at the end of a cluster's lease.
    pub ladder: LeaseSchedule,
    /// The leases of VMs.
    pub machines: LeaseSettings,
}

/// How long something is lent, and the stages at the end of the lease.
#[derive(Clone, Debug, Default)]
pub struct LeaseSettings {
    /// The default and maximum duration.
    pub terms: Terms,
    /// The stages before and after the end of a lease.
    pub ladder: LeaseSchedule,
}

impl App {
    /// The projects whose resources the caller may see.
    pub(crate) fn scope(&self, caller: &Caller) -> Scope {
        match (caller.identity(), caller.access_scope()) {
            (None, _) => Scope::Project(self.settings.project.clone()),
            (Some(_), AccessScope::Everything) => Scope::All,
            (Some(_), AccessScope::Project(own)) => Scope::Project(own.to_owned()),
            // A caller without reach is refused before any handler. The empty id is a safe fallback, because no project has this id.
            (Some(_), AccessScope::Nothing) => Scope::Project(String::new()),
        }
    }

    /// The project that owns the resources that the caller creates.
    pub(crate) fn project<'a>(&'a self, caller: &'a Caller) -> Result<&'a str, ApiError> {
        if caller.identity().is_none() {
            return Ok(&self.settings.project);
        }
        caller.project().ok_or_else(|| {
            ApiError::bad_request(
                "your token has no project, and a new resource needs one: authenticate with a project",
            )
        })
    }

    /// The scopes in which names are looked up, in this order: the caller's own project first.
    pub(crate) fn scopes(&self, caller: &Caller) -> Vec<Scope> {
        let own = self.project(caller).ok().map(|own| Scope::Project(own.to_owned()));
        let all = Some(self.scope(caller)).filter(|all| own.as_ref() != Some(all));
        own.into_iter().chain(all).collect()
    }

    /// The caller's user id, which marks the resources that the caller creates.
    pub(crate) fn user(&self, caller: &Caller) -> String {
        caller.user().unwrap_or("anonymous").to_owned()
    }

    /// Refuses a caller for whose project clusterd cannot create clusters, before anything else is checked. Without Keystone there is only
    /// clusterd's own project.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<(), Error> {
        let Some((identity, id)) = caller.identity().zip(caller.project()) else { return Ok(()) };
        let name = identity.project_name.as_deref().unwrap_or(id);
        Ok(self.conductor.admit(id, name).await?)
    }

    /// Returns the blueprint whose names need no new permission check for a cluster of this template.
    ///
    /// The template's names were checked for its own project when the template was written. The check holds for the cluster if both have
    /// the same project, or if all clusters share one project of the cloud.
    pub(crate) fn checked_blueprint<'t>(
        &self,
        template: &'t Template,
        project: &str,
    ) -> Option<&'t ClusterParameters> {
        let is_same = self.conductor.tenancy() == Tenancy::Shared || template.project == project;
        is_same.then_some(&template.blueprint)
    }

    /// Replaces the names in `wanted` that differ from `before` by ids, and refuses objects that the caller's project may not use. Without
    /// Keystone there is only one project, which may use everything that clusterd may use.
    pub(crate) async fn borrowed(
        &self,
        caller: &Caller,
        before: Option<&ClusterParameters>,
        wanted: ClusterParameters,
    ) -> Result<ClusterParameters, Error> {
        match caller.identity() {
            None => Ok(wanted),
            Some(_) => Ok(self.conductor.borrow(borrower(caller), before, wanted).await?),
        }
    }

    /// Resolves the image `given` to its id, and refuses an image that the caller's project may not use for members of this cluster.
    pub(crate) async fn resolve_image(
        &self,
        caller: &Caller,
        cluster: &Cluster,
        given: String,
    ) -> Result<String, Error> {
        match caller.identity() {
            None => Ok(given),
            Some(_) => Ok(self.conductor.borrow_image(borrower(caller), cluster, &given).await?),
        }
    }

    /// Finds the template with this id or name.
    pub(crate) async fn template(&self, caller: &Caller, ident: &str) -> Result<Template, Error> {
        let missing = || missing("ClusterTemplate", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.scopes(caller) {
            if let Some(found) =
                self.store.find_templates(&parsed, &scope).await?.into_iter().next()
            {
                return Ok(found);
            }
        }
        Err(missing().into())
    }

    /// Finds the cluster with this id or name.
    pub(crate) async fn cluster(&self, caller: &Caller, ident: &str) -> Result<Cluster, Error> {
        let missing = || missing("Cluster", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.scopes(caller) {
            let mut found = self.store.find_clusters(&parsed, &scope).await?.into_iter();
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
    pub(crate) async fn group(&self, cluster: &Cluster, ident: &str) -> Result<NodeGroup, Error> {
        let groups = self.store.groups_of(cluster.id).await?;
        let named = groups
            .into_iter()
            .find(|group| group.name.as_str() == ident || group.id.to_string() == ident);
        Ok(named.ok_or_else(|| missing("Nodegroup", ident))?)
    }

    /// Makes the event of a request.
    pub(crate) fn request_event(&self, cluster: &Cluster, reason: &str, message: String) -> Event {
        Event {
            id: None,
            cluster: cluster.id,
            at: (self.clock)(),
            severity: Severity::Info,
            reason: reason.to_owned(),
            message,
        }
    }
}

fn borrower(caller: &Caller) -> ObjectUser<'_> {
    ObjectUser { project: caller.project().unwrap_or_default(), is_admin: caller.is_admin() }
}

/// Magnum's message for a resource that does not exist.
pub(crate) fn missing(what: &str, ident: &str) -> ApiError {
    let ident: String = ident.chars().take(64).collect();
    ApiError::not_found(format!("{what} {ident} could not be found."))
}

/// Whether the caller may see resources of this project.
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

impl FromRef<App> for Auth {
    fn from_ref(app: &App) -> Auth {
        app.auth.clone()
    }
}

impl ApiState for App {
    const POLICY: ResourceOwnership = ResourceOwnership::Projects;
}
