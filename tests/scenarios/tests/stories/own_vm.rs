//! A person's VM through `bedplate vm` on an emulated cloud: requested, named in DNS, warned before its lease ends, shut off, kept as a
//! snapshot, restored, and deleted in the end.
//!
//! clusterd and `bedplate` run as programs. The configuration sets short leases.

use std::time::Duration;

use api_client::Service;
use api_client::clusterd::{Events, Snapshot, Vm};
use lab::Api;
use openstack_emulator::{Kind, Stop};
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use crate::services::{bedplate, daemon, keep};
use crate::site::Site;

/// The longest time that anything may take while the computer compiles.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Lease stages with a long undo window.
const SLOW: &str = "warn_before = ['5s'], notice = '2s', undo_window = '10m', undo_gives = '12s'";
/// Lease stages that lead to the deletion without further requests.
const QUICK: &str = "warn_before = ['5s'], notice = '2s', undo_window = '4s', undo_gives = '12s'";

/// An emulated cloud with a network and a DNS zone, and clusterd as a process.
struct VmSite {
    site: Site,
    daemon: Option<(Child, Api)>,
}

#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) done: bool,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl ProgramOutput {
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert!(self.done, "{}{}", self.out, self.error);
        self.out
    }

    #[track_caller]
    pub(crate) fn json<T: DeserializeOwned>(self) -> T {
        serde_json::from_str(&self.done()).expect("JSON was asked for")
    }

    #[track_caller]
    pub(crate) fn refused(self, words: &[&str]) {
        assert!(!self.done, "{}", self.out);
        for word in words {
            assert!(self.error.contains(word), "{word:?} in {}", self.error);
        }
    }
}

impl VmSite {
    async fn start() -> VmSite {
        let site = Site::start("alice").await;
        let zone = json!({"name": "vms.example.", "email": "a@vms.example"}).to_string();
        site.user.send(Method::POST, "/dns/v2/zones", "application/json", zone).await;
        VmSite { site, daemon: None }
    }

    /// Starts clusterd with these lease stages, and waits until it listens.
    async fn clusterd(&mut self, schedule: &str) {
        let config = format!(
            "state_dir = 'STATE'\n[api]\nlisten = '127.0.0.1:0'\n\
             [quotas.user]\nvcpus = 4\n\
             [cloud]\nclouds_yaml = '{}/clouds.yaml'\nname = 'alice'\n[conductor]\nlook_every = '1s'\n\
             [machines]\nnetwork = 'lab'\nzone = 'vms.example.'\n\
             images = [{{ name = 'cirros', min_disk_gib = 5 }}]\nlease = {{ default = '12s', longest = '1h' }}\nschedule = {{ {schedule} }}\n",
            self.site.folder.path().display()
        );
        self.daemon = Some(daemon(&self.site.folder, Service::Clusterd, &config).await);
    }

    async fn kill(&mut self) {
        if let Some((mut daemon, _)) = self.daemon.take() {
            daemon.kill().await.expect("a child can be killed");
        }
    }

    /// Writes a file with user data.
    fn user_data(&self) -> String {
        let file = self.site.folder.path().join("user-data");
        std::fs::write(&file, left::canary::USER_DATA).expect("a file");
        file.to_str().expect("a path is text").to_owned()
    }

    /// Runs `bedplate vm …`.
    async fn vm(&self, arguments: &[&str]) -> ProgramOutput {
        let (_, api) = self.daemon.as_ref().expect("clusterd runs");
        let url = ["--clusters-url", api.url().as_str(), "vm"];
        bedplate(&[&url[..], arguments].concat()).await
    }

    /// Waits until `bedplate vm show` shows the wanted state, and returns the VM.
    async fn shows(&self, what: &str, wanted: impl Fn(&Vm) -> bool) -> Vm {
        until(what, async || {
            let shown = self.vm(&["show", "lab-1", "-o", "json"]).await;
            Some(shown.json()).filter(&wanted)
        })
        .await
    }

    /// The reasons of the VM's events, in order.
    async fn happened(&self) -> Vec<String> {
        let shown = self.vm(&["show", "lab-1", "--events", "-o", "json"]).await;
        let Events { events } = shown.json();
        events.into_iter().map(|event| event.read.reason).collect()
    }

    fn server(&self) -> Option<String> {
        let servers = self.site.cloud.objects(Kind::Server);
        assert!(servers.len() <= 1, "{} servers", servers.len());
        servers.first().map(|server| server.text("status").to_owned())
    }

