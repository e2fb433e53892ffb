//! Enrolls a rack: gathers the facts for the plan of `baremetal-core`, and records the plan.

use std::collections::HashMap;

use baremetal_core::{
    BmcIdentity, EnrolmentEffect, EnrolmentFacts, EnrolmentResult, EnrolmentRules, Node, NodeIdent,
    NodeName, NodeUuid, PortFilter, PortSort, Rack, RackMistakes, plan_enrolment,
};
use baremetal_store::{BMC_FIELD, StoreError};
use hardware::MacAddress;
use openstack_api::{ApiError, JsonShape, shaped};
use rack_manifest::{MachineRequest, ManifestError, RackRequest};
use serde::Serialize;
use uuid::Uuid;

use super::document::write;
use crate::app::App;
use crate::error::Result;
use crate::secret;

/// The planned changes of an enrolment. Nothing is written yet.
pub(super) struct Enrolment {
    name: String,
    rack: Rack,
    /// The version of the rack's document that the plan is based on; `None` for a new rack.
    version: Option<i64>,
    plan: baremetal_core::Enrolment,
}

/// The JSON shape of `rack_manifest::RackRequest`.
pub(super) fn request_shape() -> JsonShape {
    let maybe = || JsonShape::text().or_null();
    let machine = JsonShape::object([
        ("name", JsonShape::text()),
        ("position", JsonShape::integer()),
        ("driver", JsonShape::text()),
    ]);
    let machine = machine.maybe([
        ("line", JsonShape::integer()),
        ("ports", JsonShape::list(JsonShape::text())),
        ("driver_info", JsonShape::any_object()),
        ("boot_interface", maybe()),
        ("group", maybe()),
        ("role", maybe()),
        ("resource_class", maybe()),
        ("properties", JsonShape::any_object()),
    ]);
    let rack =
        JsonShape::object([("name", JsonShape::text()), ("machines", JsonShape::list(machine))]);
    rack.maybe([("description", maybe())])
}

shaped! {
    /// The answer: the result for each machine.
    #[derive(Serialize)]
    pub(super) struct Answer<'a> {
        name: &'a str,
        machines: Vec<ShownResult<'a>>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct ShownResult<'a> {
        name: &'a str,
        uuid: NodeUuid,
        result: &'static str = JsonShape::enumeration(["enrolled", "updated", "unchanged"]),
    }
}

impl<'a> ShownResult<'a> {
    fn new(reported: &'a EnrolmentResult) -> Self {
        let result = match reported.effect {
            EnrolmentEffect::Enrolled => "enrolled",
            EnrolmentEffect::Updated => "updated",
            EnrolmentEffect::Unchanged => "unchanged",
        };
        ShownResult { name: &reported.name, uuid: reported.node, result }
    }
}

impl EnrolmentRules for App {
    fn new_id(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn restore_secrets(&self, known: Option<&Node>, node: &mut Node) -> Result<(), String> {
        let before = known.map(|known| known.driver_info.clone()).unwrap_or_default();
        let restored = secret::restore_masked("driver_info", &before, &mut node.driver_info);
        if let Some(known) = known {
            self.store.secrets().keep_unchanged_seals(known, node);
        }
        restored.map_err(|why| why.to_string())
    }

    fn check_driver_info(&self, node: &Node) -> Result<(), String> {
        self.conductor.check_driver_info(node)
    }
}

impl Enrolment {
    /// Compares `asked` with the stored rack. A single mistake refuses the whole rack.
    pub(super) async fn plan(app: &App, asked: &RackRequest) -> Result<Self> {
        asked.name.parse::<NodeName>().map_err(|why| ApiError::bad_field("name", why))?;
        let found = app.store.find_rack(&asked.name).await?;
        let version = found.as_ref().map(|(_, version)| *version);
        let goal = match found {
            Some((document, _)) => Rack::read(&asked.name, document)?.goal,
            None => None,
        };
        let rack = Rack { description: asked.description.clone(), goal };
        let plan = plan_enrolment(asked, &facts(app, asked).await?, app)?;
        Ok(Enrolment { name: asked.name.clone(), rack, version, plan })
    }

