//! Enrolls a rack: finds what its manifest adds and changes, and every mistake in it.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use baremetal_core::{
    Driver, Interface, Node, NodeName, NodeUuid, Port, PortFilter, PortSort, PortUuid, Rack,
    RackLocation,
};
use baremetal_store::StoreError;
use hardware::MacAddress;
use jiff::Timestamp;
use openstack_api::{ApiError, JsonShape};
use rack_manifest::{MachineRequest, ManifestError, RackRequest};
use serde::Serialize;
use serde_json::Map;

use super::document::write;
use crate::app::App;
use crate::error::Error;
use crate::secret;

/// The planned changes of an enrolment. Nothing is written yet.
pub(super) struct Enrolment {
    name: String,
    rack: Rack,
    /// The version of the rack's document that the plan is based on; `None` for a new rack.
    version: Option<i64>,
    new: Vec<Node>,
    changed: Vec<Node>,
    ports: Vec<Port>,
    told: Vec<EnrolmentResult>,
}

#[derive(Clone, Serialize)]
struct EnrolmentResult {
    name: String,
    uuid: NodeUuid,
    /// `enrolled`, `updated` or `unchanged`.
    result: &'static str,
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

/// The JSON shape of the answer.
pub(super) fn shape() -> JsonShape {
    let told = JsonShape::object([
        ("name", JsonShape::text()),
        ("uuid", JsonShape::text()),
        ("result", JsonShape::enumeration(["enrolled", "updated", "unchanged"])),
    ]);
    JsonShape::object([("name", JsonShape::text()), ("machines", JsonShape::list(told))])
}

/// The answer: the result for each machine.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    name: &'a str,
    machines: &'a [EnrolmentResult],
}

impl Enrolment {
    /// Compares `asked` with the stored rack. A single mistake refuses the whole rack.
    pub(super) async fn plan(app: &App, asked: &RackRequest) -> Result<Self, Error> {
        asked.name.parse::<NodeName>().map_err(|why| ApiError::bad_field("name", why))?;
        let found = app.store.find_rack(&asked.name).await?;
        let version = found.as_ref().map(|(_, version)| *version);
        let goal = match found {
            Some((document, _)) => Rack::read(&asked.name, document)?.goal,
            None => None,
        };
        let rack = Rack { description: asked.description.clone(), goal };

        let members = app.conductor.nodes_of_rack(&asked.name).await?;
        let members: HashMap<String, Node> =
            members.into_iter().map(|node| (node.label(), node)).collect();
        let owners = owners(app, asked).await?;
        let mut enrolment = Enrolment {
            name: asked.name.clone(),
            rack,
            version,
            new: Vec::new(),
            changed: Vec::new(),
            ports: Vec::new(),
            told: Vec::new(),
        };
        let mut mistakes = Mistakes::default();
        for machine in &asked.machines {
            let known = members.get(&machine.name);
            enrolment.add(app, machine, known, &owners, &mut mistakes);
        }
        mistakes.refuse(&asked.name)?;
        Ok(enrolment)
    }

    fn add(
        &mut self,
        app: &App,
        asked: &MachineRequest,
        known: Option<&Node>,
        owners: &HashMap<MacAddress, NodeUuid>,
        mistakes: &mut Mistakes,
    ) {
        let now = (app.clock)();
        let Some(node) = desired_node(app, &self.name, asked, known, now, mistakes) else { return };
        for raw in &asked.ports {
            let Some(mac) = mistakes.or_note(asked.line, "mac", raw.parse::<MacAddress>()) else {
                continue;
            };
            if !mistakes.macs.insert(mac) {
                mistakes.note(asked.line, "mac", format!("{mac} appears twice in this rack"));
            }
            match owners.get(&mac) {
                Some(owner) if *owner != node.id => {
                    mistakes.note(
                        asked.line,
                        "mac",
                        format!("{mac} is already a port of node {owner}"),
                    );
                }
                Some(_) => {}
                None => self.ports.push(port(&node, mac, now)),
            }
        }
        let result = match known {
            None => "enrolled",
            Some(before) if *before == node => "unchanged",
            Some(before) if before.provision_state.is_busy() => {
                let problem =
                    format!("cannot be changed while the node is {}", before.provision_state);
                mistakes.note(asked.line, "name", problem);
                return;
            }
            Some(_) => "updated",
        };
        self.told.push(EnrolmentResult { name: asked.name.clone(), uuid: node.id, result });
        match result {
            "enrolled" => self.new.push(node),
            "updated" => self.changed.push(Node { updated_at: Some(now), ..node }),
            _ => {}
        }
    }