    /// The status of each snapshot image in the cloud.
    fn copies(&self) -> Vec<String> {
        let images = self.site.cloud.objects(Kind::Image).into_iter();
        let kept = images.filter(|image| image.text("image_type") == "snapshot");
        kept.map(|image| image.text("status").to_owned()).collect()
    }

    fn addresses(&self) -> Vec<String> {
        let sets = self.site.cloud.objects(Kind::Recordset).into_iter();
        let named = sets.filter(|set| set.text("name") == "lab-1.vms.example.");
        let records = named.flat_map(|set| set.list("records").to_vec());
        records.filter_map(|record| record.as_str().map(str::to_owned)).collect()
    }

    /// Checks that the cloud contains no objects of VMs except snapshots.
    #[track_caller]
    fn nothing_is_left(&self) {
        for kind in [Kind::Server, Kind::Volume, Kind::FloatingIp] {
            assert!(
                self.site.cloud.objects(kind).is_empty(),
                "{kind:?}: {:?}",
                self.site.cloud.objects(kind)
            );
        }
        let ports = self.site.cloud.objects(Kind::Port);
        let of_machines =
            ports.iter().filter(|port| !port.text("device_owner").starts_with("network:"));
        assert_eq!(of_machines.count(), 0, "{ports:?}");
        assert_eq!(self.addresses(), [""; 0]);
    }
}

impl Drop for VmSite {
    fn drop(&mut self) {
        keep(&self.site, "clusterd");
    }
}

pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "timed out: {what}");
        sleep(LOOK_EVERY).await;
    }
}

