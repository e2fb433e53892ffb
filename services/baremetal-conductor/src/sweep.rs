//! Refreshes the power states and boot settings of idle nodes.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;

use baremetal_core::{HistoryEntry, Node, NodeIdent, NodeUuid, power_failed, power_recovered};
use baremetal_store::{NodeVersion, SeenPower, StoreError};
use bmc::{Bmc, BmcError};
use hardware::{Health, PowerAndBootSettings, PowerState};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::context::TurnContext;
use crate::observations::ObservedPart;
use crate::problem::{self, chain};

/// How many ids of nodes are read per query. SQLite reads them on a thread of the API, from about as many pages of the database file.
const PAGE: u32 = 100;

/// How many power states are recorded in one transaction.
const RECORDED_AT_ONCE: usize = 500;

/// How many sweeps in a row only read the power state and the health of a machine whose record agrees with its BMC. Secure Boot costs another
/// request, and changes only when a machine starts.
const SWEEPS_OF_POWER: u8 = 9;

/// The nodes whose records agreed with their BMCs at the last sweep. A sweep reads such a record only if its version or the report of the BMC
/// has changed.
type AgreeingNodes = HashMap<NodeUuid, Agreement>;

/// The version of a record, and the report of the BMC with which the record agrees.
#[derive(Clone, Copy)]
struct Agreement {
    version: i64,
    reported: PowerAndBootSettings,
    /// How many more sweeps only read the power state.
    sweeps_of_power: u8,
}

impl Agreement {
    fn new(node: &Node, reported: PowerAndBootSettings) -> Agreement {
        // The first turn comes at a random time, so that the BMCs of a rack that was enrolled at once take turns.
        let sweeps_of_power = node.id.as_untyped_uuid().as_bytes()[15] % (SWEEPS_OF_POWER + 1);
        Agreement { version: node.version, reported, sweeps_of_power }
    }

    /// The same record after another answer of the BMC; `None` if it may no longer agree.
    fn after(self, answer: PowerAndBootSettings) -> Option<Agreement> {
        let PowerAndBootSettings { power, health, settings } = answer;
        let agrees = (power, health) == (self.reported.power, self.reported.health)
            && settings.is_none_or(|settings| self.reported.settings == Some(settings));
        let sweeps_of_power = self.sweeps_of_power.checked_sub(1).unwrap_or(SWEEPS_OF_POWER);
        agrees.then_some(Agreement { sweeps_of_power, ..self })
    }
}

/// Sweeps until `stop` is cancelled.
pub(crate) async fn run(context: Arc<TurnContext>, stop: CancellationToken) {
    let every = context.settings.sweep.every;
    let mut due = interval_at(Instant::now() + every, every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut agreeing = AgreeingNodes::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = due.tick() => {}
        }
        let begun = Instant::now();
        context.settings.metrics.sweeps.begin();
        tokio::select! {
            () = stop.cancelled() => return,
            swept = sweep(&context, &mut agreeing) => match swept {
                Ok((seen, changed)) => {
                    context.settings.metrics.sweeps.ended(begun.elapsed());
                    debug!(seen, changed, "read the power states of {seen} machines; {changed} had changed");
                }
                Err(error) => warn!(error = chain(&error), "the power states cannot be refreshed"),
            }
        }
    }
}

/// Asks the BMC of every idle node of this conductor once; returns how many BMCs answered and how many power states had changed.
///
/// A BMC that does not answer blocks one of the parallel requests, and no other node.
async fn sweep(
    context: &Arc<TurnContext>,
    agreeing: &mut AgreeingNodes,
) -> Result<(usize, usize), StoreError> {
    let mut swept = SweepInProgress::default();
    let mut after = 0;
    loop {
        let (page, last) = context.store.sweep_page(after, PAGE).await?;
        let Some(last) = last else { break };
        after = last;
        for NodeVersion { id, version, group } in page {
            if !context.membership.has(&id, &group) {
                continue;
            }
            while swept.looks.len() >= context.settings.sweep.at_once {
                swept.join(context).await?;
            }
            let known = agreeing.get(&id).filter(|known| known.version == version).copied();
            swept.looks.spawn(look(context.clone(), id, version, known));
        }
    }
    while !swept.looks.is_empty() {
        swept.join(context).await?;
    }
    swept.record(context).await?;
    // Nodes that are deleted or busy, or that belong to another conductor now, are forgotten.
    *agreeing = swept.agreeing;
    Ok((swept.seen, swept.changed))
}

