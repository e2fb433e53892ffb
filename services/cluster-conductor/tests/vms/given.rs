//! A cloud with a default network, a store with a VM, and conductors that are started and killed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use cluster_conductor::{
    Conductor, KubernetesSettings, LendingSettings, MachineSettings, ObjectUser, OfferedImage,
    Settings, VmRequestObjects, VmSettings,
};
use cluster_core::{
    Backoff, Ident, LedgerState, Owner, RepairLimits, Snapshot, SnapshotOrigin, SnapshotState,
    SnapshotUuid, UserDataFormat, Vm, VmActionKind, VmEvent, VmPhase, VmUuid,
};
use cluster_store::{Store, StoreError, VmChange, VmScope};
use database::scratch::Scratch;
use jiff::{SignedDuration, Timestamp};
use lease::{Lease, LeaseSchedule, Length};
use newtype_uuid::GenericUuid;
use openstack::dns::zones;
use openstack::network::networks::{self, NewNetwork};
use openstack::network::routers;
use openstack::network::subnets::{self, NewSubnet};
use openstack::{CloudConfig, Session};
use openstack_emulator::{Cloud, Emulator, Kind, Object};
use sealing::SealingKeys;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long to wait for an expected state.
const PATIENCE: Duration = Duration::from_secs(60);

/// A flavor that is large enough for the image.
pub(crate) const FLAVOR: &str = "m1.small";

/// A text in the owner's user-data, which must not be found anywhere else.
const USER_DATA: &str = left::canary::USER_DATA;

/// A VM in an emulated cloud of its own.
pub(crate) struct VmFixture {
    _emulator: Emulator,
    pub(crate) cloud: Cloud,
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    pub(crate) id: VmUuid,
    pub(crate) project: String,
    keys: String,
    scratch: Scratch,
    before: Vec<(Kind, String, String)>,
    images: Vec<String>,
    /// The running conductor, which tests wake as the API would.
    working: Arc<Mutex<Option<Conductor>>>,
}

/// The session of the user in whose project VMs are created.
pub(crate) fn session(cloud: &Cloud) -> Session {
    let config = CloudConfig::from_clouds_yaml(&cloud.clouds_yaml(), Some("alice")).unwrap();
    Session::new(config).unwrap()
}

/// Returns the id of the project with this name.
pub(crate) fn project(cloud: &Cloud, name: &str) -> String {
    let projects = cloud.objects(Kind::Project);
    projects.iter().find(|it| it.text("name") == name).unwrap().id.clone()
}

/// Lease stages that follow each other within seconds.
pub(crate) fn schedule(undo_window: &str) -> LeaseSchedule {
    let raw = json!({"warn_before": ["2s"], "notice": "1s", "undo_window": undo_window, "undo_gives": "1h"});
    serde_json::from_value(raw).unwrap()
}