    /// Writes all changes in one transaction.
    pub(super) async fn record(&self, app: &App, asked: &RackRequest) -> Result<(), Error> {
        let document = write(&self.rack)?;
        let rack = (&*self.name, &document, self.version);
        let written = app.store.enroll(rack, &self.new, &self.changed, &self.ports, &[]).await;
        let Err(StoreError::Duplicate { field, value }) = written else { return Ok(written?) };
        // A node outside this rack uses the name or address.
        let has = |machine: &&MachineRequest| {
            let same = |mac: &String| mac.eq_ignore_ascii_case(&value);
            machine.name == value || machine.ports.iter().any(same)
        };
        let line = asked.machines.iter().find(has).map_or(0, |machine| machine.line);
        let mut mistakes = Mistakes::default();
        mistakes.note(
            line,
            field,
            format!("{value:?} is already used by a node outside this rack"),
        );
        Ok(mistakes.refuse(&self.name)?)
    }

    /// The nodes that were written.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeUuid> {
        self.new.iter().chain(&self.changed).map(|node| node.id)
    }

    /// The results for the answer.
    pub(super) fn answer<'a>(&'a self, name: &'a str) -> Answer<'a> {
        Answer { name, machines: &self.told }
    }
}

/// The node that a machine of the manifest describes.
fn desired_node(
    app: &App,
    rack: &str,
    asked: &MachineRequest,
    known: Option<&Node>,
    now: Timestamp,
    mistakes: &mut Mistakes,
) -> Option<Node> {
    let line = asked.line;
    let name = mistakes.or_note(line, "name", asked.name.parse::<NodeName>());
    let driver = mistakes.or_note(line, "bmc.type", asked.driver.parse::<Driver>())?;
    if !mistakes.names.insert(asked.name.clone()) {
        mistakes.note(line, "name", format!("{:?} appears twice in this rack", asked.name));
    }
    if !mistakes.positions.insert(asked.position) {
        mistakes.note(line, "position", format!("position {} is used twice", asked.position));
    }
    let mut node = known.cloned().unwrap_or_else(|| Node::new(NodeUuid::new_v4(), driver, now));
    node.name = name;
    node.driver = driver;
    node.driver_info.clone_from(&asked.driver_info);
    let before = known.map(|known| known.driver_info.clone()).unwrap_or_default();
    mistakes.or_note(
        line,
        "bmc",
        secret::restore_masked("driver_info", &before, &mut node.driver_info),
    );
    if let Some(known) = known {
        app.store.secrets().keep_unchanged_seals(known, &mut node);
    }
    node.place = Some(RackLocation {
        rack: rack.to_owned(),
        position: asked.position,
        group: asked.group.clone(),
        role: asked.role.clone(),
    });
    if asked.resource_class.is_some() {
        node.resource_class.clone_from(&asked.resource_class);
    }
    // Properties found by inspection are kept unless the manifest overrides them.
    node.properties.extend(asked.properties.clone());
    node.interfaces.boot = None;
    if let Some(boot) = asked.boot_interface.as_deref() {
        let supported = driver.supported(Interface::Boot);
        if !supported.contains(&boot) || !node.interfaces.choose(Interface::Boot, boot) {
            let boot: String = boot.chars().take(64).collect();
            let known = supported.join(", ");
            mistakes.note(line, "boot", format!("{boot:?} is not one of {known}"));
        }
    }
    if let Err(problem) = app.conductor.check_driver_info(&node) {
        mistakes.note(line, "bmc", problem);
    }
    Some(node)
}

/// The nodes that already have the requested port addresses.
async fn owners(app: &App, asked: &RackRequest) -> Result<HashMap<MacAddress, NodeUuid>, Error> {
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

fn port(node: &Node, address: MacAddress, now: Timestamp) -> Port {
    Port {
        id: PortUuid::new_v4(),
        version: 1,
        created_at: now,
        updated_at: None,
        node: node.id,
        address,
        name: None,
        description: None,
        pxe_enabled: true,
        local_link_connection: Map::new(),
        physical_network: None,
        portgroup: None,
        is_smartnic: false,
        extra: Map::new(),
    }
}

/// The mistakes found so far, and the values used by machines further up.
#[derive(Default)]
struct Mistakes {
    found: Vec<ManifestError>,
    names: HashSet<String>,
    positions: HashSet<u32>,
    macs: HashSet<MacAddress>,
}

impl Mistakes {
    fn note(&mut self, line: u64, field: &str, problem: String) {
        self.found.push(ManifestError { line, field: field.to_owned(), problem });
    }

    /// Returns the parsed value, or notes the error as a mistake.
    fn or_note<T, E: Display>(&mut self, line: u64, field: &str, read: Result<T, E>) -> Option<T> {
        read.map_err(|why| self.note(line, field, why.to_string())).ok()
    }

    /// Refuses the rack if there are mistakes.
    fn refuse(&self, rack: &str) -> Result<(), ApiError> {
        if self.found.is_empty() {
            return Ok(());
        }
        let lines =
            self.found.iter().take(100).map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let problem = format!(
            "rack {rack} has {} mistakes and nothing was enrolled:\n{lines}",
            self.found.len()
        );
        Err(ApiError::bad_request(problem))
    }
}