#[derive(Default)]
struct SweepInProgress {
    looks: JoinSet<Look>,
    agreeing: AgreeingNodes,
    /// Power states that differ from the records, and are not recorded yet.
    reported: Vec<SeenPower>,
    seen: usize,
    changed: usize,
}

/// The result of a look at a BMC.
enum Look {
    /// The BMC did not answer, or its answer is recorded already.
    Over,
    Agrees(NodeUuid, Agreement),
    /// Only the power state differs from the record.
    OtherPower(SeenPower),
}

impl SweepInProgress {
    /// Waits for the next answer.
    async fn join(&mut self, context: &TurnContext) -> Result<(), StoreError> {
        match self.looks.join_next().await {
            Some(Ok(Look::Over)) | None => {}
            Some(Ok(Look::Agrees(node, agreement))) => {
                self.seen += 1;
                self.agreeing.insert(node, agreement);
            }
            Some(Ok(Look::OtherPower(reported))) => {
                self.seen += 1;
                self.reported.push(reported);
            }
            // A panic ends the process, as everywhere.
            Some(Err(panicked)) => resume_unwind(panicked.into_panic()),
        }
        if self.reported.len() >= RECORDED_AT_ONCE { self.record(context).await } else { Ok(()) }
    }

    async fn record(&mut self, context: &TurnContext) -> Result<(), StoreError> {
        if is_late(context) {
            self.reported.clear();
        }
        if self.reported.is_empty() {
            return Ok(());
        }
        self.changed += context.store.record_power(&self.reported, context.now()).await?;
        self.reported.clear();
        Ok(())
    }
}

/// Asks the BMC of a node, and compares the answer with the record if it is another than the `known` one.
async fn look(
    context: Arc<TurnContext>,
    id: NodeUuid,
    version: i64,
    known: Option<Agreement>,
) -> Look {
    // The BMC of a record that has not changed needs no look at its `driver_info`.
    if let Some((known, bmc)) = known.zip(context.bmcs.find(id)) {
        let answer = ask(&context, &bmc, known.sweeps_of_power > 0).await;
        if let Ok(reported) = &answer
            && let Some(still) = known.after(*reported)
        {
            note_answer(&context, id, reported.power);
            return Look::Agrees(id, still);
        }
        return match find_node(&context, id, version).await {
            Some(node) => compare(&context, &node, answer).await,
            None => Look::Over,
        };
    }
    let Some(node) = find_node(&context, id, version).await else { return Look::Over };
    let Ok(bmc) = context.bmcs.of(&node) else { return Look::Over };
    let answer = ask(&context, &bmc, false).await;
    compare(&context, &node, answer).await
}

/// Returns the node, unless it was written meanwhile.
async fn find_node(context: &TurnContext, id: NodeUuid, version: i64) -> Option<Node> {
    match context.store.find_node(&NodeIdent::Id(id)).await {
        Ok(found) => found.filter(|node| node.version == version),
        Err(error) => {
            warn!(error = chain(&error), "node {id} cannot be read");
            None
        }
    }
}

/// Asks a BMC, and counts whether it answers, and with which health.
async fn ask(
    context: &TurnContext,
    bmc: &Bmc,
    only_power: bool,
) -> Result<PowerAndBootSettings, BmcError> {
    // No connection stays open: ten thousand open connections need a hundred MiB, and would be closed long before the next sweep.
    let answer = match &bmc.boot_settings {
        Some(settings) if only_power => settings.read_power_once().await,
        Some(settings) => settings.read_once().await,
        None => {
            let power = bmc.power.state_once().await;
            power.map(|power| PowerAndBootSettings { power, health: None, settings: None })
        }
    };
    let sweeps = &context.settings.metrics.sweeps;
    match &answer {
        Ok(reported) => sweeps.answered(reported.health.map_or("unknown", Health::as_str)),
        Err(_) => sweeps.failed(),
    }
    answer
}