impl VmFixture {
    /// Makes a cloud and a store without a VM.
    pub(crate) async fn cloud() -> VmFixture {
        left::keep_logs();
        let emulator = Emulator::start(openstack_emulator::Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let session = session(&cloud);
        zones::create(&session, "example.org.", "a@example.org", "").await.unwrap();
        let new = NewNetwork { name: "people".to_owned(), description: String::new(), mtu: None };
        let network = networks::create(&session, &new).await.unwrap();
        let subnet = NewSubnet {
            name: "people".to_owned(),
            network_id: network.id,
            cidr: "10.7.0.0/24".to_owned(),
            dns_nameservers: vec![],
        };
        let subnet = subnets::create(&session, &subnet).await.unwrap();
        let outside = networks::external(&session).await.unwrap().remove(0).id;
        let router = routers::create(&session, "people", Some(&outside)).await.unwrap();
        routers::add_subnet(&session, &router.id, &subnet.id).await.unwrap();
        let project = project(&cloud, "tenant-a");
        let (before, images) = (cloud.objects_of(&project), images(&cloud));
        let scratch = Scratch::sqlite();
        let store = Store::open(&scratch.url).await.unwrap();
        let keys = SealingKeys::generate().unwrap().to_string();
        let (settings, id) = (settings(), VmUuid::new_v4());
        VmFixture {
            _emulator: emulator,
            cloud,
            store,
            settings,
            id,
            project,
            keys,
            scratch,
            before,
            images,
            working: Arc::default(),
        }
    }

    /// Makes a VM that was requested, changed by `change`. No conductor runs yet.
    pub(crate) async fn vm(change: impl FnOnce(Vm) -> Vm) -> VmFixture {
        let given = VmFixture::cloud().await;
        let conductor = given.idle_conductor();
        let who = ObjectUser { project: &given.project, is_admin: false };
        let order = VmRequestObjects {
            who,
            snapshots: &VmScope::All,
            image: "cirros",
            flavor: FLAVOR,
            network: None,
            is_public: true,
            root_volume: None,
        };
        let found = conductor.resolve_vm(order).await.unwrap();
        let what = (found.image, found.flavor, found.network);
        let owner = Owner::new(&given.project, "u");
        let vm = Vm::new(given.id, owner, "dev".parse().unwrap(), what, Timestamp::now());
        let ssh_keys = vec!["ssh-ed25519 AAAA u".to_owned()];
        let vm = change(Vm { ssh_keys, public: found.public, zone: found.zone, ..vm });
        let reported = format!("#!/bin/sh\necho {USER_DATA}\n");
        let reported = conductor.seal_user_data(vm.id, reported.as_bytes()).unwrap();
        let vm = Vm { user_data: Some(reported.0), ..vm };
        given.store.insert_vm(&vm, Some(&reported.1), &[], None).await.unwrap();
        given
    }

    /// Makes a conductor that runs no turns.
    pub(crate) fn idle_conductor(&self) -> Conductor {
        let keys = SealingKeys::parse(&self.keys).unwrap();
        Conductor::new(self.settings.clone(), self.store.clone(), keys, Some(session(&self.cloud)))
    }

    /// Starts a conductor that runs until it is killed. The conductor shares only the cloud and the file of the store with others.
    pub(crate) fn process(&self) -> Process {
        let url = self.scratch.url.clone();
        let (keys, cloud) = (SealingKeys::parse(&self.keys).unwrap(), self.cloud.clone());
        let settings = self.settings.clone();
        let (kill, killed) = oneshot::channel();
        let working = Arc::clone(&self.working);
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let store = Store::open(&url).await.unwrap();
                let conductor = Conductor::new(settings, store, keys, Some(session(&cloud)));
                *working.lock().unwrap() = Some(conductor.clone());
                tokio::select! {
                    ended = conductor.run(CancellationToken::new()) => panic!("it ended: {ended:?}"),
                    _ = killed => {}
                }
            });
            // Work in progress ends immediately.
            runtime.shutdown_background();
        });
        Process { kill, thread }
    }

    /// Returns the VM, while it exists.
    pub(crate) async fn find(&self) -> Option<Vm> {
        let ident = Ident::Id(self.id.into_untyped_uuid());
        self.store.find_vms(&ident, &VmScope::All).await.unwrap().pop()
    }

    pub(crate) async fn find_snapshot(&self, id: SnapshotUuid) -> Option<Snapshot> {
        let ident = Ident::Id(id.into_untyped_uuid());
        self.store.find_snapshots(&ident, &VmScope::All).await.unwrap().pop()
    }

    pub(crate) async fn until(&self, wanted: impl Fn(&Vm) -> bool) -> Vm {
        let looking = async {
            loop {
                let vm = self.find().await.unwrap();
                if wanted(&vm) {
                    return vm;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(vm) => vm,
            Err(_) => panic!("it never is: {:?} {:?}", self.find().await, self.reasons().await),
        }
    }

    pub(crate) async fn until_phase(&self, phase: VmPhase) -> Vm {
        self.until(|vm| vm.phase() == phase).await
    }

    /// Waits until every object of the VM exists and is in the ledger.
    pub(crate) async fn until_whole(&self) -> Vm {
        let vm =
            self.until(|vm| vm.phase() == VmPhase::Active && vm.public_address.is_some()).await;
        let whole = async {
            loop {
                let lines = self.store.ledger_of(self.id).await.unwrap();
                let names = self.of_kind(Kind::Recordset);
                let is_named =
                    names.iter().any(|it| it.text("type") == "A" && it.text("status") == "ACTIVE");
                // Security group, port, floating IP, server, DNS record, and the root volume.
                if lines.len() == 5 + usize::from(vm.root_volume.is_some())
                    && lines.iter().all(|it| it.state == LedgerState::Present)
                    && is_named
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, whole).await.is_err() {
            panic!(
                "it never is: {:?} {:?}",
                self.store.ledger_of(self.id).await,
                self.find().await
            );
        }
        vm
    }

    pub(crate) async fn until_snapshot(
        &self,
        id: SnapshotUuid,
        state: Option<SnapshotState>,
    ) -> Option<Snapshot> {
        let looking = async {
            loop {
                let found = self.find_snapshot(id).await;
                if found.as_ref().map(|it| it.state) == state {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => panic!("it never is: {:?}", self.find_snapshot(id).await),
        }
    }

    pub(crate) async fn change(&self, change: impl Fn(Vm) -> Vm) -> Vm {
        loop {
            let changed = change(self.find().await.unwrap());
            match self.store.change_vm(&VmChange::of(changed)).await {
                Ok(written) => return written,
                // The conductor wrote in between.
                Err(StoreError::Stale) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) async fn action(&self, kind: VmActionKind) {
        self.change(|vm| vm.with_action(kind.clone(), Timestamp::now()).unwrap()).await;
    }

    pub(crate) async fn until_done(&self) -> Vm {
        self.until(|vm| vm.action.is_none()).await
    }

    pub(crate) async fn delete(&self) {
        self.change(|vm| vm.to_be_deleted(Timestamp::now())).await;
    }

    pub(crate) async fn snapshot(&self, name: &str) -> SnapshotUuid {
        let vm = self.find().await.unwrap();
        vm.check_snapshot().unwrap();
        let (id, name) = (SnapshotUuid::new_v4(), name.parse().unwrap());
        let new = Snapshot::new(id, &vm, name, SnapshotOrigin::Asked, Timestamp::now());
        self.store.insert_snapshot(&new, &[], None).await.unwrap();
        self.wake(id);
        id
    }

    fn wake(&self, id: SnapshotUuid) {
        if let Some(working) = &*self.working.lock().unwrap() {
            working.wake_snapshot(id);
        }
    }

    pub(crate) async fn delete_snapshot(&self, id: SnapshotUuid) {
        loop {
            let leaving = self.find_snapshot(id).await.unwrap().leaving();
            let change = cluster_store::SnapshotChange { snapshot: leaving, events: vec![] };
            match self.store.change_snapshot(&change).await {
                Ok(_) => return self.wake(id),
                Err(StoreError::Stale) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits until the record of the VM is deleted, and asserts that nothing of it is left.
    pub(crate) async fn until_gone(&self) {
        let looking = async {
            while self.find().await.is_some() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            panic!(
                "it never goes: {:?} {:?} {:?}",
                self.find().await,
                self.store.ledger_of(self.id).await,
                self.cloud.objects_of(&self.project)
            );
        }
        assert_eq!(self.cloud.objects_of(&self.project), self.before, "orphans");
        let records = self.of_kind(Kind::Recordset);
        assert_eq!(records.iter().filter(|it| it.text("type") == "A").count(), 0);
        assert_eq!(self.store.ledger_of(self.id).await.unwrap(), []);
    }

    /// Returns the images that did not exist before the VM.
    pub(crate) fn new_images(&self) -> Vec<Object> {
        let mut all = self.cloud.objects(Kind::Image);
        all.retain(|it| !self.images.contains(&it.id));
        all
    }

    /// Returns the objects of a kind in the project that did not exist before the VM.
    pub(crate) fn of_kind(&self, kind: Kind) -> Vec<Object> {
        let mut objects = self.cloud.objects(kind);
        objects.retain(|it| {
            it.project == self.project
                && it.text("name") != "default"
                && !self.before.iter().any(|(_, _, id)| *id == it.id)
        });
        objects
    }

    /// Asserts that no object of the VM exists twice.
    pub(crate) fn assert_once(&self) {
        for kind in [Kind::SecurityGroup, Kind::Port, Kind::FloatingIp, Kind::Server] {
            let all = self.of_kind(kind);
            assert_eq!(all.len(), 1, "{kind:?}: {all:?}");
        }
        let volumes = self.of_kind(Kind::Volume);
        assert!(volumes.len() <= 1, "{volumes:?}");
        let records = self.of_kind(Kind::Recordset);
        assert_eq!(records.iter().filter(|it| it.text("type") == "A").count(), 1);
    }

    /// Asserts that the name of every object was recorded before the object was created.
    pub(crate) async fn assert_all_is_named(&self) {
        let kinds = [Kind::SecurityGroup, Kind::Port, Kind::FloatingIp, Kind::Server, Kind::Volume];
        let ours: Vec<Object> = kinds.into_iter().flat_map(|kind| self.of_kind(kind)).collect();
        let lines = self.store.ledger_of(self.id).await.unwrap();
        let is_named = |it: &Object| {
            lines
                .iter()
                .any(|line| [it.text("name"), it.text("description")].contains(&line.name.as_str()))
        };
        let unnamed: Vec<_> = ours.iter().filter(|it| !is_named(it)).collect();
        assert!(unnamed.is_empty(), "{unnamed:?} {lines:?}");
    }

    pub(crate) async fn events(&self) -> Vec<VmEvent> {
        self.store.vm_events_of(self.id, 1000, None).await.unwrap()
    }

    pub(crate) async fn reasons(&self) -> Vec<String> {
        self.events().await.into_iter().map(|it| it.reason).collect()
    }
}

impl Drop for VmFixture {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
        left::keep_database(&self.scratch.url, "vms");
    }
}

fn images(cloud: &Cloud) -> Vec<String> {
    cloud.objects(Kind::Image).into_iter().map(|it| it.id).collect()
}

/// Gives the VM a lease of this many seconds from now.
pub(crate) fn lent(vm: Vm, seconds: u64) -> Vm {
    let length = Length::from_secs(seconds).unwrap();
    Vm { lease: Some(Lease::new(Timestamp::now(), length)), ..vm }
}

/// A running conductor, which also ends a moment after this is dropped.
pub(crate) struct Process {
    kill: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Process {
    /// Kills the conductor, and waits until nothing of it runs any more.
    pub(crate) async fn kill(self) {
        let _ = self.kill.send(());
        tokio::task::spawn_blocking(|| self.thread.join()).await.unwrap().unwrap();
    }
}

/// The settings of conductors, when a test needs no others.
fn settings() -> Settings {
    let repair = RepairLimits {
        not_ready_for: SignedDuration::from_mins(10),
        workers_at_once: 1,
        become_node_within: SignedDuration::from_mins(10),
        backoff: Backoff {
            first: SignedDuration::from_millis(100),
            most: SignedDuration::from_millis(800),
        },
        lands_within: SignedDuration::from_millis(200),
    };
    let offered = OfferedImage {
        name: "cirros".to_owned(),
        user_data_format: UserDataFormat::CloudInit,
        min_disk_gib: 5,
        min_ram_mib: 512,
    };
    let vms = VmSettings {
        schedule: schedule("1h"),
        images: vec![offered],
        network: Some("people".to_owned()),
        external_network: Some("public".to_owned()),
        zone: Some("example.org".to_owned()),
        ..VmSettings::default()
    };
    let kubernetes =
        KubernetesSettings { versions: BTreeMap::new(), ..KubernetesSettings::default() };
    Settings {
        hostname: "h".to_owned(),
        instance: "i".to_owned(),
        workers: 2,
        look_every: Duration::from_millis(20),
        machines: MachineSettings { kubernetes, nodes: None },
        repair,
        lending: LendingSettings::default(),
        backups: None,
        vms,
        metrics: Default::default(),
        tracer: Default::default(),
        clock: Timestamp::now,
    }
}
