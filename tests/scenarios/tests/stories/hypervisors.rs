//! A rack becomes hypervisors of a cloud.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use api_client::baremetald::{GoalProgress, Hypervisor, Node, Rack};
use futures::{StreamExt, stream};
use lab::{Image, KillResult, Lab, Machine, RackedMachine, Settings};
use openstack::compute::aggregates;
use openstack::compute::services::{self, State, Status};
use openstack_emulator::{Act, Cloud, Emulator, Kind, Rule};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::cloud_user::CloudUser;

/// How many labs run in parallel.
const AT_ONCE: usize = 3;
/// The number of lines that a deployment logs; the story `crash` kills the service at these lines.
const DEPLOYED: usize = 11;
/// A deployment that joins the cloud logs fewer lines than this.
const MOST_LINES: usize = 60;

/// Writes the file of a profile for hosts of this cloud with this image; the files of its secrets are in the same folder.
pub(crate) fn write_profile(
    folder: &Path,
    cloud: &Cloud,
    image: &Image,
    kind: &str,
    limit: &str,
) -> PathBuf {
    let bus = format!("rabbit://nova:bus-secret@{}/", cloud.address());
    std::fs::write(folder.join("bus"), bus).expect("a file");
    std::fs::write(folder.join("password"), PASSWORD).expect("a file");
    let profile = json!({
        "name": "kvm", "kind": kind, "instance_info": image.instance_info(),
        "settings": {
            "keystone": {"auth_url": cloud.auth_url(), "username": "nova", "password": {"file": "password"}},
            "message_bus": {"transport_url": {"file": "bus"}},
            "compute": {"virtualization": "qemu"},
        },
        "placement": {"availability_zone": "rack", "aggregate": {"fixed": "kvm"}},
        "joining": {"resource_provider": limit},
    });
    let file = folder.join("profile.yaml");
    // The text is JSON, which is valid YAML.
    std::fs::write(&file, profile.to_string()).expect("a file");
    file
}

/// Adds the user of nova-compute to a cloud.
pub(crate) fn add_nova(cloud: &Cloud) {
    cloud.add_user_with("nova", PASSWORD, "service", &ROLES);
}

/// The password of nova-compute's user. The state and the output of the service are searched for it.
const PASSWORD: &str = left::canary::KEYSTONE;
const ROLES: [&str; 3] = ["service", "member", "reader"];

/// A cloud without hosts, and a lab whose machines may join the cloud.
struct HypervisorSite {
    cloud: Cloud,
    admin: CloudUser,
    lab: Lab,
    folder: TempDir,
    _emulator: Emulator,
}

/// Settings of a cloud without hosts, in which new hosts stay disabled until an administrator enables them.
fn no_hosts() -> openstack_emulator::Settings {
    openstack_emulator::Settings {
        hypervisors: Vec::new(),
        enable_new_services: false,
        ..openstack_emulator::Settings::default()
    }
}

impl HypervisorSite {
    async fn start(start: impl AsyncFnOnce(Settings) -> Lab) -> HypervisorSite {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(no_hosts()).await.expect("the emulator starts");
        let cloud = emulator.cloud.clone();
        add_nova(&cloud);
        let folder = tempfile::tempdir().expect("a folder");
        let clouds = folder.path().join("clouds.yaml");
        std::fs::write(&clouds, cloud.clouds_yaml()).expect("a file");
        let lab = start(Settings { cloud: Some(clouds), ..Settings::default() }).await;
        let admin = CloudUser::new(&cloud, "admin");
        HypervisorSite { cloud, admin, lab, folder, _emulator: emulator }
    }

    fn profile(&self, kind: &str, limit: &str) -> PathBuf {
        write_profile(self.folder.path(), &self.cloud, self.lab.image(), kind, limit)
    }

    async fn bedplate(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(compat::program("bedplate"));
        command.arg("--url").arg(self.lab.api().url().as_str()).args(arguments);
        command.stdin(Stdio::null()).output().await.expect("bedplate runs")
    }

    async fn done(&self, arguments: &[&str]) -> String {
        let said = self.bedplate(arguments).await;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(said.status.success(), "{}{}", text(&said.stdout), text(&said.stderr));
        text(&said.stdout)
    }

