//! This conductor among several on one database.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reconcile::Watch;
use replicas::{Applicant, Conductors, LeaseRefused, Membership, NewConductor, Participant};
use ring::digest::{SHA256, digest};
use sealing::Keyring;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::context::{ConductorContext, GROUP, ResourceRef};
use crate::settings::Settings;

/// How often the conductor records that it is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// The difference to a conductor with another certificate authority. Members trust the one that they were created with, and reach any conductor.
const OTHER_KEY: &str = "has another certificate authority for members; copy its nodes.authority to the state folder of this \
     conductor, or give all of them one certificate (nodes.certificate)";

/// Keeps the lease and the share of this conductor until `stop` is cancelled.
pub(crate) async fn run(
    context: Arc<ConductorContext>,
    stop: CancellationToken,
) -> Result<(), LeaseRefused> {
    let alive = stay_alive(&context, &stop);
    let keeping = keep_lease(context.clone(), stop.clone());
    tokio::pin!(keeping);
    tokio::select! {
        () = alive => keeping.await,
        kept = &mut keeping => kept,
    }
}

/// Records at regular intervals that this conductor is alive, for the list of services.
async fn stay_alive(context: &ConductorContext, stop: &CancellationToken) {
    loop {
        let now = (context.settings.clock)();
        match context.store.touch_service(&context.settings.hostname, now).await {
            Ok(()) => context.watch.answered((context.settings.clock)()),
            Err(error) => {
                context.watch.failed();
                warn!("cannot record that this conductor is alive: {error}");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(ALIVE_EVERY) => {}
        }
    }
}

async fn keep_lease(
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

    fn keyring(&self) -> Option<&Arc<Keyring>> {
        Some(&self.keyring)
    }

    fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    fn wake(&self, subject: ResourceRef) {
        self.queue.wake(subject);
    }

    /// clusterd has no tasks that notifications name.
    fn hear(&self, _task: &str) {}

    fn share_narrowed(&self) {
        self.observation_cache.forget_all();
    }

    fn share_confirmed(&self) {
        self.observation_cache.forget_all();
    }
}
