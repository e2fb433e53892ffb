//! baremetald is killed before and after each of its effects and writes, one after another, during every kind of request for a node:
//! nothing is lost, and nothing is done twice.

mod acceptances;
mod bmc_passwords;
mod children;
mod drains;
mod fast_track;
mod firmware_settings;
mod firmware_updates;
mod images;
mod inspections;
mod names;
mod networks;
mod notices;
mod notifications;
mod raid_volumes;
mod rescues;
mod vifs;

use api_client::baremetald::{self, GoalProgress, HistoryEvent, NodeLease, Rack};
use bmc_emulator::{Outcome, PowerRequest, Request};
use lab::{Lab, Machine, Node, Postgres, RackedMachine, Settings};
use machine_emulator::{Event, Stage};
use peers::kill_every;
use reqwest::Method;
use serde_json::{Value, json};

use PowerRequest::{ForceOff, On, SoftOff};

pub(crate) use images::live_iso;

/// The service is killed at every `EVERY`-th point that it reaches for the first time, and with `BEDPLATE_SOAK` at each.
const EVERY: usize = 4;

/// A request for a node, and the expected effects.
struct RequestAndEffects {
    asked: Value,
    /// The states that the node passes; the last is the final state.
    states: &'static [&'static str],
    /// The power changes that the BMC receives.
    power: &'static [PowerRequest],
    /// The steps that the agent executes.
    steps: &'static [&'static str],
}

fn part(
    target: &str,
    states: &'static [&'static str],
    power: &'static [PowerRequest],
    steps: &'static [&'static str],
) -> RequestAndEffects {
    RequestAndEffects { asked: json!({"target": target}), states, power, steps }
}

const INSPECTION: &[&str] = &["inspecting", "inspect wait", "inspecting", "manageable"];
const CLEANING: &[&str] = &["cleaning", "clean wait", "cleaning", "available"];
const CLEANING_BY_HAND: &[&str] = &["cleaning", "clean wait", "cleaning", "manageable"];
pub(crate) const DEPLOYMENT: &[&str] = &["deploying", "wait call-back", "deploying", "active"];
pub(crate) const UNDEPLOYMENT: &[&str] =
    &["deleting", "cleaning", "clean wait", "cleaning", "available"];
pub(crate) const WRITES: &[&str] =
    &["get_deploy_steps", "write_image", "install_bootloader", "sync"];
pub(crate) const ERASES: &[&str] = &["get_clean_steps", "erase_devices_metadata", "sync"];
/// The commands after a lessee used the machine.
const ERASES_EVERYTHING: &[&str] =
    &["get_clean_steps", "erase_devices_metadata", "erase_devices", "sync"];

/// The command that shuts a machine down. A kill of the service may leave it out, and then the BMC switches the machine off.
const SHUTDOWN: &str = "power_off";

/// All requests in the life of a machine, from its enrolment on.
fn life() -> Vec<RequestAndEffects> {
    let erase = json!([{"interface": "deploy", "step": "erase_devices"}]);
    vec![
        part("manage", &["verifying", "manageable"], &[], &[]),
        part("inspect", INSPECTION, &[On, ForceOff], &[]),
        part("provide", CLEANING, &[On, ForceOff], ERASES),
        part("active", DEPLOYMENT, &[On, ForceOff, On], WRITES),
        part("rebuild", DEPLOYMENT, &[ForceOff, On, ForceOff, On], WRITES),
        part("deleted", UNDEPLOYMENT, &[ForceOff, On, ForceOff], ERASES),
        part("manage", &["manageable"], &[], &[]),
        RequestAndEffects {
            asked: json!({"target": "clean", "clean_steps": erase}),
            states: CLEANING_BY_HAND,
            power: &[On, ForceOff],
            steps: &["get_clean_steps", "erase_devices", "sync"],
        },
        part("adopt", &["adopting", "active"], &[], &[]),
    ]
}

/// Short intervals, because the service dies before most of its timeouts. A machine whose boot script is lost boots the ramdisk again after
/// the boot timeout.
fn settings() -> Settings {
    Settings { ask_again: "200ms", poll_every: "10ms", boot_timeout: "10s", ..Settings::default() }
}