    /// Puts machines into the rack of the lab and enrolls them as rack r1.
    async fn rack(&self, number: u32) -> Vec<RackedMachine> {
        let blueprints = (1..=number).map(|place| Machine::redfish(&format!("r1u{place}")));
        let machines = self.lab.rack_all(blueprints.collect()).await;
        let rows: Vec<Value> = (1..).zip(&machines).map(|(line, one)| one.row(line)).collect();
        let manifest = json!({"name": "r1", "machines": rows});
        let enrolled = self.lab.api().send(Method::POST, "/bedplate/v1/racks", Some(&manifest));
        enrolled.await.expect("the rack is enrolled");
        machines
    }

    async fn hypervisor(&self, node: &str) -> Hypervisor {
        self.lab.api().get(&format!("/bedplate/v1/nodes/{node}/hypervisor")).await
    }
}

impl Drop for HypervisorSite {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rack_becomes_hypervisors_by_one_command() {
    let given = HypervisorSite::start(async |settings| Lab::start_with(settings).await).await;
    let machines = given.rack(4).await;
    let file = given.profile("cloud-init", "300s");
    let file = file.to_str().expect("a path");
    let made = given.done(&["profile", "create", file]).await;
    assert!(made.contains("by rack") && !made.contains(PASSWORD), "{made}");
    let said = given.done(&["rack", "up", "r1", "--yes", "--profile", "kvm", "--limit", "2"]).await;
    assert!(said.contains("4 nodes ready, 0 need attention"), "{said}");

    for machine in &machines {
        let reported = given.hypervisor(machine.name()).await;
        assert_eq!(reported.state, "joined", "{reported:?}");
        let zone = reported.availability_zone.as_deref();
        assert_eq!((reported.host.as_str(), zone), (machine.name(), Some("r1")));
        let node: Node = given.lab.api().get(&format!("/v1/nodes/{}", machine.name())).await;
        assert_eq!(reported.id, node.uuid, "the cloud knows it by the node's id");
        let drive = machine.config_drive().expect("it has a config drive");
        assert_eq!(drive.meta_data["hostname"], machine.name());
        let mac = machine.spec().nics[0].mac.to_string();
        let said = &drive.network_data["links"][0]["ethernet_mac_address"];
        assert!(said.as_str().is_some_and(|it| it.eq_ignore_ascii_case(&mac)), "{said}");
    }
    // The cloud itself confirms the result.
    let session = &given.admin.session;
    let services = services::list_compute(session).await.expect("the compute services");
    assert_eq!(services.len(), 4);
    for service in &services {
        let is = (&service.status, &service.state, service.zone.as_deref());
        assert_eq!(is, (&Status::Enabled, &State::Up, Some("r1")), "{service:?}");
    }
    let aggregates = aggregates::list(session).await.expect("the aggregates");
    let mut reported: Vec<_> =
        aggregates.iter().map(|one| (one.name.as_str(), one.hosts.len())).collect();
    reported.sort_unstable();
    assert_eq!(reported, [("kvm", 4), ("r1", 4)]);
    let history = given.lab.api().get::<Value>("/v1/nodes/r1u1/history").await.to_string();
    for step in ["the compute service is up", "the resource provider exists", "has joined"] {
        assert!(history.contains(step), "{step:?} is not in {history}");
    }
    let explained = given.done(&["node", "explain", "r1u1"]).await;
    assert!(explained.contains("compute host r1u1 of the cloud"), "{explained}");

    // No answer contains the secrets of the profile.
    let shown = given.done(&["--output", "json", "profile", "show", "kvm"]).await;
    let node = given.lab.api().get::<Value>("/v1/nodes/r1u1").await.to_string();
    for text in [shown, node] {
        assert!(!text.contains(PASSWORD) && !text.contains("rabbit://"), "{text}");
    }
    let kept = given.bedplate(&["profile", "delete", "kvm", "--yes"]).await;
    assert!(!kept.status.success(), "a rack is to become it");
    given.done(&["rack", "pause", "r1"]).await;
    given.done(&["profile", "delete", "kvm", "--yes"]).await;

