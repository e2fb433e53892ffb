use std::cell::Cell;

use serde_json::json;

use super::*;
use crate::{BootInterface, State};

/// Rules that count the ids up from 1, and accept every `driver_info` with an address.
#[derive(Default)]
struct TestRules {
    ids: Cell<u128>,
}

impl EnrolmentRules for TestRules {
    fn new_id(&self) -> Uuid {
        self.ids.set(self.ids.get() + 1);
        Uuid::from_u128(self.ids.get())
    }

    fn restore_secrets(&self, _: Option<&Node>, _: &mut Node) -> Result<(), String> {
        Ok(())
    }

    fn check_driver_info(&self, node: &Node) -> Result<(), String> {
        let known = node.driver_info.get("redfish_address").map(drop);
        known.ok_or_else(|| "redfish_address: is required".to_owned())
    }
}

fn machine(name: &str, position: u32, ports: &[&str]) -> MachineRequest {
    let body = json!({
        "line": position + 1, "name": name, "position": position, "ports": ports, "driver": "redfish",
        "driver_info": {"redfish_address": "https://192.0.2.1"},
    });
    serde_json::from_value(body).unwrap()
}

fn plan(machines: Vec<MachineRequest>, facts: &EnrolmentFacts) -> Result<Enrolment, RackMistakes> {
    let asked = RackRequest { name: "r1".to_owned(), description: None, machines };
    plan_enrolment(&asked, facts, &TestRules::default())
}

fn no_facts() -> EnrolmentFacts {
    EnrolmentFacts {
        members: HashMap::new(),
        owners: HashMap::new(),
        ports: HashMap::new(),
        now: Timestamp::UNIX_EPOCH,
    }
}

/// The facts after `plan` was recorded.
fn recorded(plan: &Enrolment) -> EnrolmentFacts {
    let name = |node: &Node| node.name.as_ref().unwrap().to_string();
    EnrolmentFacts {
        members: plan.new.iter().map(|node| (name(node), node.clone())).collect(),
        owners: plan.ports.iter().map(|port| (port.address, port.node)).collect(),
        ports: HashMap::new(),
        now: Timestamp::from_second(60).unwrap(),
    }
}

fn effects(plan: &Enrolment) -> Vec<EnrolmentEffect> {
    plan.results.iter().map(|result| result.effect).collect()
}

const MACS: [&str; 2] = ["52:54:00:00:00:01", "52:54:00:00:00:02"];

#[test]
fn a_rack_is_enrolled_once() {
    use EnrolmentEffect::{Enrolled, Unchanged, Updated};
    let machines = || vec![machine("a", 1, &MACS), machine("b", 2, &[])];
    let first = plan(machines(), &no_facts()).unwrap();
    assert_eq!((effects(&first), first.ports.len()), (vec![Enrolled, Enrolled], 2));
    assert!(first.ports.iter().all(|port| port.node == first.new[0].id && port.pxe_enabled));
    assert_eq!(first.new[1].place.as_ref().unwrap().position, 2);

    let facts = recorded(&first);
    let again = plan(machines(), &facts).unwrap();
    assert_eq!((effects(&again), again.ports.len()), (vec![Unchanged, Unchanged], 0));
    assert!(again.new.is_empty() && again.changed.is_empty());

    let moved = plan(vec![machine("a", 3, &MACS)], &facts).unwrap();
    assert_eq!(effects(&moved), [Updated]);
    assert_eq!(
        (moved.changed[0].id, moved.changed[0].updated_at),
        (first.new[0].id, Some(facts.now))
    );
}

