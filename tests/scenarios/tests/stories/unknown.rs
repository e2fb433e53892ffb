//! Machines that are not enrolled: discovered without writing to them, or refused.

use api_client::baremetald::{Discoveries, Discovery, Node};
use lab::{Lab, Machine, RackedMachine, Settings};
use machine_emulator::{BootSource, Content, Event};

/// Old content of a disk, from which nothing boots.
const REMAINS: Content = Content::Broken { bytes: 1 << 20 };

/// Puts a machine with content on its disk into the rack, and switches it on.
pub(crate) async fn appears(lab: &Lab, machine: Machine) -> RackedMachine {
    let machine = lab.rack(machine).await;
    machine.put_on_disk(0, REMAINS);
    machine.chassis().push_power_button();
    machine
}

/// Waits for a discovery of this machine that `look` accepts.
pub(crate) async fn discovered(
    lab: &Lab,
    machine: &RackedMachine,
    look: impl Fn(&Discovery) -> bool,
) -> Discovery {
    let mac = machine.spec().nics[0].mac.to_string();
    let found =
        |list: &Discoveries| list.discoveries.iter().find(|it| it.id == mac && look(it)).cloned();
    lab.api().until("/bedplate/v1/discoveries", "a discovery", found).await
}

/// An unknown machine boots from the network and its inventory is listed, and nothing else happens to it. Once enrolled, the machine is
/// like any other.
async fn is_found(blueprint: Machine) {
    let settings = Settings { unknown_machines: "discover", ..Settings::default() };
    let lab = Lab::start_with(settings).await;
    let machine = appears(&lab, blueprint).await;
    let found = discovered(&lab, &machine, |it| !it.data.is_null()).await;
    let reported = |pointer| found.reported(pointer).unwrap_or_default();
    assert_eq!(reported("/system_vendor/serial_number"), machine.spec().serial);
    assert_eq!(reported("/disks/0/serial"), machine.spec().disks[0].serial);
    assert!(found.first_seen_at < found.last_seen_at, "{found:?}");

    assert_eq!(machine.disks(), [REMAINS], "nothing is written to a stranger");
    assert_eq!(machine.chassis().log(), [], "nobody knows its BMC");
    assert_eq!(lab.api().list::<Node>("/v1/nodes").await, []);

    let node = lab.available(&machine).await;
    lab.provision(node, "active").await.reaches("active").await;
}

#[tokio::test]
async fn an_unknown_machine_is_found_by_network_boot() {
    is_found(Machine::redfish("stranger")).await;
}

#[tokio::test]
async fn an_unknown_machine_with_uefi_is_found_by_network_boot() {
    is_found(Machine::redfish("stranger").uefi()).await;
}

#[tokio::test]
async fn our_agent_reports_the_inventory_of_an_unknown_machine() {
    let settings = Settings { unknown_machines: "discover", ..Settings::default() };
    let lab = Lab::start_with(settings).await;
    let machine = appears(&lab, Machine::redfish("stranger").with_our_agent()).await;
    let found = discovered(&lab, &machine, |it| !it.data.is_null()).await;
    let serial = found.reported("/system_vendor/serial_number");
    assert_eq!(serial, Some(machine.spec().serial.as_str()));
}

#[tokio::test]
async fn an_unknown_machine_is_refused_and_listed() {
    let lab = Lab::start().await;
    let machine = appears(&lab, Machine::redfish("stranger")).await;
    let refused = || {
        let events = machine.events();
        events.iter().any(|it| matches!(it, Event::CannotBoot(BootSource::Network, _)))
    };
    lab::until("the end of the first try to boot", refused).await;
    let leased = machine.events().iter().any(|it| matches!(it, Event::Leased(..)));
    assert!(!leased, "a stranger gets no address: {:?}", machine.events());
    let noted = discovered(&lab, &machine, |_| true).await;
    assert!(noted.data.is_null(), "it was seen, and not looked at");
    assert_eq!(machine.disks(), [REMAINS]);
}