    // An undeployed node is no longer a hypervisor.
    let body = json!({"target": "deleted"});
    let path = "/v1/nodes/r1u4/states/provision";
    given.lab.api().send(Method::PUT, path, Some(&body)).await.expect("it is taken out of use");
    let history = "/v1/nodes/r1u4/history";
    let left = |reported: &Value| {
        reported.to_string().contains("host r1u4 has left the cloud").then_some(())
    };
    given.lab.api().until(history, "a host that has left the cloud", left).await;
    let gone = given.lab.api().send(Method::GET, "/bedplate/v1/nodes/r1u4/hypervisor", None).await;
    assert_eq!(gone.status, 404, "{}", gone.body);
    assert_eq!(given.cloud.objects(Kind::ComputeHost).len(), 3);
    for aggregate in given.cloud.objects(Kind::Aggregate) {
        assert_eq!(aggregate.list("hosts").len(), 3, "it is in no aggregate any more");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_fails_to_join_explains_why_and_joins_on_retry() {
    let given = HypervisorSite::start(async |settings| Lab::start_with(settings).await).await;
    given.rack(1).await;
    given.cloud.add_user_with("nova", "another", "service", &ROLES);
    // nova-compute reports, but Placement refuses its password.
    let file = given.profile("ignition", "3s");
    given.done(&["profile", "create", file.to_str().expect("a path")]).await;
    let said = given.bedplate(&["rack", "up", "r1", "--yes", "--profile", "kvm"]).await;
    assert!(!said.status.success());
    let reported = given.done(&["node", "explain", "r1u1"]).await;
    for part in ["no resource provider with an inventory", "Placement accepts"] {
        assert!(reported.contains(part), "{part:?} is not in {reported}");
    }
    assert_eq!(given.hypervisor("r1u1").await.state, "failed");
    let services = services::list_compute(&given.admin.session).await;
    let status = services.expect("the compute services").swap_remove(0).status;
    assert_eq!(status, Status::Disabled, "it takes no servers");

    // The cause is gone, because the cloud accepts the password now. In addition, the answer to the first creation of an aggregate is lost.
    add_nova(&given.cloud);
    given.cloud.misbehave(Rule::new("POST", "/compute/v2.1/os-aggregates", Act::LoseAnswer).nth(1));
    given.done(&["rack", "up", "r1", "--yes", "--profile", "kvm"]).await;
    assert_eq!(given.hypervisor("r1u1").await.state, "joined");
    let aggregates = given.cloud.objects(Kind::Aggregate);
    let mut names: Vec<&str> = aggregates.iter().map(|one| one.text("name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["kvm", "r1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joining_survives_a_kill_at_any_step() {
    let runs = stream::iter(DEPLOYED..MOST_LINES).map(killed_at).buffered(AT_ONCE);
    let killed =
        runs.take_while(|killed| std::future::ready(*killed == KillResult::AtLine)).count();
    let killed = killed.await;
    // Four conditions are met, three calls change the cloud, and the machine has joined.
    assert!(killed >= 8, "joining says only {killed} lines");
    assert!(killed < MOST_LINES - DEPLOYED - 1, "joining says ever more");
}

/// Brings a machine up with a service that is killed at its `line`-th line, or when the machine has joined. A second service, which is not
/// killed, finishes the work.
async fn killed_at(line: usize) -> KillResult {
    let given = HypervisorSite::start(async |settings| Lab::with_child(settings).await).await;
    given.rack(1).await;
    let up = async |body: Value| {
        // The service records a request before it logs anything of it, so a lost answer does not matter.
        let path = "/bedplate/v1/racks/r1/up";
        let _ = given.lab.api().try_send(Method::PUT, path, Some(&body)).await;
    };
    let file = given.profile("cloud-init", "300s");
    given.done(&["profile", "create", file.to_str().expect("a path")]).await;
    up(json!({"reach": "available"})).await;
    let rack = "/bedplate/v1/racks/r1";
    let there = |rack: &Rack| (rack.machines[0].way == Some(GoalProgress::There)).then_some(());
    given.lab.api().until(rack, "a machine that is available", there).await;

    given.lab.restart_to_be_killed_at(line).await;
    let joined = |rack: &Rack| {
        let machine = &rack.machines[0];
        assert_ne!(machine.way, Some(GoalProgress::Stuck), "killed at line {line}: {machine:?}");
        let has_joined = machine.hypervisor.as_ref().is_some_and(|it| it.state == "joined");
        (has_joined && machine.way == Some(GoalProgress::There)).then_some(())
    };
    up(json!({"profile": "kvm"})).await;
    let joined_now = given.lab.api().until(rack, "a machine that has joined", joined);
    let killed = given.lab.killed_or_done(joined_now).await;
    given.lab.restart().await;
    up(json!({"profile": "kvm"})).await;
    given.lab.api().until(rack, "a machine that has joined", joined).await;
    for aggregate in given.cloud.objects(Kind::Aggregate) {
        assert_eq!(aggregate.list("hosts"), [json!("r1u1")], "killed at line {line}");
    }
    assert_eq!(given.cloud.objects(Kind::Aggregate).len(), 2, "killed at line {line}");
    assert_eq!(given.cloud.objects(Kind::ComputeHost).len(), 1, "killed at line {line}");
    killed
}