fn note_answer(context: &TurnContext, node: NodeUuid, power: PowerState) {
    context.sightings.note(node, ObservedPart::Bmc, power.as_str());
    context.sightings.forget_power_failures(node);
}

/// Whether another conductor may work on the nodes, so that answers of BMCs are not recorded: this process may have been stopped since it asked.
fn is_late(context: &TurnContext) -> bool {
    context.membership.fence().check().is_err()
}

/// Compares the answer of a BMC with the record of its node. Writes another health, other boot settings, and the beginning and the end of a
/// fault. The caller writes the power states that differ, many at a time.
async fn compare(
    context: &TurnContext,
    node: &Node,
    answer: Result<PowerAndBootSettings, BmcError>,
) -> Look {
    if is_late(context) {
        return Look::Over;
    }
    match answer {
        Ok(reported) => {
            let PowerAndBootSettings { power, health, settings } = reported;
            note_answer(context, node.id, power);
            if let Some((recovered, entry)) = power_recovered(node, power, context.now()) {
                record_fault(context, &recovered, entry).await;
                return Look::Over;
            }
            if node.power_state.is_some_and(|known| known != power) {
                info!(node.id = %node.id, "node {} is now {power}, which was not requested here", node.id);
            }
            let keeps_settings = settings.is_none_or(|settings| node.has_boot_settings(settings));
            if health == node.health && keeps_settings {
                return match node.power_state {
                    Some(known) if known == power => {
                        Look::Agrees(node.id, Agreement::new(node, reported))
                    }
                    Some(_) | None => Look::OtherPower(SeenPower::of(node, power)),
                };
            }
            let changed =
                settings.map_or_else(|| node.clone(), |settings| node.with_boot_settings(settings));
            record(context, node, Node { health, power_state: Some(power), ..changed }).await;
            Look::Over
        }
        Err(error) => {
            let cause = problem::of_bmc(&error).cause;
            context.sightings.note(node.id, ObservedPart::Bmc, &*cause);
            let tries = context.sightings.power_failed(node.id);
            let is_recorded = node.maintenance.is_some() && node.power_state.is_none();
            if tries > context.settings.sweep.max_retries && !is_recorded {
                let (failed, entry) = power_failed(node, tries, &cause, context.now());
                record_fault(context, &failed, entry).await;
            }
            Look::Over
        }
    }
}

/// Records a node whose maintenance the conductor begins or ends.
async fn record_fault(context: &TurnContext, node: &Node, entry: HistoryEntry) {
    let event = entry.event.clone();
    match context.store.update_node(node, &[entry]).await {
        Ok(_) => warn!(node.id = %node.id, "node {}: {event}", node.id),
        // The next sweep looks again.
        Err(StoreError::Stale) => {}
        Err(error) => {
            warn!(error = chain(&error), "the fault of node {} is not recorded", node.id);
        }
    }
}

/// Records a node whose BMC reports another health or other boot settings than the record. They change rarely, so each node is written by
/// itself.
async fn record(context: &TurnContext, before: &Node, node: Node) {
    let node = Node { updated_at: Some(context.now()), ..node };
    let entry = changed_health(before, &node, context.now());
    match context.store.update_node(&node, entry.as_slice()).await {
        Ok(_) => {
            info!(
                "node {} now has the health {:?}, the boot mode {:?} and secure boot {:?}",
                node.id, node.health, node.boot_mode, node.secure_boot
            );
        }
        // The observation may be older than the other write.
        Err(StoreError::Stale) => {}
        Err(error) => {
            warn!(error = chain(&error), "the boot settings of node {} are not recorded", node.id);
        }
    }
}

