//! Clusters and VMs with secrets, for the tests that both daemons pass.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::path::Path;
use std::sync::Arc;

use cluster_core::{
    ClusterParameters, ClusterUuid, FlavorSize, Owner, RequestedCluster, UserData, UserDataFormat,
    Vm, VmFlavor, VmImage, VmUuid,
};
use cluster_store::Store;
use contract::Daemon;
use jiff::Timestamp;
use sealing::Keyring;

struct Clusterd;

/// A cluster with so many secrets, and a VM with user data unless one secret is enough.
struct Stored {
    cluster: ClusterUuid,
    secrets: usize,
    vm: Option<VmUuid>,
}

impl Daemon for Clusterd {
    const PROGRAM: &'static str = env!("CARGO_BIN_EXE_clusterd");
    const DATABASE: &'static str = "clusterd.db";
    const EARLIER_KEYS: &'static str =
        include_str!("../../../cluster-store/tests/fixtures/seal.keys");
    const PROGRESS: [&'static str; 2] = ["secrets, ", " so far"];
    type Records = Stored;

    async fn store_records(state: &Path, count: usize) -> Stored {
        let (store, keys) = open(state).await;
        let store = store.with_keys(keys.clone()).await.unwrap();
        let asked = RequestedCluster::new(
            ClusterParameters::new("fcos".to_owned()),
            1,
            1,
            Timestamp::UNIX_EPOCH,
        );
        let RequestedCluster { template, cluster, groups } = asked;
        store.insert_template(&template).await.unwrap();
        store.insert_cluster(&cluster, &groups, &[], None).await.unwrap();
        let vm = (count > 1).then(unbuilt);
        let secrets = count - vm.iter().count();
        for number in 0..secrets {
            let (name, secret) = (format!("n{number}"), format!("secret {number}"));
            let sealed = keys.seal(&format!("{}/{name}", cluster.id), secret.as_bytes()).unwrap();
            store.save_secret(cluster.id, &name, &sealed).await.unwrap();
        }
        if let Some(vm) = &vm {
            let reported = keys.seal(&place(vm.id), b"what its owner told it").unwrap();
            store.insert_vm(vm, Some(&reported), &[], None).await.unwrap();
        }
        Stored { cluster: cluster.id, secrets, vm: vm.map(|vm| vm.id) }
    }

    async fn check_records(state: &Path, records: &Stored) {
        let (store, keys) = open(state).await;
        for number in 0..records.secrets {
            let name = format!("n{number}");
            let sealed = store.find_secret(records.cluster, &name).await.unwrap().unwrap();
            let opened = keys.open_sealed(&format!("{}/{name}", records.cluster), &sealed).unwrap();
            assert_eq!(opened.text().unwrap(), format!("secret {number}"));
        }
        let Some(vm) = records.vm else { return };
        let sealed = store.sealed_user_data(vm).await.unwrap().unwrap();
        let opened = keys.open_sealed(&place(vm), &sealed).unwrap();
        assert_eq!(opened.text().unwrap(), "what its owner told it");
    }
}

/// A VM with user data.
fn unbuilt() -> Vm {
    let image = VmImage {
        id: "1".to_owned(),
        name: "i".to_owned(),
        user_data_format: UserDataFormat::CloudInit,
        min_disk_gib: 0,
        min_ram_mib: 0,
    };
    let flavor = VmFlavor { id: "2".to_owned(), name: "f".to_owned(), size: FlavorSize::default() };
    let (what, now) = ((image, flavor, "n".to_owned()), Timestamp::UNIX_EPOCH);
    let (id, owner) = (VmUuid::new_v4(), Owner::new("p", "u"));
    let vm = Vm::new(id, owner, "dev".parse().unwrap(), what, now);
    Vm { user_data: Some(UserData { digest: "x:y".to_owned(), is_kept: true }), ..vm }
}

/// The place that the user data is sealed for.
fn place(vm: VmUuid) -> String {
    format!("vm/{vm}/user-data")
}

/// The store and keys of the daemon, opened by the test.
async fn open(state: &Path) -> (Store, Arc<Keyring>) {
    let url = format!("sqlite://{}", state.join("clusterd.db").display());
    let store = Store::open(&url).await.unwrap();
    let known = store.known_keys().await.unwrap();
    let keys = Keyring::open(&state.join("seal.keys"), &known).unwrap();
    (store, Arc::new(keys))
}

contract::daemon_tests!(Clusterd);