/// The state of a machine and its node at some time.
#[derive(Default)]
pub(crate) struct StateBefore {
    pub(crate) node: baremetald::Node,
    pub(crate) history: usize,
    pub(crate) requests: usize,
    pub(crate) events: usize,
}

impl StateBefore {
    pub(crate) async fn of(lab: &Lab, node: Node, machine: &RackedMachine) -> StateBefore {
        StateBefore {
            node: lab.node(node).await,
            history: lab.history(node).await.len(),
            requests: machine.chassis().log().len(),
            events: machine.events().len(),
        }
    }

    /// The power changes since then. A shutdown by the agent counts as the change that it replaces.
    pub(crate) fn power(&self, machine: &RackedMachine) -> Vec<PowerRequest> {
        let mut changes = Vec::new();
        let mut shutdowns = self.shutdowns(machine);
        for change in self.requested_power(machine) {
            if change == On && changes.last() == Some(&On) && shutdowns > 0 {
                shutdowns -= 1;
                changes.push(ForceOff);
            }
            changes.push(change);
        }
        changes
    }

    /// The changes of power that the BMC was asked for since then.
    pub(crate) fn requested_power(&self, machine: &RackedMachine) -> Vec<PowerRequest> {
        let log = machine.chassis().log();
        let accepted = log[self.requests..].iter().filter(|it| it.outcome == Outcome::Accepted);
        let power = |request: &Request| {
            if let Request::Power(power) = request { Some(*power) } else { None }
        };
        accepted.filter_map(|it| power(&it.request)).collect()
    }

    /// How often the agent has shut the machine down since then.
    fn shutdowns(&self, machine: &RackedMachine) -> usize {
        let is_shutdown = |event: &&Event| **event == Event::Begins(SHUTDOWN.to_owned());
        self.happened(machine).iter().filter(is_shutdown).count()
    }

    /// The events of the machine since then.
    pub(crate) fn happened(&self, machine: &RackedMachine) -> Vec<Event> {
        machine.events().split_off(self.events)
    }

    /// The steps that the agent has started since then, without a shutdown; each must also have finished.
    pub(crate) fn steps(&self, machine: &RackedMachine) -> Vec<String> {
        let events = self.happened(machine);
        let steps = |of: fn(&Event) -> Option<&String>| -> Vec<String> {
            events.iter().filter_map(of).filter(|step| *step != SHUTDOWN).cloned().collect()
        };
        let begun = steps(|event| if let Event::Begins(step) = event { Some(step) } else { None });
        let done = steps(|event| if let Event::Did(step) = event { Some(step) } else { None });
        assert_eq!(begun, done, "{events:#?}");
        begun
    }

    /// Returns the number of further boots of the ramdisk since then: the machine was switched on so many times more than `on`.
    ///
    /// Each of these boots comes after a lost one. A boot is lost if the machine runs the system on its disk instead, which it is to run
    /// `booted` times. A boot may be lost if the agent gives up, as it does after five posts of an inventory without an answer.
    fn repeated_boots(&self, machine: &RackedMachine, on: usize, booted: usize) -> usize {
        let repeats = self.power(machine).iter().filter(|power| **power == On).count() - on;
        let events = machine.events().split_off(self.events);
        let many = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        let lost = many(|event| matches!(event, Event::DiskRuns(_))) - booted;
        let given_up = many(|event| matches!(event, Event::Hangs(_)));
        assert!((lost..=lost + given_up).contains(&repeats), "{repeats} repeats: {events:#?}");
        repeats
    }

    /// The states that the node has reached since then, according to its history.
    pub(crate) async fn states(&self, lab: &Lab, node: Node) -> Vec<String> {
        let history = lab.history(node).await.split_off(self.history);
        let changes = history.into_iter().filter(|it| ended_step(it).is_none());
        changes.map(|it| it.event_type.unwrap_or_default()).collect()
    }

    /// The clean steps that ended since, as the history tells.
    pub(crate) async fn clean_steps(&self, lab: &Lab, node: Node) -> Vec<String> {
        let history = lab.history(node).await.split_off(self.history);
        history.iter().filter_map(ended_step).collect()
    }
}