/// The history entry for another health than before. The first health of a machine that is well is no event.
fn changed_health(before: &Node, after: &Node, now: Timestamp) -> Option<HistoryEntry> {
    let word = |health: Option<Health>| health.map_or("unknown", Health::as_str);
    let event = match (before.health, after.health) {
        (was, is) if was == is => return None,
        (None, Some(Health::Ok)) => return None,
        (was, is) => format!("the BMC reports the health {}; it was {}", word(is), word(was)),
    };
    Some(HistoryEntry::changed(before, after, event, now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use baremetal_core::{Driver, State};
    use hardware::BootSettings;
    use metrics::Metrics;
    use replicas::Membership;

    use super::*;
    use crate::samples::{self, SampleMachine};

    #[tokio::test]
    async fn a_sweep_records_nothing_without_a_lease() {
        let mut context = samples::conductor(samples::settings()).await.context;
        Arc::get_mut(&mut context).unwrap().membership = Membership::shared("host-1");
        let mut node = Node::new(NodeUuid::new_v4(), Driver::FakeHardware, context.now());
        node.provision_state = State::Manageable;
        context.store.insert_node(&node).await.unwrap();
        let ident = NodeIdent::Id(node.id);
        let node = context.store.find_node(&ident).await.unwrap().unwrap();

        let looked = look(context.clone(), node.id, node.version, None).await;
        assert!(matches!(looked, Look::Over));
        let mut swept = SweepInProgress::default();
        swept.reported.push(SeenPower::of(&node, PowerState::Off));
        swept.record(&context).await.unwrap();
        assert_eq!((swept.reported.len(), swept.changed), (0, 0));

        context.membership.fence().open(Instant::now() + Duration::from_secs(60));
        let looked = look(context.clone(), node.id, node.version, None).await;
        let Look::OtherPower(reported) = looked else { panic!("the record has no power state") };
        swept.reported.push(reported);
        swept.record(&context).await.unwrap();
        assert_eq!(swept.changed, 1);
        let after = context.store.find_node(&ident).await.unwrap().unwrap();
        assert_eq!(after.power_state, Some(PowerState::Off));
    }

    #[test]
    fn secure_boot_is_read_in_one_sweep_of_ten() {
        let node = Node::new(NodeUuid::new_v4(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let settings = Some(BootSettings { mode: None, secure_boot: Some(true) });
        let whole = PowerAndBootSettings { power: PowerState::On, health: None, settings };
        let power = PowerAndBootSettings { settings: None, ..whole };
        let mut agreement = Agreement::new(&node, whole);
        let mut read = 0;
        for _ in 0..100 {
            let answer = if agreement.sweeps_of_power > 0 { power } else { whole };
            read += usize::from(answer == whole);
            agreement = agreement.after(answer).unwrap();
        }
        assert_eq!(read, 10);
        let off = PowerAndBootSettings { power: PowerState::Off, ..power };
        let unhealthy = PowerAndBootSettings { health: Some(Health::Critical), ..power };
        let settings = Some(BootSettings { mode: None, secure_boot: Some(false) });
        let insecure = PowerAndBootSettings { settings, ..whole };
        for changed in [off, unhealthy, insecure] {
            assert!(agreement.after(changed).is_none());
        }
    }

    #[tokio::test]
    async fn a_machine_counts_in_each_sweep_even_if_its_record_is_not_read() {
        let sample = SampleMachine::start().await;
        let mut page = Metrics::new("test", "0");
        let mut settings = samples::settings();
        settings.metrics.sweeps = page.sweeps();
        let context = samples::conductor(settings).await.context;
        let (waiting, _) = sample.node();
        let idle = Node { provision_state: State::Active, work: None, ..waiting };
        context.store.insert_node(&idle).await.unwrap();
        let mut agreeing = AgreeingNodes::new();
        // The first sweep records what the BMC reports, the second one finds it recorded, and the third one does not read the record.
        for known in [0, 1, 1] {
            sweep(&context, &mut agreeing).await.unwrap();
            assert_eq!(agreeing.len(), known);
        }
        let text = page.text().unwrap();
        let line = "bedplate_sweep_machines_total{answered=\"true\"} 3";
        assert!(text.lines().any(|it| it == line), "no line {line} in:\n{text}");
    }
}
