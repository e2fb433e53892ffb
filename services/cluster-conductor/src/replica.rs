//! This conductor among several on one database.

use std::sync::Arc;

use jiff::Timestamp;
use reconcile::Watch;
use replicas::{Applicant, Conductors, LeaseRefused, Membership, NewConductor, Participant};
use ring::digest::{SHA256, digest};
use tokio_util::sync::CancellationToken;

use crate::context::{ConductorContext, GROUP, ResourceRef};
use crate::settings::Settings;

/// The difference to a conductor with another certificate authority. Members trust the one that they were created with, and reach any conductor.
const OTHER_KEY: &str = "has another certificate authority for members; copy its nodes.authority to the state folder of this \
     conductor, or give all of them one certificate (nodes.certificate)";

/// Keeps the lease and the share of this conductor until `stop` is cancelled.
pub(crate) async fn run(
    context: Arc<ConductorContext>,
    stop: CancellationToken,
) -> Result<(), LeaseRefused> {
    let Settings { hostname, instance, machines, .. } = &context.settings;
    let authority = machines.nodes.as_ref().map(|nodes| nodes.authority.as_bytes());
    let new = NewConductor {
        hostname: hostname.clone(),
        groups: vec![GROUP.to_owned()],
        instance: instance.clone(),
        installation: authority.map(|it| hex::encode(digest(&SHA256, it))).unwrap_or_default(),
    };
    let applicant = Applicant { program: "clusterd", other_key: OTHER_KEY, new };
    replicas::run(context, applicant, stop).await
}

impl Participant for ConductorContext {
    type Key = ResourceRef;

    fn membership(&self) -> &Membership<ResourceRef> {
        &self.membership
    }

    fn conductors(&self) -> Conductors {
        self.store.conductors()
    }

    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    fn wake(&self, subject: ResourceRef) {
        self.queue.wake(subject);
    }

    /// clusterd has no topics.
    fn hear(&self, _topic: &str) {}

    fn share_changed(&self, _is_complete: bool) {
        self.observation_cache.forget_all();
    }
}