    /// Writes all changes in one transaction.
    pub(super) async fn record(&self, app: &App, asked: &RackRequest) -> Result<()> {
        let (document, plan) = (write(&self.rack)?, &self.plan);
        let rack = (&*self.name, &document, self.version);
        let written = app.store.enroll(rack, &plan.new, &plan.changed, &plan.ports, &[]).await;
        match written {
            Err(StoreError::Duplicate { field: BMC_FIELD, value }) => {
                Err(self.shared_bmc(app, asked, &value).await?.into())
            }
            Err(StoreError::Duplicate { field, value }) => {
                Err(self.duplicate(asked, field, &value).into())
            }
            written => Ok(written?),
        }
    }

    /// The refusal of a BMC that the node `holder` has, which may be another node of this rack.
    async fn shared_bmc(
        &self,
        app: &App,
        asked: &RackRequest,
        holder: &str,
    ) -> Result<RackMistakes> {
        let planned = || self.plan.new.iter().chain(&self.plan.changed);
        let other = match planned().find(|node| node.id.to_string() == holder) {
            Some(node) => Some(node.clone()),
            None => match holder.parse() {
                Ok(id) => app.store.find_node(&NodeIdent::Id(id)).await?,
                Err(_) => None,
            },
        };
        let bmc = other.as_ref().and_then(BmcIdentity::of);
        let has = |node: &&Node| {
            let own = BmcIdentity::of(node);
            node.id.to_string() != holder
                && own.zip(bmc.as_ref()).is_some_and(|(own, bmc)| own.is_same_machine(bmc))
        };
        let name = planned().find(has).map(Node::label).unwrap_or_default();
        let line = asked.machines.iter().find(|it| it.name == name).map_or(0, |it| it.line);
        let label = other.map_or_else(|| holder.to_owned(), |node| node.label());
        let problem = format!("this BMC belongs to node {label} already");
        let found = vec![ManifestError { line, field: "bmc".to_owned(), problem }];
        Ok(RackMistakes { rack: self.name.clone(), found })
    }

    /// The refusal of a name or an address that a node outside this rack uses.
    fn duplicate(&self, asked: &RackRequest, field: &str, value: &str) -> RackMistakes {
        let has = |machine: &&MachineRequest| {
            let same = |mac: &String| mac.eq_ignore_ascii_case(value);
            machine.name == value || machine.ports.iter().any(same)
        };
        let line = asked.machines.iter().find(has).map_or(0, |machine| machine.line);
        let problem = format!("{value:?} is already used by a node outside this rack");
        let found = vec![ManifestError { line, field: field.to_owned(), problem }];
        RackMistakes { rack: self.name.clone(), found }
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeUuid> {
        self.plan.new.iter().chain(&self.plan.changed).map(|node| node.id)
    }

    /// The results for the answer.
    pub(super) fn answer<'a>(&'a self, name: &'a str) -> Answer<'a> {
        Answer { name, machines: self.plan.results.iter().map(ShownResult::new).collect() }
    }
}

/// The facts that the plan depends on.
async fn facts(app: &App, asked: &RackRequest) -> Result<EnrolmentFacts> {
    let members = app.conductor.nodes_of_rack(&asked.name).await?;
    let ids: Vec<NodeUuid> = members.iter().map(|node| node.id).collect();
    let members = members.into_iter().map(|node| (node.label(), node)).collect();
    Ok(EnrolmentFacts {
        members,
        owners: owners(app, asked).await?,
        ports: app.store.count_ports(&ids).await?,
        now: (app.clock)(),
    })
}

/// The nodes that already have the requested port addresses.
async fn owners(app: &App, asked: &RackRequest) -> Result<HashMap<MacAddress, NodeUuid>> {
    let addresses = asked.machines.iter().flat_map(|machine| &machine.ports);
    let addresses: Vec<MacAddress> = addresses.filter_map(|raw| raw.parse().ok()).collect();
    let mut owners = HashMap::new();
    for chunk in addresses.chunks(500) {
        let filter = PortFilter { addresses: chunk.to_vec(), ..PortFilter::default() };
        let page = baremetal_core::Page {
            limit: 500,
            marker: None,
            sort: PortSort::Id,
            descending: false,
        };
        let ports = app.store.list_ports(&filter, &page).await?;
        owners.extend(ports.into_iter().map(|port| (port.address, port.node)));
    }
    Ok(owners)
}
