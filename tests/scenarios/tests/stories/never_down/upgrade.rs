//! The programs of the last release are replaced by those of this tree, one process after the other, and then the other way round. Meanwhile a
//! rack becomes hypervisors, and a cluster and VMs are made. No request fails, nothing is lost, and nothing is done twice.
//!
//! An older program that the database of the newer one refuses is refused by name, and the newer one starts again.

use std::path::{Path, PathBuf};

use lab::{Postgres, Programs, Settings, Traffic};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::sleep;

use super::client::Load;
use super::three::{Process, Three};
use super::{LOOK_EVERY, effects, work};
use crate::services::bedplate;

/// The machines of the rack.
const MACHINES: usize = 6;
/// The servers of the cluster after it has grown, and the VMs.
const SERVERS: usize = 5 + 4;
/// The error of a program that is too old for its database.
const REFUSED: &str = "the database needs version";

/// The programs before the upgrade and after it.
struct Versions {
    older: Programs,
    newer: Programs,
}

impl Versions {
    /// The last release and this tree. Before the first release, and in a clone without its commit, both are this tree.
    async fn find() -> Versions {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../real/last-release.sh");
        let built = Command::new(script).arg("programs").output().await.expect("the script runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let folder = String::from_utf8(built.stdout).expect("a path is text");
        let older = match folder.trim() {
            "" => {
                eprint!("{}", String::from_utf8_lossy(&built.stderr));
                eprintln!(
                    "There is no last release: the programs of this tree replace themselves."
                );
                Programs::default()
            }
            folder => Programs::in_folder(PathBuf::from(folder)),
        };
        Versions { older, newer: Programs::default() }
    }
}

/// The version of a program, as `/bedplate/v1/conductors` has it.
async fn version(programs: &Programs) -> String {
    let said = Command::new(programs.path("baremetald")).arg("--version").output().await;
    let said = String::from_utf8(said.expect("it starts").stdout).expect("text");
    eprintln!("{}", said.trim());
    said.split(' ').nth(1).expect("a version").trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_all_processes_are_upgraded_and_go_back() {
    let Some(server) = Postgres::start(&["baremetald", "clusterd", "consoled"]).await else {
        return peers::skip("upgrade", "no PostgreSQL is installed");
    };
    let Versions { older, newer } = Versions::find().await;
    let settings = Settings {
        speed: 20.0,
        boot_timeout: "30s",
        database_timeout: "10s",
        programs: older.clone(),
        ..Settings::default()
    };
    let Some(three) = Three::start(|name| server.url(name), settings).await else {
        return peers::skip("upgrade", "no haproxy is installed");
    };
    let (cloud, before) = (&three.site.cloud, effects::objects(&three.site.cloud));
    work::create_profile(&three).await;
    let machines = work::enroll(&three.lab, MACHINES).await;
    let load = Load::start(three.lab.api(), Some(&three.clusters), Some(three.console.clone()));
    assert_eq!(versions(&three).await, [version(&older).await]);

    tokio::join!(
        Box::pin(upgrade(&three, &newer)),
        Box::pin(bring_up(&three)),
        Box::pin(work::create_cluster(&three)),
        Box::pin(work::create_vms(&three))
    );
    assert_eq!(versions(&three).await, [version(&newer).await]);
    assert_eq!(load.repeated(), [""; 0], "requests failed during the upgrade");

    tokio::join!(Box::pin(go_back(&three, &older, &newer)), Box::pin(work::grow_cluster(&three)));
    assert_eq!(load.repeated(), [""; 0], "requests failed on the way back");
    effects::each_machine_came_up_once(&three.lab, &machines).await;
    effects::each_machine_is_one_host(cloud, &machines);
    effects::each_server_was_made_once(cloud, SERVERS);
    tokio::join!(Box::pin(work::delete_cluster(&three)), Box::pin(work::delete_vms(&three)));
    let requests = load.end().await;
    effects::nothing_is_orphaned(cloud, &before);
    trails_are_whole(&three).await;
    eprintln!("{requests} requests were answered at once");
}

/// Makes the machines of the rack hypervisors of the cloud.
async fn bring_up(three: &Three) {
    work::bring_up(&three.lab, json!({"profile": "kvm"})).await;
    work::is_up(&three.lab, MACHINES).await;
}

/// Replaces the programs of all processes, one after the other.
async fn upgrade(three: &Three, newer: &Programs) {
    for process in Process::all() {
        stop(three, process).await;
        three.replace(process, newer).await;
        three.start_again(process).await;
        take_requests(three, process).await;
    }
}

/// Starts the older programs again, one after the other. Processes that are refused go on with the newer ones.
async fn go_back(three: &Three, older: &Programs, newer: &Programs) {
    for process in Process::all() {
        stop(three, process).await;
        three.replace(process, older).await;
        if is_refused(three, process).await {
            eprintln!(
                "{process:?} of the last release is refused: this tree has narrowed the database"
            );
            three.replace(process, newer).await;
            three.start_again(process).await;
        }
        take_requests(three, process).await;
    }
}

/// Sends a process no more requests, and stops it.
async fn stop(three: &Three, process: Process) {
    let (haproxy, servers) = three.at_haproxy(process);
    for server in servers {
        haproxy.set(server, Traffic::Drained).await;
    }
    three.hand_over(process).await;
}

/// Sends a process requests again.
async fn take_requests(three: &Three, process: Process) {
    three.takes_requests(process).await;
    let (haproxy, servers) = three.at_haproxy(process);
    for server in servers {
        haproxy.set(server, Traffic::Sent).await;
    }
}

/// Starts a process, and returns whether it ends because the database needs a newer program. Otherwise it takes part in the work.
async fn is_refused(three: &Three, process: Process) -> bool {
    three.launch(process).await;
    let refused = async {
        while !three.says(process, REFUSED).await {
            sleep(LOOK_EVERY).await;
        }
    };
    let is_refused = tokio::select! {
        () = three.works(process) => false,
        () = refused => true,
    };
    if is_refused {
        three.ended(process).await;
    }
    is_refused
}

/// The versions of the living conductors of both services, each once.
async fn versions(three: &Three) -> Vec<String> {
    let mut versions = Vec::new();
    for api in [three.lab.api(), &three.clusters] {
        let listed: Value = api.get("/bedplate/v1/conductors").await;
        let listed = listed["conductors"].as_array().expect("a list").clone();
        let living = listed.into_iter().filter(|one| one["state"] != "dead");
        versions.extend(living.map(|one| one["version"].as_str().expect("a version").to_owned()));
    }
    versions.sort();
    versions.dedup();
    versions
}

/// Asserts that the rows of both audit trails, which both versions have written, are one chain each.
async fn trails_are_whole(three: &Three) {
    let (machines, clusters) = (three.lab.api().url().as_str(), three.clusters.url().as_str());
    for service in ["machines", "clusters"] {
        let urls = ["--url", machines, "--clusters-url", clusters];
        bedplate(&[&urls[..], &["audit", "verify", service]].concat()).await.done();
    }
}