const REQUEST: [&str; 6] = ["request", "lab-1", "--image", "cirros", "--flavor", "m1.tiny"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_is_lent_restored_and_finally_deleted() {
    let mut given = VmSite::start().await;
    given.clusterd(SLOW).await;
    let images = given.vm(&["images"]).await.done();
    assert!(images.contains("cirros"), "{images}");

    let reported = given.user_data();
    let more = ["--user-data", &reported, "--wait", "-o", "json"];
    let vm: Vm = given.vm(&[&REQUEST[..], &more].concat()).await.json();
    assert!(vm.has_user_data);
    assert_eq!((vm.status.as_str(), given.server().as_deref()), ("ACTIVE", Some("ACTIVE")));
    let address = vm.address.expect("an address");
    assert_eq!(vm.dns_name.as_deref(), Some("lab-1.vms.example"));
    until("its name", async || (given.addresses() == [address.clone()]).then_some(())).await;
    given
        .vm(&[&REQUEST[..], &["--wait"]].concat())
        .await
        .refused(&["lab-1", "Hint: choose another name"]);
    let large = ["request", "lab-2", "--image", "cirros", "--flavor", "m1.xlarge"];
    given.vm(&large).await.refused(&["vcpus"]);
    let small = ["request", "lab-2", "--image", "cirros", "--flavor", "m1.nano"];
    given.vm(&small).await.refused(&["cirros", "needs at least 5 GiB of disk"]);

    given.shows("the end of its lease", |vm| vm.status == "EXPIRED").await;
    let ended = given.shows("its copy", |vm| vm.next_stage() == Some("warn_of_deletion")).await;
    assert!(ended.lease.is_some_and(|lease| lease.ended_at.is_some()));
    assert_eq!(given.server().as_deref(), Some("SHUTOFF"));
    assert_eq!(given.copies(), ["active"]);
    let happened = given.happened().await;
    let stages = ["CreateRequested", "Built", "LeaseEndsSoon", "LeaseEnded"];
    let reported: Vec<&str> =
        happened.iter().map(String::as_str).filter(|it| stages.contains(it)).collect();
    assert_eq!(reported, stages, "{happened:?}");
    given.vm(&["start", "lab-1"]).await.refused(&["the lease ended", "extend the lease first"]);

    // After the undo the VM runs again, with its name and its address.
    let vm: Vm = given.vm(&["undo", "lab-1", "--wait", "-o", "json"]).await.json();
    assert_eq!((vm.status.as_str(), vm.address.as_ref()), ("ACTIVE", Some(&address)));
    assert_eq!(given.server().as_deref(), Some("ACTIVE"));
    assert_eq!(given.addresses(), [address]);

    // With a shorter undo window the VM is deleted without a further request.
    given.kill().await;
    given.clusterd(QUICK).await;
    until("its end", async || {
        let said = given.vm(&["show", "lab-1"]).await;
        (!said.done && said.error.contains("could not be found")).then_some(())
    })
    .await;
    given.nothing_is_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_follows_the_requests_of_its_owner() {
    let mut given = VmSite::start().await;
    given.clusterd(SLOW).await;
    let hour = ["--lease", "1h", "--wait", "-o", "json"];
    let vm: Vm = given.vm(&[&REQUEST[..], &hour].concat()).await.json();
    let until = vm.lease.expect("a lease").until;
    let wait = ["lab-1", "--wait", "-o", "json"];
    let does = async |verb: &[&str]| given.vm(&[verb, &wait[..]].concat()).await.json::<Vm>();

    assert_eq!(does(&["stop"]).await.status, "STOPPED");
    assert_eq!(given.server().as_deref(), Some("SHUTOFF"));
    assert_eq!(does(&["start"]).await.status, "ACTIVE");
    assert_eq!(does(&["reboot"]).await.status, "ACTIVE");
    assert_eq!(does(&["reboot", "--hard"]).await.status, "ACTIVE");
    let larger = does(&["resize", "--flavor", "m1.small"]).await;
    assert_eq!((larger.flavor.as_str(), larger.ram_mib), ("m1.small", 2048));
    given.vm(&["resize", "lab-1", "--flavor", "m1.tiny"]).await.refused(&["cannot shrink"]);
    let snapshot = ["snapshot", "--name", "before"];
    let kept: Snapshot = given.vm(&[&snapshot[..], &wait].concat()).await.json();
    assert_eq!((kept.name.as_str(), kept.status.as_str()), ("before", "active"));
    assert_eq!(given.copies(), ["active"]);
    let console = given.vm(&["console", "lab-1"]).await.done();
    assert!(console.starts_with("http"), "{console}");

    let longer: Vm = given.vm(&["extend", "lab-1", "-o", "json", "--for", "59m"]).await.json();
    let now = longer.lease.map(|lease| lease.until);
    assert_eq!(now, Some(until), "less than there is changes nothing");
    given.vm(&["extend", "lab-1", "--for", "2h"]).await.refused(&["1h"]);
    given.vm(&["undo", "lab-1"]).await.refused(&["has not ended"]);

    given.vm(&["delete", "lab-1", "--wait", "--yes"]).await.done();
    given.nothing_is_left();
    // The snapshot remains after the VM is deleted.
    assert_eq!(given.copies(), ["active"]);
    let table = given.vm(&["snapshots"]).await.done();
    assert!(table.contains("before"), "{table}");
    given.vm(&["delete-snapshot", "before", "--yes"]).await.done();
    self::until("a snapshot that is gone", async || given.copies().is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_ends_once_though_clusterd_dies_before_each_of_its_calls() {
    ends_once(Stop::Before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_ends_once_though_clusterd_dies_after_each_of_its_calls() {
    ends_once(Stop::After).await;
}

/// clusterd is killed at each call that ends a lease: before the call reaches the cloud, or before its answer arrives.
async fn ends_once(stop: Stop) {
    let mut given = VmSite::start().await;
    given.clusterd(QUICK).await;
    let reported = given.user_data();
    given.vm(&[&REQUEST[..], &["--user-data", &reported, "--wait"]].concat()).await.done();
    let made = |call: &openstack_emulator::Call| {
        call.method == "POST" && call.path.ends_with("/servers") && call.status == Some(202)
    };
    assert_eq!(given.site.cloud.count(made), 1);
    given.site.cloud.set_trap(stop);
    let mut points = Vec::new();
    loop {
        let gone = until("a call, or the end", async || {
            if given.site.cloud.caught().is_some() {
                return Some(false);
            }
            given.site.cloud.objects(Kind::Server).is_empty().then_some(true)
        })
        .await;
        if gone {
            break;
        }
        points.extend(given.site.cloud.caught());
        given.kill().await;
        assert!(given.copies().len() <= 1, "{points:?}: {:?}", given.copies());
        given.site.cloud.open_trap();
        given.clusterd(QUICK).await;
    }
    given.site.cloud.remove_trap();
    until("its end", async || {
        let said = given.vm(&["show", "lab-1"]).await;
        (!said.done && said.error.contains("could not be found")).then_some(())
    })
    .await;
    let acts = |word: &str| points.iter().filter(|point| point.contains(word)).count();
    assert!(acts("/action") >= 2, "shut off and kept: {points:?}");
    assert!(acts("DELETE") >= 1, "deleted: {points:?}");
    assert_eq!(given.site.cloud.count(made), 1, "no server was made again");
    assert_eq!(given.copies(), ["active"], "one copy is kept: {points:?}");
    given.nothing_is_left();
}
