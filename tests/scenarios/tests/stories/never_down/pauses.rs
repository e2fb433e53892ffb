//! A process is stopped where it is (SIGSTOP) for longer than its lease of six seconds, in the middle of its work. When it goes on, it can reach
//! the BMCs, the agents and the cloud, but has no effect there any more.
//!
//! It goes on while PostgreSQL is frozen and all others are stopped, so each request that the emulators get then would be its own.

use std::time::Duration;

use api_client::Service;
use api_client::baremetald::Conductor;
use api_client::clusterd;
use bmc_emulator::BmcLogEntry;
use lab::{Api, Postgres, RackedMachine, Settings};
use machine_emulator::Event;
use openstack_emulator::Cloud;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::three::{NAMES, Three, others_have_taken_over};
use super::{effects, work};
use crate::own_vm::until;

const MACHINES: usize = 6;
/// The servers of the cluster.
const SERVERS: usize = 4;
/// How long the emulators get no request before they count as quiet.
const QUIET: Duration = Duration::from_secs(1);
/// How many requests the process refuses because of PostgreSQL before the test looks at the emulators: each takes a second, and turns go on
/// meanwhile.
const REFUSALS: usize = 4;

/// The requests that the emulators got.
#[derive(Debug, PartialEq)]
struct Requests {
    /// Each change of a machine that its BMC was asked for.
    bmcs: Vec<Vec<BmcLogEntry>>,
    /// The commands that each agent got.
    agents: Vec<Vec<Event>>,
    /// How many calls of the cloud change something.
    cloud: usize,
}

impl Requests {
    fn of(machines: &[RackedMachine], cloud: &Cloud) -> Requests {
        let begins = |event: &Event| matches!(event, Event::Begins(_));
        let commands = |it: &RackedMachine| it.events().into_iter().filter(begins).collect();
        let changes = |call: &openstack_emulator::Call| {
            // Each client gets a token.
            call.method != "GET" && !call.path.starts_with("/identity/")
        };
        Requests {
            bmcs: machines.iter().map(|machine| machine.chassis().log()).collect(),
            agents: machines.iter().map(commands).collect(),
            cloud: cloud.count(changes),
        }
    }

    /// Waits until the emulators have got everything that was sent, and returns it.
    async fn when_quiet(machines: &[RackedMachine], cloud: &Cloud) -> Requests {
        let mut last = Requests::of(machines, cloud);
        let mut since = Instant::now();
        while since.elapsed() < QUIET {
            sleep(QUIET / 10).await;
            let now = Requests::of(machines, cloud);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        last
    }
}

#[derive(Deserialize)]
struct Conductors<T> {
    conductors: Vec<T>,
}

/// Waits until a baremetald works on machines, and a clusterd on the cluster. Returns the numbers of both.
async fn busy(three: &Three) -> [usize; 2] {
    let number = |hostname: &str| NAMES.iter().position(|name| *name == hostname);
    let machines = until("a baremetald at work", async || {
        let path = "/bedplate/v1/conductors";
        let Conductors::<Conductor> { conductors } = three.lab.api().get(path).await;
        conductors.iter().find(|it| it.busy_nodes > 0).and_then(|it| number(&it.hostname))
    });
    let clusters = until("a clusterd at work", async || {
        let path = "/bedplate/v1/conductors";
        let Conductors::<clusterd::Conductor> { conductors } = three.clusters.get(path).await;
        let asked = |call: &openstack_emulator::Call| {
            call.method == "POST" && call.path.ends_with("/servers")
        };
        let owner = conductors.iter().find(|it| it.clusters > 0);
        let owner = owner.and_then(|it| number(&it.hostname));
        owner.filter(|_| three.site.cloud.count(asked) > 0)
    });
    tokio::join!(machines, clusters).into()
}

/// Waits until a service has refused requests for want of its database.
async fn refuses(api: &Api, path: &str) {
    for _ in 0..REFUSALS {
        let refusal = api.refused(Method::GET, path, None).await;
        assert_eq!(refusal.status, 503, "{refusal:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_process_has_no_effect_after_its_lease() {
    let Some(server) = Postgres::start(&["baremetald", "clusterd", "consoled"]).await else {
        return peers::skip("never_down", "no PostgreSQL is installed");
    };
    let settings = Settings { speed: 5.0, ..Settings::default() };
    let Some(three) = Three::start(|name| server.url(name), settings).await else {
        return peers::skip("never_down", "no haproxy is installed");
    };
    let (cloud, lab) = (&three.site.cloud, &three.lab);
    let machines = work::enroll(lab, MACHINES).await;
    let goal = json!({"reach": "installed", "instance_info": lab.image().instance_info()});
    work::bring_up(lab, goal).await;
    work::request_cluster(&three).await;
    let [machine_owner, cluster_owner] = busy(&three).await;

    // Both are stopped, and others take over.
    let (baremetald, clusterd) =
        (&three.baremetalds[machine_owner], &three.clusterds[cluster_owner]);
    tokio::join!(baremetald.signal("STOP"), clusterd.signal("STOP"));
    others_have_taken_over(lab.api(), NAMES[machine_owner]).await;
    others_have_taken_over(&three.clusters, NAMES[cluster_owner]).await;

    // They go on without their leases while everybody else stands still.
    signal_others(&three, [machine_owner, cluster_owner], "STOP").await;
    server.freeze().await;
    let before = Requests::when_quiet(&machines, cloud).await;
    tokio::join!(baremetald.signal("CONT"), clusterd.signal("CONT"));
    let url = Url::parse(&format!("http://{}/", clusterd.at)).expect("an address makes a URL");
    let clusters = Api::new(Service::Clusterd, url);
    tokio::join!(refuses(baremetald.api(), "/v1/nodes"), refuses(&clusters, "/v1/clusters"));
    assert_eq!(Requests::of(&machines, cloud), before);

    // Everybody goes on, and everything ends as it should.
    server.thaw().await;
    signal_others(&three, [machine_owner, cluster_owner], "CONT").await;
    three.all_work().await;
    work::is_up(lab, MACHINES).await;
    effects::each_machine_came_up_once(lab, &machines).await;
    work::is_complete(&three).await;
    effects::each_server_was_made_once(cloud, SERVERS);
    let all: Value = three.clusters.get("/v1/clusters").await;
    assert_eq!(all["clusters"].as_array().map(Vec::len), Some(1), "{all}");
}

/// Sends a signal to all conductors but these two.
async fn signal_others(three: &Three, [machines, clusters]: [usize; 2], name: &str) {
    for number in (0..NAMES.len()).filter(|number| *number != machines) {
        three.baremetalds[number].signal(name).await;
    }
    for number in (0..NAMES.len()).filter(|number| *number != clusters) {
        three.clusterds[number].signal(name).await;
    }
}
