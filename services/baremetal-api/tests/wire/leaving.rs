//! Wire tests of nodes that are compute hosts: the API only queries clusterd, and the conductor has the host drained before it continues.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use baremetal_core::{Maintenance, Node, NodeIdent, Reason, State as Stage, with_stage_taken};
use hardware::PowerState;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, ID, NEWEST};

/// A clusterd with one host.
#[derive(Clone, Default)]
struct Clusterd(Arc<Mutex<ClusterdState>>);

#[derive(Default)]
struct ClusterdState {
    /// The received requests, such as `PUT h1`.
    asked: Vec<String>,
    /// The state of the host's drain.
    drain: Option<&'static str>,
    /// The states that the drain takes, one for each query.
    next: VecDeque<&'static str>,
    /// The reason with which drains are refused.
    refuses: Option<&'static str>,
    /// The reason why a stuck drain cannot continue.
    problem: Option<&'static str>,
    /// How many more requests are answered; later ones wait for ever.
    answers: Option<usize>,
}

impl Clusterd {
    async fn start() -> (Clusterd, String) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clusterd = Clusterd::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(clusterd.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (clusterd, url)
    }

    fn tell<T>(&self, change: impl FnOnce(&mut ClusterdState) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// The received requests that change something.
    fn effects(&self) -> Vec<String> {
        self.tell(|state| {
            state.asked.iter().filter(|asked| !asked.starts_with("GET")).cloned().collect()
        })
    }
}

async fn answer(State(clusterd): State<Clusterd>, request: Request) -> Response {
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    let tail = path.strip_prefix("/bedplate/v1/drains/").unwrap().to_owned();
    let (answered, is_held) = clusterd.tell(|state| {
        let is_held = state.answers == Some(0);
        state.answers = state.answers.map(|left| left.saturating_sub(1));
        state.asked.push(format!("{method} {tail}"));
        (state.answer(&method, tail.ends_with("/check")), is_held)
    });
    if is_held {
        std::future::pending::<()>().await;
    }
    answered.into_response()
}

impl ClusterdState {
    fn answer(&mut self, method: &str, is_check: bool) -> (StatusCode, axum::Json<Value>) {
        let error = |status: StatusCode, why: &str| {
            (status, axum::Json(json!({"errors": [{"detail": why}]})))
        };
        if let Some(why) = self.refuses.filter(|_| is_check || method == "PUT") {
            return error(StatusCode::CONFLICT, why);
        }
        match method {
            "PUT" => self.drain = self.drain.or(Some("draining")),
            "DELETE" if self.drain.take().is_none() => {
                return error(StatusCode::NOT_FOUND, "Drain h1 could not be found.");
            }
            _ if self.drain.is_some() && !is_check => {
                self.drain = self.next.pop_front().or(self.drain);
            }
            _ => {}
        }
        let drain = self.drain.or((method == "DELETE").then_some("ending"));
        let shown = drain.map(|state| {
            let problem = self.problem.filter(|_| state == "stuck");
            json!({"host": "h1", "state": state, "asked_by": "ann", "left": [], "foreign": 1, "problem": problem})
        });
        match (is_check, shown) {
            (true, drain) => (StatusCode::OK, axum::Json(json!({"host": "h1", "drain": drain}))),
            (false, Some(drain)) => (StatusCode::OK, axum::Json(drain)),
            (false, None) => error(StatusCode::NOT_FOUND, "Drain h1 could not be found."),
        }
    }
}

/// A compute host in use, with the clusterd that manages the servers on it.
async fn host() -> (Api, Clusterd) {
    let (clusterd, url) = Clusterd::start().await;
    let api = Api::beside(&url).await;
    api.enroll(r#", "name": "n1""#).await;
    api.edit(|node| {
        node.provision_state = Stage::Active;
        node.power_state = Some(PowerState::On);
        for (key, value) in [
            ("hypervisor_hostname", "h1"),
            ("image_source", "http://images.example/disk.raw"),
            ("image_checksum", "0"),
        ] {
            node.instance_info.insert(key.to_owned(), value.into());
        }
    })
    .await;
    (api, clusterd)
}

async fn node(api: &Api) -> Node {
    let ident: NodeIdent = ID.parse().unwrap();
    api.store.find_node(&ident).await.unwrap().unwrap()
}

/// Runs the conductor until `is_done` holds for the node.
async fn works(api: &Api, is_done: impl Fn(&Node) -> bool) -> Node {
    let stop = CancellationToken::new();
    let conductor = tokio::spawn(api.conductor().await.run(stop.clone()));
    let waiting = async {
        loop {
            let node = node(api).await;
            if is_done(&node) {
                return node;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    stop.cancel();
    conductor.await.unwrap().unwrap();
    done.expect("the conductor goes on")
}

async fn put(api: &Api, what: &str, body: &str) -> crate::api::Answer {
    api.send("PUT", &format!("/v1/nodes/{ID}/{what}"), NEWEST, body).await
}

#[tokio::test]
async fn the_plan_of_a_compute_host_begins_with_its_drain() {
    let (api, clusterd) = host().await;
    for (target, want) in [("deleted", json!("h1")), ("service", json!("h1"))] {
        let path = format!("/bedplate/v1/nodes/{ID}/plan?target={target}");
        let plan = api.get(&path).await.has(200).json();
        assert_eq!(plan["drains"], want, "{target}");
    }
    assert_eq!(clusterd.effects(), Vec::<String>::new());
}

const UNDEPLOY: &str = r#"{"target": "deleted"}"#;
const REBUILD: &str = r#"{"target": "rebuild"}"#;
const OFF: &str = r#"{"target": "power off"}"#;
const SOFT_OFF: &str = r#"{"target": "soft power off"}"#;
const REBOOT: &str = r#"{"target": "rebooting"}"#;
const LOST: &str = "host h1 cannot be drained now: cluster blue would have 1 of its 3 etcd members";

#[tokio::test]
async fn a_refused_request_asks_clusterd_for_nothing_and_changes_nothing() {
    type Change = fn(&mut Node);
    let protect: Change = |node| node.protected = Some(String::new());
    let keep_on: Change = |node| node.disable_power_off = true;
    let maintain: Change = |node| node.maintenance = Some(Maintenance::requested(None));
    for (change, what, body, status) in [
        (protect, "states/provision", UNDEPLOY, 403),
        (protect, "states/provision", REBUILD, 403),
        (keep_on, "states/power", OFF, 409),
        (keep_on, "states/power", SOFT_OFF, 409),
        (keep_on, "states/power", REBOOT, 409),
        (maintain, "states/provision", REBUILD, 400),
    ] {
        let (api, clusterd) = host().await;
        api.edit(change).await;
        let before = node(&api).await;
        put(&api, what, body).await.has(status);
        assert_eq!(clusterd.effects(), Vec::<String>::new(), "{body}");
        assert!(node(&api).await == before, "{body}");
    }
}

#[tokio::test]
async fn a_host_name_that_no_path_can_hold_is_refused_and_names_no_host() {
    let (api, clusterd) = host().await;
    let path = format!("/v1/nodes/{ID}");
    for name in [json!("."), json!(".."), json!("a/b"), json!("r1?u1"), json!("a b"), json!(7)] {
        let info = json!({"hypervisor_hostname": name});
        let set =
            json!([{"op": "add", "path": "/instance_info/hypervisor_hostname", "value": name}]);
        let node = json!({"driver": "fake-hardware", "instance_info": info});
        let up = json!({"reach": "installed", "instance_info": info});
        for (method, path, body) in [
            ("PATCH", path.as_str(), set),
            ("POST", "/v1/nodes", node),
            ("PUT", "/bedplate/v1/racks/r1/up", up),
        ] {
            let said = api.send(method, path, NEWEST, &body.to_string()).await.has(400).text;
            assert!(said.contains("instance_info.hypervisor_hostname: "), "{name}: {said}");
        }
    }

    // A name that was stored before it was checked.
    api.edit(|node| {
        node.instance_info.insert("hypervisor_hostname".to_owned(), "..".into());
    })
    .await;
    let other = json!([{"op": "add", "path": "/description", "value": "x"}]);
    api.send("PATCH", &path, NEWEST, &other.to_string()).await.has(200);
    put(&api, "states/power", OFF).await.has(202);
    assert_eq!(node(&api).await.leaving, None);
    put(&api, "maintenance", "").await.has(202);
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    assert_eq!(clusterd.tell(|state| state.asked.clone()), Vec::<String>::new());
}

#[tokio::test]
async fn a_drain_that_would_be_refused_is_reported_at_once_and_changes_nothing() {
    let (api, clusterd) = host().await;
    clusterd.tell(|state| state.refuses = Some(LOST));
    let before = node(&api).await;
    let words = format!("node n1 is compute host h1: {LOST}");
    for (what, body) in [
        ("states/provision", UNDEPLOY),
        ("states/provision", REBUILD),
        ("states/power", OFF),
        ("states/power", REBOOT),
        ("maintenance", r#"{"reason": "a fan"}"#),
        ("management/inject_nmi", ""),
    ] {
        put(&api, what, body).await.refuses(409, &words);
    }
    let words_of_bmc = "this BMC cannot inject an NMI";
    put(&api, "management/inject_nmi?force=h1", "").await.refuses(400, words_of_bmc);
    let patch = r#"[{"op": "replace", "path": "/maintenance", "value": true}]"#;
    api.send("PATCH", &format!("/v1/nodes/{ID}"), NEWEST, patch).await.refuses(409, &words);
    assert_eq!(clusterd.effects(), Vec::<String>::new());
    assert!(node(&api).await == before);
}

#[tokio::test]
async fn a_host_is_drained_by_the_conductor_before_its_node_is_taken_out() {
    for (what, body) in [("states/provision", UNDEPLOY), ("states/power", OFF)] {
        let (api, clusterd) = host().await;
        put(&api, what, body).await.has(202);
        assert_eq!(clusterd.effects(), Vec::<String>::new(), "the request is only recorded");
        let states = api.get(&format!("/v1/nodes/{ID}/states")).await.json();
        assert_eq!(
            (&states["provision_state"], &states["power_state"]),
            (&json!("active"), &json!("power on"))
        );
        let target = match body {
            UNDEPLOY => &states["target_provision_state"],
            _ => &states["target_power_state"],
        };
        assert!(target.is_string(), "{states}");

        // While servers run on the host, the machine is not touched.
        let still = works(&api, |_| clusterd.tell(|state| state.asked.len() > 8)).await;
        assert_eq!(
            (still.provision_state, still.power_state),
            (Stage::Active, Some(PowerState::On))
        );
        assert_eq!(clusterd.effects(), ["PUT h1"]);
        clusterd.tell(|state| state.drain = Some("drained"));
        let gone = works(&api, |node| node.power_state == Some(PowerState::Off)).await;
        assert_eq!(gone.leaving, None);
        assert_eq!(clusterd.effects(), ["PUT h1"]);
    }
}

/// A host that is reserved, for long enough.
async fn reserved() -> (Api, Clusterd) {
    let (api, clusterd) = host().await;
    api.edit(|node| {
        node.provision_state = Stage::Available;
        node.resource_class = Some("gpu".to_owned());
    })
    .await;
    let wish = json!({
        "name": "train-1", "resource_class": "gpu", "lease": "3d", "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"],
        "image": {"url": "http://images.example/disk.raw", "checksum": format!("sha256:{}", "a".repeat(64))},
    });
    api.send("POST", "/bedplate/v1/reservations", NEWEST, &wish.to_string()).await.has(201);
    api.edit(|node| {
        node.provision_state = Stage::Active;
        node.power_state = Some(PowerState::On);
        node.work = None;
        node.target_provision_state = None;
        node.instance_info.insert("hypervisor_hostname".to_owned(), "h1".into());
        let lending = node.lending.as_mut().unwrap();
        lending.lease.until = jiff::Timestamp::now() + Duration::from_secs(30 * 86400);
    })
    .await;
    (api, clusterd)
}

#[tokio::test]
async fn a_reserved_host_is_drained_before_it_is_given_back() {
    let path = "/bedplate/v1/reservations/train-1";
    let (api, clusterd) = reserved().await;
    let before = node(&api).await;
    api.send("DELETE", path, NEWEST, "").await.has(202);
    let asked = node(&api).await;
    assert_eq!(clusterd.effects(), Vec::<String>::new(), "the request is only recorded");
    assert_eq!((asked.provision_state, &asked.lending), (Stage::Active, &before.lending));
    assert_eq!(api.get(path).await.json()["state"], "leaving");

    let still = works(&api, |_| clusterd.tell(|state| state.asked.len() > 8)).await;
    assert_eq!((still.provision_state, still.power_state), (Stage::Active, Some(PowerState::On)));
    clusterd.tell(|state| state.drain = Some("drained"));
    let free = works(&api, |node| node.lessee.is_none() && node.lending.is_none()).await;
    assert_eq!((free.provision_state, free.leaving), (Stage::Available, None));
    assert_eq!(clusterd.effects(), ["PUT h1"]);
    api.get(path).await.has(404);
}

#[tokio::test]
async fn a_reserved_host_that_may_not_leave_stays_as_it_is() {
    let path = "/bedplate/v1/reservations/train-1";
    let (api, clusterd) = reserved().await;
    clusterd.tell(|state| state.refuses = Some(LOST));
    let before = node(&api).await;
    let words = format!("node n1 is compute host h1: {LOST}");
    api.send("DELETE", path, NEWEST, "").await.refuses(409, &words);
    assert!(node(&api).await == before);

    clusterd.tell(|state| state.refuses = None);
    api.edit(|node| node.protected = Some(String::new())).await;
    let before = node(&api).await;
    api.send("DELETE", path, NEWEST, "").await.has(409);
    assert_eq!(clusterd.effects(), Vec::<String>::new());
    assert!(node(&api).await == before);

    // Another request took the quorum between the question and the drain: the node stays lent.
    api.edit(|node| node.protected = None).await;
    api.send("DELETE", path, NEWEST, "").await.has(202);
    clusterd.tell(|state| state.refuses = Some(LOST));
    let stayed = works(&api, |node| node.leaving.is_none()).await;
    assert_eq!(stayed.failure.as_ref().map(|it| it.reason), Some(Reason::DrainRefused));
    assert_eq!((stayed.provision_state, &stayed.lending), (Stage::Active, &before.lending));
    assert_eq!(api.get(path).await.json()["state"], "active");
}

/// Ends the lease of the host; the undo window is open.
async fn lease_ends(api: &Api) {
    let path = format!("/bedplate/v1/nodes/{ID}/lease");
    api.send("POST", &path, NEWEST, r#"{"lessee": "physics"}"#).await.has(200);
    let now = jiff::Timestamp::now();
    api.edit(|node| {
        let deleted_at = now + Duration::from_secs(30 * 86400);
        *node = with_stage_taken(node, lease::LeaseStage::SwitchOff { deleted_at }, now).0;
    })
    .await;
}

async fn undo(api: &Api) {
    api.send("POST", &format!("/bedplate/v1/nodes/{ID}/lease/undo"), NEWEST, "").await.has(200);
}

#[tokio::test]
async fn an_undone_end_of_a_lease_ends_the_drain_that_it_began() {
    for is_off in [false, true] {
        let (api, clusterd) = host().await;
        lease_ends(&api).await;
        works(&api, |_| clusterd.effects() == ["PUT h1"]).await;
        if is_off {
            clusterd.tell(|state| state.drain = Some("drained"));
            works(&api, |node| node.power_state == Some(PowerState::Off)).await;
        }
        undo(&api).await;
        works(&api, |node| {
            let is_ended = clusterd.effects().last().is_some_and(|last| last == "DELETE h1");
            is_ended && node.leaving.is_none()
        })
        .await;
        assert_eq!(clusterd.tell(|state| state.drain), None, "the host takes servers");
        assert_eq!(node(&api).await.lending.unwrap().drain, None);
    }
}

#[tokio::test]
async fn an_undone_end_of_a_lease_leaves_the_drain_of_an_operator() {
    let (api, clusterd) = host().await;
    clusterd.tell(|state| state.drain = Some("draining"));
    lease_ends(&api).await;
    works(&api, |_| clusterd.effects() == ["PUT h1"]).await;
    undo(&api).await;
    let kept = node(&api).await;
    assert_eq!((kept.leaving, kept.lending.unwrap().drain), (None, None));
    assert_eq!(clusterd.effects(), ["PUT h1"]);
}

#[tokio::test]
async fn a_refused_drain_ends_the_request_and_the_drain_it_started() {
    // Another request took the last spare etcd member between the check and the drain.
    let (api, clusterd) = host().await;
    put(&api, "states/power", OFF).await.has(202);
    clusterd.tell(|state| state.refuses = Some(LOST));
    let stayed = works(&api, |node| node.leaving.is_none()).await;
    assert_eq!(stayed.failure.as_ref().map(|it| it.reason), Some(Reason::DrainRefused));
    assert_eq!((stayed.power_state, stayed.target_power_state()), (Some(PowerState::On), None));
    let state = api.get(&format!("/v1/nodes/{ID}")).await.json();
    assert!(state["last_error"].as_str().unwrap().contains(LOST), "{state}");
    let history = api.get(&format!("/v1/nodes/{ID}/history?detail=true")).await.text;
    assert!(history.contains(LOST), "{history}");
    assert_eq!(clusterd.effects(), ["PUT h1"]);

    // A cluster member moved to the host during the drain.
    for (before, want) in [(None, &["PUT h1", "DELETE h1"][..]), (Some("drained"), &["PUT h1"])] {
        let (api, clusterd) = host().await;
        clusterd.tell(|state| {
            state.drain = before;
            state.problem = Some(LOST);
        });
        put(&api, "states/power", OFF).await.has(202);
        clusterd.tell(|state| state.next = ["draining", "stuck"].into());
        let stayed = works(&api, |node| node.leaving.is_none()).await;
        assert_eq!(stayed.failure.map(|it| it.reason), Some(Reason::DrainRefused));
        assert_eq!(stayed.power_state, Some(PowerState::On));
        assert_eq!(clusterd.effects(), want, "the drain of an operator stays");
    }
}

#[tokio::test]
async fn a_flag_set_during_the_drain_cancels_the_request() {
    let (api, clusterd) = host().await;
    put(&api, "states/provision", UNDEPLOY).await.has(202);
    works(&api, |_| clusterd.effects() == ["PUT h1"]).await;
    let patch = r#"[{"op": "add", "path": "/protected", "value": true}]"#;
    api.send("PATCH", &format!("/v1/nodes/{ID}"), NEWEST, patch).await.has(200);
    clusterd.tell(|state| state.drain = Some("drained"));
    let stayed = works(&api, |node| node.leaving.is_none()).await;
    assert_eq!((stayed.provision_state, stayed.power_state), (Stage::Active, Some(PowerState::On)));
    assert!(stayed.failure.unwrap().cause.contains("is protected"));
    assert_eq!(clusterd.effects(), ["PUT h1", "DELETE h1"]);
}

#[tokio::test]
async fn a_waiting_request_is_cancelled_by_its_opposite_and_by_an_undrain() {
    let (api, clusterd) = host().await;
    put(&api, "states/power", OFF).await.has(202);
    works(&api, |_| clusterd.effects() == ["PUT h1"]).await;
    put(&api, "states/power", r#"{"target": "power on"}"#).await.has(202);
    let on = works(&api, |node| node.leaving.is_none() && node.power_request.is_none()).await;
    assert_eq!(on.power_state, Some(PowerState::On));
    assert_eq!(clusterd.effects(), ["PUT h1", "DELETE h1"]);

    put(&api, "states/provision", UNDEPLOY).await.has(202);
    put(&api, "states/power", OFF).await.refuses(
        409,
        "node \"n1\" waits for the drain of host h1 before \"deleted\"; \"power\" is not possible meanwhile; cancel the waiting request with `bedplate undrain h1`",
    );
    works(&api, |_| clusterd.effects().len() == 3).await;
    works(&api, |node| {
        node.leaving.as_ref().is_some_and(|it| format!("{:?}", it.stage).starts_with("Waiting"))
    })
    .await;
    clusterd.tell(|state| state.drain = None);
    let stayed = works(&api, |node| node.leaving.is_none()).await;
    assert_eq!(stayed.provision_state, Stage::Active);
    assert!(stayed.failure.unwrap().cause.contains("the drain of host h1 was ended"));
}

#[tokio::test]
async fn maintenance_drains_the_host_and_undrains_it_through_the_conductor() {
    let (api, clusterd) = host().await;
    put(&api, "maintenance", "").await.has(202);
    assert_eq!(clusterd.effects(), Vec::<String>::new());
    works(&api, |node| node.leaving.is_none()).await;
    assert_eq!(clusterd.effects(), ["PUT h1"]);
    api.send("DELETE", &format!("/v1/nodes/{ID}/maintenance"), NEWEST, "").await.has(202);
    assert_eq!(clusterd.effects(), ["PUT h1"]);
    works(&api, |node| node.leaving.is_none()).await;
    assert_eq!(clusterd.effects(), ["PUT h1", "DELETE h1"]);
}

#[tokio::test]
async fn a_node_cannot_be_deleted_before_its_host_is_drained() {
    let (api, clusterd) = host().await;
    api.edit(|node| node.maintenance = Some(Maintenance::requested(None))).await;
    let path = format!("/v1/nodes/{ID}");
    let words = "node n1 is compute host h1, which is not drained; drain it first (`bedplate drain h1 --wait`), or name h1 in force";
    api.send("DELETE", &path, NEWEST, "").await.refuses(409, words);
    assert_eq!(clusterd.effects(), Vec::<String>::new());
    clusterd.tell(|state| state.drain = Some("drained"));
    api.send("DELETE", &path, NEWEST, "").await.has(204);
}

/// The conductor is killed at each of its requests to clusterd, once before the request arrives and once after. The node's request is still
/// carried out, the host is drained first, and no drain of anybody else is ended.
#[tokio::test]
async fn a_conductor_killed_at_any_request_continues_the_drain() {
    for at in 0..4 {
        let (api, clusterd) = host().await;
        put(&api, "states/provision", UNDEPLOY).await.has(202);
        clusterd.tell(|state| {
            state.answers = Some(at);
            state.asked.clear();
        });
        let killed = tokio::spawn(api.conductor().await.run(CancellationToken::new()));
        let held = async {
            while clusterd.tell(|state| state.asked.len() <= at) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), held).await.expect("the question comes");
        killed.abort();
        let _ = killed.await;
        assert_eq!(node(&api).await.provision_state, Stage::Active);

        clusterd.tell(|state| state.answers = None);
        let still = works(&api, |_| clusterd.tell(|state| state.asked.len() > at + 5)).await;
        assert_eq!(still.provision_state, Stage::Active);
        clusterd.tell(|state| state.drain = Some("drained"));
        works(&api, |node| node.provision_state == Stage::Available).await;
        let effects = clusterd.effects();
        assert!(effects.iter().all(|effect| effect == "PUT h1"), "{effects:?}");
    }
}
