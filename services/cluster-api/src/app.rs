//! What every handler works with.

use std::future::Future;

use axum::extract::FromRef;
use cluster_conductor::{Borrower, Conductor, Tenancy};
use cluster_core::{Blueprint, Cluster, Defaults, Event, Ident, NodeGroup, Severity, Template};
use cluster_store::{Change, Scope, Store, StoreError};
use http::StatusCode;
use jiff::Timestamp;
use lease::{Ladder, Terms};
use openstack_api::{
    ApiError, Auth, Caller, Forwarded, Hosts, Limits, Policy, Reach, Scheme, Ward,
};
use uuid::Uuid;

use crate::bedplate::Streams;
use crate::error::Error;
use crate::measure::has_grown;

/// What every handler works with.
#[derive(Clone)]
pub struct App {
    /// Where clusters are.
    pub store: Store,
    /// Who looks after them.
    pub conductor: Conductor,
    /// What time it is.
    pub clock: fn() -> Timestamp,
    /// New random ids.
    pub ids: fn() -> Uuid,
    /// How callers prove who they are.
    pub auth: Auth,
    /// Who follows events.
    pub streams: Streams,
    /// What an operator configured.
    pub settings: Settings,
}

/// What an operator configured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the listener is reached.
    pub scheme: Scheme,
    /// Whether a proxy before it is believed.
    pub forwarded: Forwarded,
    /// The hosts under which it may be asked.
    pub hosts: Hosts,
    /// How much callers may have.
    pub limits: Limits,
    /// The project that all callers are of where there is no Keystone.
    pub project: String,
    /// What projects and people may have for whom nobody said otherwise.
    pub quotas: Defaults,
    /// How long clusters are lent, by default and at most.
    pub leases: Terms,
    /// What happens at the end of their leases.
    pub ladder: Ladder,
    /// How people's own machines are lent.
    pub machines: Lending,
}

/// How long something is lent, and what comes at the end.
#[derive(Clone, Debug, Default)]
pub struct Lending {
    /// How long, unless told and at most.
    pub terms: Terms,
    /// What comes before the end of a lease and after it.
    pub ladder: Ladder,
}

/// How often a change is tried again because someone else was faster.
const ATTEMPTS: usize = 8;

impl App {
    /// What the caller may see.
    pub(crate) fn scope(&self, caller: &Caller) -> Scope {
        match (caller.identity(), caller.reach()) {
            (None, _) => Scope::Project(self.settings.project.clone()),
            (Some(_), Reach::Everything) => Scope::All,
            (Some(_), Reach::Project(own)) => Scope::Project(own.to_owned()),
            // Nobody is let in with that; no project has this id.
            (Some(_), Reach::Nothing) => Scope::Project(String::new()),
        }
    }

    /// The project that what the caller makes is of.
    pub(crate) fn project<'a>(&'a self, caller: &'a Caller) -> Result<&'a str, ApiError> {
        if caller.identity().is_none() {
            return Ok(&self.settings.project);
        }
        caller.project().ok_or_else(|| {
            ApiError::bad_request(
                "your token is valid in no project, and what is made has to be of one: name one when you authenticate",
            )
        })
    }

    /// Where names are looked up, one after the other: what is the caller's own comes first.
    pub(crate) fn scopes(&self, caller: &Caller) -> Vec<Scope> {
        let own = self.project(caller).ok().map(|own| Scope::Project(own.to_owned()));
        let all = Some(self.scope(caller)).filter(|all| own.as_ref() != Some(all));
        own.into_iter().chain(all).collect()
    }

    /// Who the caller is: what things of theirs are marked by.
    pub(crate) fn user(&self, caller: &Caller) -> String {
        caller.user().unwrap_or("anonymous").to_owned()
    }

