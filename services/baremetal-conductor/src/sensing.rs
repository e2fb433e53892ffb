//! Reads the sensors of machines regularly, for the metrics.

mod names;

use std::panic::resume_unwind;
use std::sync::Arc;

use baremetal_core::{Node, NodeIdent};
use baremetal_store::{NodeVersion, StoreError};
use metrics::NodeSensors;
use newtype_uuid::GenericUuid;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::context::TurnContext;
use crate::problem::chain;
use crate::settings::SensorSettings;

/// How many nodes are read per query.
const PAGE: u32 = 100;
/// Readings are shown for this many intervals.
const SHOWN_FOR: i64 = 3;

/// Reads sensors until `stop` is cancelled, if the settings ask for it.
pub(crate) async fn run(context: Arc<TurnContext>, stop: CancellationToken) {
    let Some(settings) = &context.settings.sensors else { return };
    let mut due = interval(settings.every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = due.tick() => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            read = read_all(&context, settings) => if let Err(error) = read {
                warn!(error = chain(&error), "the sensors of machines are not read");
            }
        }
    }
}

/// Reads the sensors of each idle machine of this conductor once.
async fn read_all(context: &Arc<TurnContext>, settings: &SensorSettings) -> Result<(), StoreError> {
    let mut reads = JoinSet::new();
    let mut after = 0;
    loop {
        let (page, last) = context.store.sweep_page(after, PAGE).await?;
        let Some(last) = last else { break };
        after = last;
        let nodes = context.store.find_nodes(&own(context, page)).await?;
        for node in nodes.into_iter().filter(|node| is_read(settings, node)) {
            while reads.len() >= settings.at_once {
                join(&mut reads).await;
            }
            reads.spawn(read(context.clone(), node));
        }
    }
    while !reads.is_empty() {
        join(&mut reads).await;
    }
    let every = i64::try_from(settings.every.as_secs()).unwrap_or(i64::MAX);
    let oldest = context.now().as_second().saturating_sub(every.saturating_mul(SHOWN_FOR));
    context.settings.metrics.sensors.forget_before(oldest);
    Ok(())
}

/// Returns the nodes of this conductor. Each of the other conductors shows the readings of its own nodes.
fn own(context: &TurnContext, page: Vec<NodeVersion>) -> Vec<NodeIdent> {
    let (own, others): (Vec<_>, Vec<_>) =
        page.into_iter().partition(|node| context.membership.has(&node.id, &node.group));
    for node in others {
        context.settings.metrics.sensors.forget(node.id.into_untyped_uuid().as_u128());
    }
    own.into_iter().map(|node| NodeIdent::Id(node.id)).collect()
}

/// Ironic also reads no sensors of machines in maintenance.
fn is_read(settings: &SensorSettings, node: &Node) -> bool {
    let is_deployed = node.instance_uuid.is_some();
    node.maintenance.is_none() && (is_deployed || settings.undeployed_nodes)
}

/// Waits for the next machine.
async fn join(reads: &mut JoinSet<()>) {
    // A panic ends the process, as everywhere.
    if let Some(Err(panicked)) = reads.join_next().await {
        resume_unwind(panicked.into_panic());
    }
}

async fn read(context: Arc<TurnContext>, node: Node) {
    let Ok(bmc) = context.bmcs.of(&node) else { return };
    let Some(sensors) = bmc.sensors else { return };
    match sensors.monitored().await {
        Ok(readings) => {
            let read = NodeSensors {
                uuid: node.id.to_string(),
                name: node.name.as_ref().map(ToString::to_string),
                instance: node.instance_uuid.as_ref().map(ToString::to_string),
                read_at: context.now().as_second(),
                samples: names::samples(node.driver, &readings),
            };
            context.settings.metrics.sensors.note(node.id.into_untyped_uuid().as_u128(), read);
        }
        Err(error) => {
            debug!(node.id = %node.id, error = chain(&error), "the sensors of node {} cannot be read", node.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use baremetal_core::State;
    use hardware::PowerChange;
    use metrics::Metrics;
    use replicas::Membership;
    use uuid::Uuid;

    use super::*;
    use crate::samples::{self, SampleMachine};

    const SETTINGS: SensorSettings =
        SensorSettings { every: Duration::from_secs(60), at_once: 2, undeployed_nodes: false };

    #[tokio::test]
    async fn the_sensors_of_deployed_machines_are_shown_until_they_are_old() {
        let sample = SampleMachine::start().await;
        let mut page = Metrics::new("test", "0");
        let mut settings = samples::settings();
        settings.metrics.sensors = page.sensors();
        let context = samples::conductor(settings).await.context;
        let (waiting, _) = sample.node();
        let deployed = Node {
            provision_state: State::Active,
            work: None,
            instance_uuid: Some(Uuid::new_v4()),
            ..waiting
        };
        context.bmcs.of(&deployed).unwrap().power.request(PowerChange::On).await.unwrap();
        sample.machine.power().wait_for(|power| power.on).await.unwrap();
        context.store.insert_node(&deployed).await.unwrap();
        read_all(&context, &SETTINGS).await.unwrap();
        let text = page.text().unwrap();
        for family in [
            "baremetal_temp_cpu_celsius",
            "baremetal_temp_intake_celsius",
            "baremetal_temperature_status",
            "baremetal_fan_status",
            "baremetal_last_payload_timestamp_seconds",
        ] {
            let series = format!("{family}{{node_uuid=\"{}\"", deployed.id);
            assert!(text.lines().any(|line| line.starts_with(&series)), "no {series} in:\n{text}");
        }
        context.settings.metrics.sensors.forget_before(i64::MAX);
        let undeployed = Node { instance_uuid: None, ..deployed };
        context.store.update_node(&undeployed, &[]).await.unwrap();
        read_all(&context, &SETTINGS).await.unwrap();
        assert!(!page.text().unwrap().contains("baremetal_"));
        let all = SensorSettings { undeployed_nodes: true, ..SETTINGS };
        read_all(&context, &all).await.unwrap();
        assert!(page.text().unwrap().contains("baremetal_fan_status{"));

        // The node moves to another conductor.
        let mut context = context;
        Arc::get_mut(&mut context).unwrap().membership = Membership::shared("host-1");
        read_all(&context, &all).await.unwrap();
        assert!(!page.text().unwrap().contains("baremetal_"));
    }
}
