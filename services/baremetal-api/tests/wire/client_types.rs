//! The types with which our clients read the answers. Every wire test reads its answers with them.

use api_client::baremetald::{
    Discovery, Enrolment, EventLog, Explanation, History, Inventory, Node, NodeCounts, NodeLease,
    Port, Ports, Profile, Rack, RackMachine, RackSummary, Reservation, SensorReading, Sensors,
};
use api_client::shared::{ApiRoot, AuditRow, AuditVerdict, Health, Key, PolicyRow};
use contract::ClientType;

pub(crate) const TYPES: &[ClientType] = &[
    ClientType::answer::<ApiRoot>("GET", "/"),
    ClientType::element::<Node>("/v1/nodes"),
    ClientType::answer::<Node>("GET", "/v1/nodes/{node}"),
    ClientType::answer::<Node>("POST", "/v1/nodes"),
    ClientType::answer::<Ports>("GET", "/v1/ports"),
    ClientType::part::<Port>("/v1/ports", "ports"),
    ClientType::answer::<History>("GET", "/v1/nodes/{node}/history"),
    ClientType::answer::<Inventory>("GET", "/v1/nodes/{node}/inventory"),
    ClientType::answer::<Explanation>("GET", "/bedplate/v1/nodes/{node}/explain"),
    ClientType::answer::<NodeLease>("POST", "/bedplate/v1/nodes/{node}/lease"),
    ClientType::answer::<NodeLease>("PUT", "/bedplate/v1/nodes/{node}/lease"),
    ClientType::answer::<NodeLease>("POST", "/bedplate/v1/nodes/{node}/lease/undo"),
    ClientType::answer::<Sensors>("GET", "/bedplate/v1/nodes/{node}/sensors"),
    ClientType::part::<SensorReading>("/bedplate/v1/nodes/{node}/sensors", "sensors"),
    ClientType::answer::<EventLog>("GET", "/bedplate/v1/nodes/{node}/event-log"),
    ClientType::answer::<NodeCounts>("GET", "/bedplate/v1/counts"),
    ClientType::element::<Discovery>("/bedplate/v1/discoveries"),
    ClientType::element::<RackSummary>("/bedplate/v1/racks"),
    ClientType::answer::<Enrolment>("POST", "/bedplate/v1/racks"),
    ClientType::answer::<Rack>("GET", "/bedplate/v1/racks/{rack}"),
    ClientType::part::<RackMachine>("/bedplate/v1/racks/{rack}", "machines"),
    ClientType::element::<Profile>("/bedplate/v1/hypervisor-profiles"),
    ClientType::answer::<Profile>("POST", "/bedplate/v1/hypervisor-profiles"),
    ClientType::answer::<Profile>("GET", "/bedplate/v1/hypervisor-profiles/{profile}"),
    ClientType::answer::<Profile>("PUT", "/bedplate/v1/hypervisor-profiles/{profile}"),
    ClientType::element::<Reservation>("/bedplate/v1/reservations"),
    ClientType::answer::<Reservation>("POST", "/bedplate/v1/reservations"),
    ClientType::answer::<Reservation>("GET", "/bedplate/v1/reservations/{reservation}"),
    ClientType::answer::<Reservation>("PUT", "/bedplate/v1/reservations/{reservation}/lease"),
    ClientType::answer::<Reservation>("POST", "/bedplate/v1/reservations/{reservation}/lease/undo"),
    ClientType::element::<Key>("/bedplate/v1/keys"),
    ClientType::element::<PolicyRow>("/bedplate/v1/policy"),
    ClientType::element::<AuditRow>("/bedplate/v1/audit"),
    ClientType::answer::<AuditVerdict>("GET", "/bedplate/v1/audit/verify"),
    ClientType::answer::<Health>("GET", "/bedplate/v1/health"),
];