    /// Refuses a caller for whose project no cluster can be made, before anything is looked at. Without Keystone there is one project,
    /// clusterd's own.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<(), Error> {
        let Some((identity, id)) = caller.identity().zip(caller.project()) else { return Ok(()) };
        let name = identity.project_name.as_deref().unwrap_or(id);
        Ok(self.conductor.admit(id, name).await?)
    }

    /// What a cluster of this template need not ask for again: what the template's project was asked about when it said so, if that is as
    /// good for the cluster's.
    pub(crate) fn settled<'t>(
        &self,
        template: &'t Template,
        project: &str,
    ) -> Option<&'t Blueprint> {
        let is_same = self.conductor.tenancy() == Tenancy::Shared || template.project == project;
        is_same.then_some(&template.blueprint)
    }

    /// `wanted`, with the ids of what it names otherwise than `before`, if the caller's project may use that. Without Keystone
    /// there is one project, and it may use all that clusterd may.
    pub(crate) async fn borrowed(
        &self,
        caller: &Caller,
        before: Option<&Blueprint>,
        wanted: Blueprint,
    ) -> Result<Blueprint, Error> {
        match caller.identity() {
            None => Ok(wanted),
            Some(_) => Ok(self.conductor.borrow(borrower(caller), before, wanted).await?),
        }
    }

    /// The image that `given` names, if the caller's project may use it for machines of this cluster.
    pub(crate) async fn borrowed_image(
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

    /// The template that `ident` points at.
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

    /// The cluster that `ident` points at.
    pub(crate) async fn cluster(&self, caller: &Caller, ident: &str) -> Result<Cluster, Error> {
        let missing = || missing("Cluster", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.scopes(caller) {
            let mut found = self.store.find_clusters(&parsed, &scope).await?.into_iter();
            match (found.next(), found.next(), &scope) {
                (Some(_), Some(_), Scope::All) => {
                    let why = format!("several projects have a Cluster {ident}: name it by its id");
                    return Err(ApiError::conflict(why).into());
                }
                (Some(found), ..) => return Ok(found),
                (None, ..) => {}
            }
        }
        Err(missing().into())
    }

    /// The node group of `cluster` that `ident` points at.
    pub(crate) async fn group(&self, cluster: &Cluster, ident: &str) -> Result<NodeGroup, Error> {
        let groups = self.store.groups_of(cluster.id).await?;
        let named = groups
            .into_iter()
            .find(|group| group.name.as_str() == ident || group.id.to_string() == ident);
        Ok(named.ok_or_else(|| missing("Nodegroup", ident))?)
    }

    /// Reads a cluster and its node groups, has `decide` change them, writes that and wakes the conductor; all over again
    /// when someone else wrote them meanwhile. What is more than the cluster's project or the caller may have is refused.
    pub(crate) async fn change(
        &self,
        caller: &Caller,
        ident: &str,
        decide: impl Fn(Cluster, Vec<NodeGroup>) -> Result<Change, Error>,
    ) -> Result<Cluster, Error> {
        let cluster = again(|| async {
            let cluster = self.cluster(caller, ident).await?;
            let groups = self.store.groups_of(cluster.id).await?;
            let mut change = decide(cluster, groups.clone())?;
            change.cluster.updated_at = Some((self.clock)());
            change.by = Some(self.user(caller));
            let asked_before = change.cluster.asked_by.take();
            change.cluster.asked_by = openstack_api::request_id().or(asked_before);
            let touched = change.added.iter_mut().chain(&mut change.changed);
            let grown = touched.filter(|it| has_grown(it, &groups));
            let unmeasured = self.measure(&change.cluster, grown).await;
            let written = self.store.change_within(&change, &self.settings.quotas).await?;
            written.map_err(|denial| Error::Denied(denial, unmeasured))
        });
        let cluster = cluster.await?;
        self.conductor.wake(cluster.id);
        Ok(cluster)
    }

    /// That somebody asked for something.
    pub(crate) fn asked(&self, cluster: &Cluster, reason: &str, message: String) -> Event {
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

fn borrower(caller: &Caller) -> Borrower<'_> {
    Borrower { project: caller.project().unwrap_or_default(), is_admin: caller.is_admin() }
}

/// Magnum's words for what is not there.
pub(crate) fn missing(what: &str, ident: &str) -> ApiError {
    let ident: String = ident.chars().take(64).collect();
    ApiError::not_found(format!("{what} {ident} could not be found."))
}

/// Whether the caller has to do with what is of this project.
pub(crate) fn reaches(caller: &Caller, project: &str) -> bool {
    match caller.reach() {
        Reach::Everything => true,
        Reach::Project(own) => own == project,
        Reach::Nothing => false,
    }
}

/// What is of other projects is not told.
pub(crate) fn elsewhere(field: &str) -> ApiError {
    let why = format!("{field}: what is of other projects is for administrators");
    ApiError::new(StatusCode::FORBIDDEN, why)
}

/// Does `attempt` until nobody else was faster.
pub(crate) async fn again<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(Error::Store(StoreError::Stale)) => {}
            done => return done,
        }
    }
    attempt().await
}

impl FromRef<App> for Auth {
    fn from_ref(app: &App) -> Auth {
        app.auth.clone()
    }
}

impl Ward for App {
    const POLICY: Policy = Policy::Projects;
}