#[test]
fn every_mistake_is_told_with_its_line() {
    #[track_caller]
    fn check(machines: Vec<MachineRequest>, facts: &EnrolmentFacts, want: &[&str]) {
        let mistakes = plan(machines, facts).unwrap_err();
        let reported: Vec<String> = mistakes.found.iter().map(ToString::to_string).collect();
        assert_eq!(reported, want);
    }
    let none = &no_facts();
    let unknown = MachineRequest { driver: "serial".to_owned(), ..machine("a b", 1, &[]) };
    let mistakes = plan(vec![unknown], none).unwrap_err();
    assert_eq!(
        mistakes.found.iter().map(|it| &*it.field).collect::<Vec<_>>(),
        ["name", "bmc.type"]
    );
    check(
        vec![machine("a", 1, &[]), machine("a", 1, &[])],
        none,
        &[
            "line 2: name: \"a\" appears twice in this rack",
            "line 2: position: position 1 is used twice",
        ],
    );
    check(
        vec![machine("a", 1, &[MACS[0]]), machine("b", 2, &[MACS[0]])],
        none,
        &["line 3: mac: 52:54:00:00:00:01 appears twice in this rack"],
    );
    let boot = MachineRequest { boot_interface: Some("floppy".to_owned()), ..machine("a", 1, &[]) };
    let mistakes = plan(vec![boot], none).unwrap_err();
    assert!(mistakes.to_string().contains("line 2: boot: \"floppy\" is not one of "), "{mistakes}");
    let lost = MachineRequest { driver_info: Default::default(), ..machine("a", 1, &[]) };
    check(vec![lost], none, &["line 2: bmc: redfish_address: is required"]);

    let stranger = NodeUuid::from_untyped_uuid(Uuid::from_u128(99));
    let owners = HashMap::from([(MACS[0].parse().unwrap(), stranger)]);
    let taken = format!("line 3: mac: {} is already a port of node {stranger}", MACS[0]);
    check(vec![machine("b", 2, &MACS)], &EnrolmentFacts { owners, ..no_facts() }, &[&taken]);

    let mut facts = recorded(&plan(vec![machine("a", 1, &MACS)], none).unwrap());
    facts.members.get_mut("a").unwrap().provision_state = State::Cleaning;
    let busy = "line 4: name: cannot be changed while the node is cleaning";
    check(vec![machine("a", 3, &MACS)], &facts, &[busy]);
    assert!(plan(vec![machine("a", 1, &MACS)], &facts).is_ok(), "an unchanged node may be busy");
}

#[test]
fn a_machine_has_as_many_ports_as_a_node_may_have() {
    let mac = |number: usize| format!("52:54:00:00:{:02x}:{:02x}", number >> 8, number & 0xff);
    let machine_with = |count: usize| {
        let ports: Vec<String> = (0..count).map(mac).collect();
        machine("a", 1, &ports.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let first = plan(vec![machine_with(MOST_PARTS)], &no_facts()).unwrap();
    assert_eq!(first.ports.len(), MOST_PARTS);
    let refused = |facts: &EnrolmentFacts, count| {
        let mistakes = plan(vec![machine_with(count)], facts).unwrap_err();
        mistakes.found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let too_many = "line 2: mac: the node would have 257 ports; at most 256 are allowed";
    assert_eq!(refused(&no_facts(), MOST_PARTS + 1), [too_many]);

    // The ports that the node has already count, whether the manifest names them or not.
    let mut facts = recorded(&first);
    facts.ports.insert(first.new[0].id, MOST_PARTS);
    assert!(plan(vec![machine_with(MOST_PARTS)], &facts).is_ok());
    assert_eq!(refused(&facts, MOST_PARTS + 1), [too_many]);
}

#[test]
fn the_refusal_tells_at_most_a_hundred_mistakes() {
    let machines = (0..150).map(|_| machine("a", 1, &[])).collect();
    let reported = plan(machines, &no_facts()).unwrap_err().to_string();
    assert!(reported.starts_with("rack r1 has 298 mistakes and nothing was enrolled:\nline 2: "));
    assert_eq!(reported.lines().count(), 101);
}

#[test]
fn a_machine_boots_only_in_ways_that_its_driver_supports() {
    let enrolled = |boot: &str| {
        let boot_interface = Some(boot.to_owned());
        plan(vec![MachineRequest { boot_interface, ..machine("a", 1, &[]) }], &no_facts())
    };
    let chosen = enrolled("http-ipxe").unwrap().new[0].interfaces.boot;
    assert_eq!(chosen, Some(BootInterface::HttpIpxe));
    // Another driver has this implementation.
    let refused = enrolled("fake").unwrap_err().to_string();
    let want = "line 2: boot: \"fake\" is not one of ipxe, http-ipxe, redfish-virtual-media";
    assert!(refused.ends_with(want), "{refused}");
}