/// The clean step whose end an entry of the history tells.
fn ended_step(entry: &HistoryEvent) -> Option<String> {
    let (step, took) = entry.event.strip_prefix("the clean step deploy.")?.split_once(" took ")?;
    took.ends_with(" s").then(|| step.to_owned())
}

/// The clean steps among the commands of an agent.
fn clean_steps_of(commands: &[&str]) -> Vec<String> {
    let are_erased = commands.iter().filter(|command| command.starts_with("erase_"));
    are_erased.map(|step| (*step).to_owned()).collect()
}

/// Whether a service that is killed here loses a boot script. The machine then boots its disk, if the disk holds a system.
fn loses_a_boot_script(point: &str) -> bool {
    point.contains("save_boot")
}

/// Inserts `added`, `times` times, after the element at index `after` of `list`.
fn with_repeats<T: Copy>(list: &[T], after: usize, added: &[T], times: usize) -> Vec<T> {
    let (head, tail) = list.split_at(after + 1);
    [head, &added.repeat(times), tail].concat()
}

/// The states of a part in which the machine boots the ramdisk `boots` more times.
fn states_with_repeats(states: &[&'static str], boots: usize) -> Vec<&'static str> {
    let waits = |state: &&str| state.contains(" wait") || state.starts_with("wait ");
    match states.iter().position(waits) {
        Some(waiting) => {
            with_repeats(states, waiting, &[states[waiting - 1], states[waiting]], boots)
        }
        None => states.to_vec(),
    }
}

/// The power changes of a part in which the machine boots the ramdisk `boots` more times. `boot` is the index of the change that switches the
/// machine on for the ramdisk.
fn power_with_repeats(power: &[PowerRequest], boot: usize, boots: usize) -> Vec<PowerRequest> {
    if boots == 0 { power.to_vec() } else { with_repeats(power, boot, &[ForceOff, On], boots) }
}

/// Lets a node go through `part` while the service is killed at every so-many-th point, except at points that are spared, and checks that
/// the effects are the same as without kills. The machine boots the ramdisk once more for each time that it ran its disk instead, and never
/// otherwise.
async fn outlived(
    lab: &Lab,
    node: Node,
    machine: &RackedMachine,
    part: &RequestAndEffects,
    (every, spares): (usize, fn(&str) -> bool),
) -> Vec<String> {
    let before = StateBefore::of(lab, node, machine).await;
    let may_boot_its_disk = !machine.disks_are_blank();
    let end = *part.states.last().expect("it ends somewhere");
    let ended = |it: &baremetald::Node| {
        assert!(it.last_error.is_none() || it.state() == end, "{it:#?}");
        it.provision_updated_at != before.node.provision_updated_at && it.state() == end
    };
    let ask = async || lab.ask_once(node, &before.node, &part.asked).await;
    let done = async || drop(lab.until(node, end, ended).await);
    let points = lab.kill_at_every_point(every, spares, ask, done).await;
    let story = format!("{}: killed at {points:#?}", part.asked);
    if part.steps == WRITES {
        installed(machine).await;
    }
    let on = part.power.iter().filter(|power| **power == On).count();
    let repeats = before.repeated_boots(machine, on, usize::from(part.steps == WRITES));
    let lost = points.iter().filter(|point| loses_a_boot_script(point)).count();
    assert!(!may_boot_its_disk || repeats >= lost, "{repeats} repeats: {story}");
    let states = states_with_repeats(part.states, repeats);
    assert_eq!(before.states(lab, node).await, states, "{story}");
    let boot = part.power.iter().position(|power| *power == On).unwrap_or_default();
    let power = power_with_repeats(part.power, boot, repeats);
    assert_eq!(before.power(machine), power, "{story}");
    assert_eq!(before.steps(machine), part.steps, "{story}");
    assert_eq!(before.clean_steps(lab, node).await, clean_steps_of(part.steps), "{story}");
    points
}

/// The points at which the service is killed, unless a story is about certain points.
fn anywhere() -> (usize, fn(&str) -> bool) {
    (kill_every(EVERY), |_| false)
}

async fn lives(blueprint: Machine) {
    let lab = Lab::with_mortal(settings()).await;
    let machine = lab.rack(blueprint).await;
    let node = lab.enroll(&machine).await;
    let mut kills = 0;
    for part in life() {
        kills += outlived(&lab, node, &machine, &part, anywhere()).await.len();
    }
    assert!(kills >= 80, "it was killed {kills} times only");
}

async fn installed(machine: &RackedMachine) {
    let booted = |stage: &Stage| *stage == Stage::Installed;
    machine.stage().wait_for(booted).await.expect("it boots its disk");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_over_redfish_survives_kills() {
    lives(Machine::redfish("r1u1").without_tls()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deployments_over_ipmi_and_by_virtual_media_survive_kills() {
    let blueprints = [
        Machine::ipmi("r1u2"),
        Machine::redfish("r1u3").without_tls().uefi().boot("redfish-virtual-media"),
    ];
    for blueprint in blueprints {
        // A BMC keeps the session of a service that died for a minute, and has few of them.
        let settings = Settings { bmc_timeout: "90s", power_timeout: "90s", ..settings() };
        let lab = Lab::with_mortal(settings).await;
        let machine = lab.rack(blueprint).await;
        let node = lab.available(&machine).await;
        let deployment = part("active", DEPLOYMENT, &[On, ForceOff, On], WRITES);
        let points = outlived(&lab, node, &machine, &deployment, anywhere()).await;
        assert!(points.len() >= 10, "{points:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_recorded_in_postgresql_survives_kills() {
    let Some(server) = Postgres::start(&["baremetald"]).await else {
        return peers::skip("outlive", "no PostgreSQL is installed");
    };
    let database = Some(server.url("baremetald"));
    let lab = Lab::with_mortal(Settings { database, ..settings() }).await;
    let machine = lab.rack(Machine::redfish("r1u9").without_tls()).await;
    let node = lab.available(&machine).await;
    let deployment = part("active", DEPLOYMENT, &[On, ForceOff, On], WRITES);
    let points = outlived(&lab, node, &machine, &deployment, anywhere()).await;
    assert!(points.len() >= 10, "{points:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_boots_its_disk_because_its_boot_script_was_lost() {
    let lab = Lab::with_mortal(Settings { boot_timeout: "5s", ..settings() }).await;
    let machine = lab.rack(Machine::redfish("r1u8").without_tls()).await;
    let node = lab.available(&machine).await;
    lab.provision(node, "active").await.reaches("active").await;
    installed(&machine).await;
    let rebuild = part("rebuild", DEPLOYMENT, &[ForceOff, On, ForceOff, On], WRITES);
    let at_scripts: (usize, fn(&str) -> bool) = (1, |point| !loses_a_boot_script(point));
    let points = outlived(&lab, node, &machine, &rebuild, at_scripts).await;
    assert!(points.len() >= 2, "before the boot is recorded and after: {points:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aborted_inspection_and_later_requests_survive_kills() {
    let lab = Lab::with_mortal(settings()).await;
    let machine = lab.rack(Machine::redfish("r1u4").without_tls()).await;
    let node = lab.manageable(&machine).await;
    machine.misbehave(|faults| faults.never_call_back = true);
    lab.provision(node, "inspect").await.reaches("inspect wait").await;
    let parts = [
        part("abort", &["inspect failed"], &[], &[]),
        part("manage", &["manageable"], &[], &[]),
        part("provide", CLEANING, &[ForceOff, On, ForceOff], ERASES),
    ];
    for part in parts {
        outlived(&lab, node, &machine, &part, anywhere()).await;
        machine.misbehave(|faults| faults.never_call_back = false);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bringing_up_a_rack_of_two_machines_survives_kills() {
    let lab = Lab::with_mortal(settings()).await;
    let blueprints =
        [Machine::redfish("r1u5").without_tls(), Machine::redfish("r1u6").without_tls()];
    let machines = lab.rack_all(Vec::from(blueprints)).await;
    let rows: Vec<Value> = (1..).zip(&machines).map(|(line, it)| it.row(line)).collect();
    let rack = json!({"name": "r1", "machines": rows});
    lab.api().send(Method::POST, "/bedplate/v1/racks", Some(&rack)).await.expect("a rack");
    let up =
        json!({"reach": "installed", "instance_info": lab.image().instance_info(), "limit": 2});
    let is_up = |rack: &Rack| {
        let mut ways = rack.machines.iter().map(|machine| machine.way);
        assert!(!ways.clone().any(|way| way == Some(GoalProgress::Stuck)), "{rack:#?}");
        ways.all(|way| way == Some(GoalProgress::There)).then_some(())
    };
    let ask = async || {
        let asked = lab.api().send(Method::PUT, "/bedplate/v1/racks/r1/up", Some(&up)).await;
        asked.expect("the rack is on its way");
    };
    let done = async || lab.api().until("/bedplate/v1/racks/r1", "a rack that is up", is_up).await;
    // The writes of two machines combine in many ways, so fewer of the points are tried.
    let points = lab.kill_at_every_point(kill_every(EVERY) * 3, |_| false, ask, done).await;
    assert!(points.len() >= 20, "{points:#?}");

    for machine in &machines {
        let node: baremetald::Node = lab.api().get(&format!("/v1/nodes/{}", machine.name())).await;
        let node = Node(node.id().parse().expect("a UUID"));
        let all = StateBefore::default();
        installed(machine).await;
        // Its disks were blank, so only the inventory can be lost.
        let repeats = all.repeated_boots(machine, 4, 1);
        let inspection = states_with_repeats(INSPECTION, repeats);
        let states = [&["verifying", "manageable"], &*inspection, CLEANING, DEPLOYMENT].concat();
        assert_eq!(all.states(&lab, node).await, states, "killed at {points:#?}");
        let power = [On, ForceOff, On, ForceOff, On, ForceOff, On];
        let power = power_with_repeats(&power, 0, repeats);
        assert_eq!(all.power(machine), power, "killed at {points:#?}");
        assert_eq!(all.steps(machine), [ERASES, WRITES].concat(), "killed at {points:#?}");
    }
}

const LEASES: &str = r#"
[leases.nodes]
shortest = "1s"
[leases.schedule]
warn_before = ["3s"]
notice = "1s"
undo_window = "6s"
[reservations]
nodes_per_project = 1
"#;

/// One entry of a node's history for each stage of the end of its lease.
const STAGES: [&str; 5] = [
    "the lease ends at",
    "the machine is switched off, and its disks are erased at",
    "the lease has ended; the disks are erased at",
    "the node is undeployed and its disks are erased",
    "returned by its lessee",
];

/// The field `image` of a reservation request.
fn wished(lab: &Lab) -> Value {
    let image = lab.image();
    let checksum = format!("sha256:{}", image.checksum);
    json!({"url": image.url, "checksum": checksum, "format": image.format})
}

/// Checks that no reservation and no allocation is left.
pub(crate) async fn is_listed_nowhere(lab: &Lab) {
    for path in ["/bedplate/v1/reservations", "/v1/allocations"] {
        let left: Value = lab.api().get(path).await;
        let lists = left.as_object().into_iter().flat_map(|lists| lists.values());
        assert!(lists.clone().all(|list| *list == json!([])), "{path}: {left:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reserving_a_node_and_giving_it_back_survives_kills() {
    let lab = Lab::with_mortal(Settings { more: LEASES.to_owned(), ..settings() }).await;
    let machine = lab.rack(Machine::redfish("r1u7").without_tls()).await;
    let node = lab.available(&machine).await;
    lab.set(node, "/resource_class", json!("gpu")).await;
    let wish = json!({
        "name": "train-1", "resource_class": "gpu", "lease": "1h", "image": wished(&lab),
        "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"],
    });
    let before = StateBefore::of(&lab, node, &machine).await;
    let is_unchanged = async |since: &baremetald::Node| {
        lab.node(node).await.provision_updated_at == since.provision_updated_at
    };
    let ask = async || {
        if is_unchanged(&before.node).await {
            let made = lab.api().send(Method::POST, "/bedplate/v1/reservations", Some(&wish)).await;
            made.expect("a reservation");
        }
    };
    let done = async || lab.ends(node, &before.node, "active").await;
    let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
    assert!(points.len() >= 10, "{points:#?}");
    installed(&machine).await;
    assert_eq!(before.states(&lab, node).await, DEPLOYMENT, "{points:#?}");
    assert_eq!(before.power(&machine), [On, ForceOff, On], "{points:#?}");
    assert_eq!(before.steps(&machine), WRITES, "{points:#?}");

    let before = StateBefore::of(&lab, node, &machine).await;
    let ask = async || {
        if is_unchanged(&before.node).await {
            let path = "/bedplate/v1/reservations/train-1";
            lab.api().send(Method::DELETE, path, None).await.expect("the reservation ends");
        }
    };
    let done = async || lab.ends(node, &before.node, "available").await;
    let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
    assert!(points.len() >= 10, "{points:#?}");
    let repeats = before.repeated_boots(&machine, 1, 0);
    let mut states = before.states(&lab, node).await;
    states.dedup();
    assert_eq!(states, states_with_repeats(UNDEPLOYMENT, repeats), "{points:#?}");
    let power = power_with_repeats(&[ForceOff, On, ForceOff], 1, repeats);
    assert_eq!(before.power(&machine), power, "{points:#?}");
    assert_eq!(before.steps(&machine), ERASES_EVERYTHING, "{points:#?}");
    let erases = clean_steps_of(ERASES_EVERYTHING);
    assert_eq!(before.clean_steps(&lab, node).await, erases, "{points:#?}");
    assert!(machine.disks_are_blank());
    is_listed_nowhere(&lab).await;
}

/// The lease begins after the installation, so every stage is observed even on a slow computer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_lease_survives_kills() {
    let lab = Lab::with_mortal(Settings { more: LEASES.to_owned(), ..settings() }).await;
    let machine = lab.rack(Machine::redfish("r1u8").without_tls()).await;
    let node = lab.available(&machine).await;
    lab.choose(node, lab.image()).await;
    lab.provision(node, "active").await.reaches("active").await;
    installed(&machine).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    let lease = format!("/bedplate/v1/nodes/{}/lease", node.0);
    let ask = async || {
        let lent: NodeLease = lab.api().get(&lease).await;
        let history = lab.history(node).await;
        if lent.lease.is_none() && history.len() == before.history {
            let wish = json!({"lessee": "lab", "for": "4s"});
            lab.api().send(Method::POST, &lease, Some(&wish)).await.expect("a lease");
        }
    };
    let is_over = |lent: &NodeLease| lent.lease.is_none().then_some(());
    let done = async || {
        lab.ends(node, &before.node, "available").await;
        lab.api().until(&lease, "a node that is not lent", is_over).await;
    };
    let points = lab.kill_at_every_point(kill_every(EVERY), |_| false, ask, done).await;
    assert!(points.len() >= 15, "{points:#?}");
    let repeats = before.repeated_boots(&machine, 1, 0);

    let history = lab.history(node).await.split_off(before.history);
    for stage in STAGES {
        let reported = history.iter().filter(|it| it.event.contains(stage)).count();
        assert_eq!(reported, 1, "{stage:?} in {history:#?}");
    }
    let mut states = before.states(&lab, node).await;
    states.dedup();
    let undeployment = states_with_repeats(UNDEPLOYMENT, repeats);
    assert_eq!(states, [vec!["active"], undeployment].concat(), "{points:#?}");
    assert_eq!(before.steps(&machine), ERASES_EVERYTHING, "{points:#?}");
    let erases = clean_steps_of(ERASES_EVERYTHING);
    assert_eq!(before.clean_steps(&lab, node).await, erases, "{points:#?}");
    let mut power = before.power(&machine);
    // A system that shuts down slowly is asked a second time.
    power.dedup_by(|next, last| *next == SoftOff && *last == SoftOff);
    let all = power_with_repeats(&[SoftOff, On, ForceOff], 1, repeats);
    assert_eq!(power, all, "{points:#?}");
    assert!(machine.disks_are_blank());
    is_listed_nowhere(&lab).await;
}
