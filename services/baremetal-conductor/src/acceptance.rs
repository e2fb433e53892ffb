//! Accepts discoveries: gathers the facts for a person's acceptance, and accepts machines by inspection rules.

use baremetal_core::{
    Acceptance, AcceptanceFacts, AcceptanceRequest, Discovery, InspectionReport, MissingAddress,
    Port, RequestRefused, RuleChanges, plan_acceptance,
};
use baremetal_store::{AcceptOutcome, StoreError};
use serde_json::Value;
use tracing::{info, warn};
use uuid::Uuid;

use crate::conductor::Conductor;
use crate::problem::{ActionError, Result, chain};

/// The part of the plugin data by which rules recognize a machine that nobody has enrolled, as in Ironic
/// (`AUTO_DISCOVERED_FLAG` of `ironic/drivers/modules/inspect_utils.py`).
const AUTO_DISCOVERED: &str = "auto_discovered";

/// Why a machine is not accepted by rules.
#[derive(Debug, thiserror::Error)]
enum NotAccepted {
    #[error(transparent)]
    Refused(#[from] RequestRefused),
    #[error(transparent)]
    Rules(#[from] ActionError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Conductor {
    /// Plans the acceptance of a discovery. Nothing is written.
    ///
    /// # Errors
    ///
    /// Returns the field and the reason.
    pub fn plan_acceptance(
        &self,
        found: &Discovery,
        asked: &AcceptanceRequest,
    ) -> Result<Acceptance, RequestRefused> {
        self.plan(found, asked, MissingAddress::Refused)
    }

    fn plan(
        &self,
        found: &Discovery,
        asked: &AcceptanceRequest,
        missing_address: MissingAddress,
    ) -> Result<Acceptance, RequestRefused> {
        let settings = &self.context.settings;
        let facts = AcceptanceFacts {
            driver: settings.discovery.driver,
            credentials: &settings.discovery.credentials,
            group: &settings.groups[0],
            missing_address,
            now: self.context.now(),
        };
        plan_acceptance(found, asked, &facts, &Uuid::new_v4)
    }

    /// Makes a node of a machine whose inventory has arrived, and runs the inspection rules for it. A machine that cannot be accepted stays
    /// a discovery, which tells the reason, and which a person can accept.
    ///
    /// # Errors
    ///
    /// The database does not answer. The agent repeats its report.
    pub(crate) async fn accept_by_rules(&self, found: &Discovery) -> Result<(), StoreError> {
        match self.try_rules(found).await {
            Ok(Some(Acceptance { node, .. })) => {
                info!(node.id = %node.id, "the discovered machine {} is now node {}", found.id, node.label());
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(NotAccepted::Store(why) | NotAccepted::Rules(ActionError::Store(why)))
                if why.is_transient() =>
            {
                Err(why)
            }
            Err(why) => {
                let why = chain(&why);
                warn!(error = why, "the discovered machine {} is not accepted", found.id);
                self.context.store.update_discovery_data(&found.with_refusal(why)).await
            }
        }
    }

    /// Returns what was written; `None` if the machine was accepted or dismissed before.
    async fn try_rules(&self, found: &Discovery) -> Result<Option<Acceptance>, NotAccepted> {
        let context = &self.context;
        let planned = self.plan(found, &AcceptanceRequest::default(), MissingAddress::Permitted)?;
        let accepted = match planned.report.clone() {
            Some(report) => self.with_rules(planned, marked(report)).await?,
            None => planned,
        };
        self.check_hosts(None, &accepted.node)?;
        match context.store.accept_discovery(found.id, &accepted).await? {
            AcceptOutcome::Accepted => Ok(Some(accepted)),
            AcceptOutcome::Present(_) | AcceptOutcome::Missing => Ok(None),
        }
    }

    /// Returns the acceptance with the changes of the inspection rules.
    async fn with_rules(
        &self,
        planned: Acceptance,
        report: InspectionReport,
    ) -> Result<Acceptance> {
        let Acceptance { node, ports, report: _, entry } = planned;
        let ran = self.context.run_rules(&node, node.clone(), ports.clone(), &report).await?;
        let RuleChanges { node, ports: changed, plugin_data, logs: _ } = ran;
        let changed_or =
            |port: Port| changed.iter().find(|it| it.id == port.id).cloned().unwrap_or(port);
        let ports = ports.into_iter().map(changed_or).collect();
        let plugin_data = plugin_data.unwrap_or(report.plugin_data);
        let report = Some(InspectionReport { plugin_data, ..report });
        Ok(Acceptance { node, ports, report, entry })
    }
}

/// Returns the report with the mark of a machine that nobody has enrolled.
fn marked(mut report: InspectionReport) -> InspectionReport {
    if let Value::Object(plugin_data) = &mut report.plugin_data {
        plugin_data.insert(AUTO_DISCOVERED.to_owned(), true.into());
    }
    report
}
