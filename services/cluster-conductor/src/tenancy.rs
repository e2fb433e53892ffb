//! In which of the cloud's projects clusters are, and as whom they are looked after there.
//!
//! Where a cluster is stands in its record before anything of it is made. What is configured decides of new ones alone.

mod refusals;

use std::time::Instant;

use cluster_core::Cluster;
use openstack::{CloudError, Identity, Projects, Session};

use crate::Conductor;
use crate::handle::World;
use refusals::Refusals;

/// In which of the cloud's projects clusters are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenancy {
    /// Each in the project that asked for it.
    Own,
    /// All in clusterd's own.
    Shared,
}

/// Roles of which one is needed in a project to make anything there.
const MAKES: [&str; 2] = ["member", "_member_"];

/// Why nothing can be done in a project.
#[derive(Debug, thiserror::Error)]
pub enum TenancyError {
    /// clusterd's user may not make anything there.
    #[error(
        "clusterd's user {user} needs the role member in project {project} and does not have it: let an administrator of the cloud give \
         it, by `openstack role add --user {user_id} --project {project_id} member`"
    )]
    Roleless {
        /// The user's name.
        user: String,
        /// The user's id.
        user_id: String,
        /// The project's name where it is known, else its id.
        project: String,
        /// The project's id.
        project_id: String,
    },
    /// What clusterd shows is good elsewhere alone.
    #[error(
        "the cluster is in project {project}, and clusterd's application credential is good in another one alone"
    )]
    Bound {
        /// The project's id.
        project: String,
    },
    /// clusterd's own account is of no project.
    #[error("clusterd's account in the cloud is of no project")]
    Nowhere,
    /// Keystone does not say.
    #[error("Keystone cannot be asked now for a token in the project: {0}")]
    Away(#[from] CloudError),
}

/// The cloud, and ourselves in its projects.
pub(crate) struct Premises {
    projects: Projects,
    tenancy: Tenancy,
    /// Where we have no role.
    closed: Refusals,
    /// Where we have one by which nothing can be made.
    barren: Refusals,
}

impl Premises {
    pub(crate) fn new(session: Session, tenancy: Tenancy) -> Self {
        let (closed, barren) = (Refusals::default(), Refusals::default());
        Premises { projects: Projects::of(session), tenancy, closed, barren }
    }

    /// Ourselves, in our own project.
    pub(crate) fn own(&self) -> &Session {
        self.projects.own()
    }

    /// The id of the project that a cluster is in, or is to be made in where nothing of it was begun yet.
    pub(crate) async fn place(
        &self,
        cluster: &Cluster,
        is_begun: bool,
    ) -> Result<String, TenancyError> {
        match (&cluster.cloud_project, self.tenancy) {
            (Some(place), _) => Ok(place.clone()),
            (None, Tenancy::Own) if !is_begun => Ok(cluster.project.clone()),
            // What was begun before places were noted is where all were.
            (None, Tenancy::Own | Tenancy::Shared) => {
                self.own().identity().await?.project_id.ok_or(TenancyError::Nowhere)
            }
        }
    }

    /// The id of the project that a new machine of a project's people is to be made in.
    pub(crate) async fn place_of(&self, project: &str) -> Result<String, TenancyError> {
        match self.tenancy {
            Tenancy::Own => Ok(project.to_owned()),
            Tenancy::Shared => self.own().identity().await?.project_id.ok_or(TenancyError::Nowhere),
        }
    }

    /// Ourselves in the project that a cluster is in, or is to be made in.
    pub(crate) async fn of(
        &self,
        cluster: &Cluster,
        is_begun: bool,
    ) -> Result<Session, TenancyError> {
        self.enter(&self.place(cluster, is_begun).await?).await
    }

    /// Ourselves in this project, with a token that is good there.
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
            // Keystone says the same of a password that is wrong: whether it is, our own project tells.
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

    /// Ourselves as a project sees the cloud: in it, where its clusters are made there and we are let in.
    pub(crate) async fn eyes(&self, project: &str) -> Result<Session, TenancyError> {
        match self.tenancy {
            Tenancy::Shared => Ok(self.own().clone()),
            Tenancy::Own => match self.enter(project).await {
                Err(TenancyError::Roleless { .. }) => Ok(self.own().clone()),
                entered => entered,
            },
        }
    }

    /// Whether clusters can be made for this project.
    async fn admit(&self, project: &str, name: &str) -> Result<(), TenancyError> {
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
        // The role may have been given since this token was.
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

impl World {
    /// Ourselves where a cluster is, and in our own project; `None` without a cloud.
    pub(crate) async fn sessions(
        &self,
        cluster: &Cluster,
        is_begun: bool,
    ) -> Result<Option<(Session, &Session)>, TenancyError> {
        let Some(premises) = &self.cloud else { return Ok(None) };
        Ok(Some((premises.of(cluster, is_begun).await?, premises.own())))
    }
}

impl Conductor {
    /// Whether clusters can be made for the project of this id, which its people know by that name.
    ///
    /// # Errors
    ///
    /// When clusterd's user lacks the role for it there, or Keystone does not say.
    pub async fn admit(&self, project: &str, name: &str) -> Result<(), TenancyError> {
        match &self.world.cloud {
            Some(premises) => premises.admit(project, name).await,
            None => Ok(()),
        }
    }

    /// Whether nothing of the cluster can be reached in the cloud: clusterd is not let into the project that it is in, which may have been
    /// deleted, or has no cloud.
    ///
    /// # Errors
    ///
    /// When Keystone does not say.
    pub async fn is_shut_out(&self, cluster: &Cluster) -> Result<bool, TenancyError> {
        let Some(premises) = &self.world.cloud else { return Ok(true) };
        match premises.of(cluster, true).await {
            Ok(_) => Ok(false),
            Err(TenancyError::Roleless { .. } | TenancyError::Bound { .. }) => Ok(true),
            Err(unknown @ (TenancyError::Nowhere | TenancyError::Away(_))) => Err(unknown),
        }
    }

    /// In which of the cloud's projects clusters are made.
    pub fn tenancy(&self) -> Tenancy {
        self.world.cloud.as_ref().map_or(Tenancy::Shared, |premises| premises.tenancy)
    }
}
