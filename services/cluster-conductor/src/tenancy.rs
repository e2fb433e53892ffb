//! The cloud's projects in which clusters are created, and the sessions with which clusterd works in them.
//!
//! The project of a cluster is in its record before anything is created. A change of the configuration affects new clusters only.

mod refusals;

use std::time::Instant;

use cluster_core::Cluster;
use openstack::{CloudError, Identity, ProjectSessions, Session};

use refusals::Refusals;

/// The cloud's project in which clusters are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenancy {
    /// The project that requested the cluster.
    Own,
    /// clusterd's own project.
    Shared,
}

/// The roles of which one is needed to create objects in a project.
const MAKES: [&str; 2] = ["member", "_member_"];

/// Why clusterd cannot work in a project.
#[derive(Debug, thiserror::Error)]
pub enum TenancyError {
    #[error(
        "clusterd's user {user} lacks the role member in project {project}: let an administrator of the cloud grant it \
         with `openstack role add --user {user_id} --project {project_id} member`"
    )]
    Roleless {
        user: String,
        user_id: String,
        /// The name of the project if it is known, otherwise its id.
        project: String,
        project_id: String,
    },
    #[error(
        "the cluster is in project {project}, and clusterd's application credential is valid in another project only"
    )]
    Bound {
        /// The id of the project.
        project: String,
    },
    #[error("clusterd's account in the cloud has no project: set one in clouds.yaml")]
    Nowhere,
    #[error("cannot get a token for the project from Keystone: {0}")]
    KeystoneFailed(#[from] CloudError),
}

/// The cloud, with clusterd's sessions in its projects.
pub(crate) struct CloudAccess {
    projects: ProjectSessions,
    tenancy: Tenancy,
    /// Projects in which clusterd's user has no role.
    closed: Refusals,
    /// Projects in which clusterd's user has a role, but none that may create objects.
    barren: Refusals,
}

impl CloudAccess {
    pub(crate) fn new(session: Session, tenancy: Tenancy) -> Self {
        let (closed, barren) = (Refusals::default(), Refusals::default());
        CloudAccess { projects: ProjectSessions::of(session), tenancy, closed, barren }
    }

    /// Returns in which of the cloud's projects clusters are created.
    pub(crate) fn tenancy(&self) -> Tenancy {
        self.tenancy
    }

    /// Returns the session in clusterd's own project.
    pub(crate) fn own(&self) -> &Session {
        self.projects.own()
    }

    /// Returns the id of the project of a cluster: the recorded one, or the one for new clusters when nothing was created yet.
    pub(crate) async fn project_of(
        &self,
        cluster: &Cluster,
        is_begun: bool,
    ) -> Result<String, TenancyError> {
        match (&cluster.cloud_project, self.tenancy) {
            (Some(place), _) => Ok(place.clone()),
            (None, Tenancy::Own) if !is_begun => Ok(cluster.project.clone()),
            // A cluster from before projects were recorded is in clusterd's own project, where all clusters were then.
            (None, Tenancy::Own | Tenancy::Shared) => {
                self.own().identity().await?.project_id.ok_or(TenancyError::Nowhere)
            }
        }
    }

    /// Returns the id of the project in which new VMs of a project are created.
    pub(crate) async fn place_of(&self, project: &str) -> Result<String, TenancyError> {
        match self.tenancy {
            Tenancy::Own => Ok(project.to_owned()),
            Tenancy::Shared => self.own().identity().await?.project_id.ok_or(TenancyError::Nowhere),
        }
    }

    /// Returns the session in the project of a cluster.
    pub(crate) async fn of(
        &self,
        cluster: &Cluster,
        is_begun: bool,
    ) -> Result<Session, TenancyError> {
        self.enter(&self.project_of(cluster, is_begun).await?).await
    }

    pub(crate) async fn enter(&self, project: &str) -> Result<Session, TenancyError> {
        let own = self.own().identity().await?;
        if own.project_id.as_deref() == Some(project) {
            return Ok(self.own().clone());
        }
        if self.closed.knows(project, Instant::now()) {
            return Err(roleless(&own, project, project));
        }
        let bound = || TenancyError::Bound { project: project.to_owned() };
        let session = self.projects.session(project).ok_or_else(bound)?;
        match session.identity().await {
            Ok(_) => Ok(session),
            // Keystone gives the same answer for a wrong password. A token for clusterd's own project shows which of the two it is.
            Err(CloudError::Unauthorized(why)) => {
                let home = own.project_id.as_deref().and_then(|home| self.own().in_project(home));
                match home {
                    Some(home) => home.identity().await?,
                    None => return Err(CloudError::Unauthorized(why).into()),
                };
                self.closed.note(project, Instant::now());
                Err(roleless(&own, project, project))
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Returns a session that sees the cloud as the project does: in the project itself, when clusters are created there and clusterd has a
    /// role; otherwise in clusterd's own.
    pub(crate) async fn session_as_seen_by(&self, project: &str) -> Result<Session, TenancyError> {
        match self.tenancy {
            Tenancy::Shared => Ok(self.own().clone()),
            Tenancy::Own => match self.enter(project).await {
                Err(TenancyError::Roleless { .. }) => Ok(self.own().clone()),
                entered => entered,
            },
        }
    }

    /// Checks whether clusters can be created for this project.
    pub(crate) async fn admit(&self, project: &str, name: &str) -> Result<(), TenancyError> {
        if self.tenancy == Tenancy::Shared {
            return Ok(());
        }
        let session = match self.enter(project).await {
            Err(TenancyError::Roleless { user, user_id, project_id, .. }) => {
                let project = name.to_owned();
                return Err(TenancyError::Roleless { user, user_id, project, project_id });
            }
            entered => entered?,
        };
        let who = session.identity().await?;
        if makes(&who) {
            return Ok(());
        }
        if self.barren.knows(project, Instant::now()) {
            return Err(roleless(&who, name, project));
        }
        // The role may have been granted after the token was issued.
        session.close().await?;
        let who = session.identity().await?;
        if makes(&who) {
            return Ok(());
        }
        self.barren.note(project, Instant::now());
        Err(roleless(&who, name, project))
    }
}

fn makes(who: &Identity) -> bool {
    who.roles.iter().any(|role| MAKES.contains(&role.as_str()))
}

fn roleless(who: &Identity, name: &str, project: &str) -> TenancyError {
    TenancyError::Roleless {
        user: who.user_name.clone(),
        user_id: who.user_id.clone(),
        project: name.to_owned(),
        project_id: project.to_owned(),
    }
}
