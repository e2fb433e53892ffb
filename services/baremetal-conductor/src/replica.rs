//! This conductor among several on one database.

use std::sync::Arc;

use baremetal_core::NodeUuid;
use jiff::Timestamp;
use reconcile::Watch;
use replicas::{Applicant, Conductors, LeaseRefused, Membership, NewConductor, Participant};
use sealing::Keyring;
use tokio_util::sync::CancellationToken;

use crate::context::TurnContext;
use crate::rack_changes;
use crate::secrets::Purpose;
use crate::settings::Settings;

/// The difference to a conductor with another `service.key`.
const OTHER_KEY: &str =
    "makes tokens with another key; copy its service.key to the state folder of this conductor";

/// Keeps the lease and the share of this conductor until `stop` is cancelled.
pub(crate) async fn run(
    context: Arc<TurnContext>,
    stop: CancellationToken,
) -> Result<(), LeaseRefused> {
    let Settings { hostname, groups, instance, .. } = &context.settings;
    let new = NewConductor {
        hostname: hostname.clone(),
        groups: groups.clone(),
        instance: instance.clone(),
        installation: context.key.derive(Purpose::Installation, &[])[..16].to_owned(),
    };
    let applicant = Applicant { program: "baremetald", other_key: OTHER_KEY, new };
    replicas::run(context, applicant, stop).await
}

impl Participant for TurnContext {
    type Key = NodeUuid;

    fn membership(&self) -> &Membership<NodeUuid> {
        &self.membership
    }

    fn conductors(&self) -> Conductors {
        self.store.conductors()
    }

    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn keyring(&self) -> Option<&Arc<Keyring>> {
        self.store.keyring()
    }

    fn now(&self) -> Timestamp {
        TurnContext::now(self)
    }

    fn wake(&self, node: NodeUuid) {
        self.queue.wake(node);
    }

    fn hear(&self, task: &str) {
        if let Some(rack) = rack_changes::rack_of(task) {
            self.rack_changes.note(rack);
        }
    }

    fn share_narrowed(&self) {}

    fn share_confirmed(&self) {
        self.rack_changes.note_all();
    }
}
