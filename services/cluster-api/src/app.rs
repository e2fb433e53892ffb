//! The state that every handler works with.

use cluster_conductor::{Conductor, Tenancy};
use cluster_core::{
    Cluster, ClusterParameters, DefaultLimits, Event, Labels, Refusal, Severity, Template,
    unknown_labels_warning,
};
use cluster_store::Store;
use jiff::Timestamp;
use lease::{LeaseSchedule, Terms};
use openstack_api::{ApiSettings, Auth};
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
    pub schedule: LeaseSchedule,
    pub machines: LeaseSettings,
}

/// How long something is lent, and the stages at the end of the lease.
#[derive(Clone, Debug, Default)]
pub struct LeaseSettings {
    /// The default and maximum duration.
    pub terms: Terms,
    /// The stages before and after the end of a lease.
    pub schedule: LeaseSchedule,
}

impl App {
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

    /// Refuses what a clusterd of version 0.1.0 cannot read, or would not do, until the last one on the database has ended.
    pub(crate) fn check_upgraded(&self) -> Result<(), Refusal> {
        if self.store.is_upgraded() {
            return Ok(());
        }
        let why = "an older conductor is running, a clusterd of version 0.1.0, which cannot do this: try again when all are upgraded";
        Err(Refusal::Busy { why: why.to_owned() })
    }

    /// The warning that labels of a request have no effect.
    pub(crate) fn label_event(&self, cluster: &Cluster, labels: &Labels) -> Option<Event> {
        let said = unknown_labels_warning([labels])?;
        Some(Event::new(cluster.id, Severity::Warning, "LabelsUnknown", said, (self.clock)()))
    }

    pub(crate) fn request_event(&self, cluster: &Cluster, reason: &str, message: String) -> Event {
        Event::new(cluster.id, Severity::Info, reason, message, (self.clock)())
    }
}

openstack_api::service_state!(App, Error, Projects);
