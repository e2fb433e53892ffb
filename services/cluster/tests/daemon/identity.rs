//! Authentication and authorisation with Keystone.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::time::{Duration, Instant};

use api_client::clusterd::{Quotas, ResourceQuota};
use cluster::{Config, Service};
use openstack_emulator::{Act, Cloud, Emulator, Rule, Settings};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A clusterd that authenticates callers with the Keystone of a cloud.
struct TestDaemon {
    cloud: Cloud,
    client: Client,
    url: String,
    _emulator: Emulator,
    state: tempfile::TempDir,
    _running: AbortOnDropHandle<()>,
}

/// A response with its body parsed as JSON.
struct Answer {
    status: StatusCode,
    headers: reqwest::header::HeaderMap,
    body: Value,
}

impl Answer {
    #[track_caller]
    fn has(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{:#}", self.body);
        self
    }

    /// Fails unless the response is a refusal in Magnum's envelope.
    #[track_caller]
    fn refuses(self, status: u16, words: &str) -> Answer {
        let answer = self.has(status);
        let said = answer.body["errors"][0]["detail"].as_str().unwrap();
        assert!(said.contains(words), "{said}");
        answer
    }
}

impl TestDaemon {
    async fn with(settings: Settings, more: &str) -> TestDaemon {
        left::keep_logs();
        let emulator = Emulator::start(settings).await.unwrap();
        let cloud = emulator.cloud.clone();
        let state = tempfile::tempdir().unwrap();
        let clouds = state.path().join("clouds.yaml");
        std::fs::write(&clouds, cloud.clouds_yaml()).unwrap();
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n\
             [api.keystone]\nclouds_yaml = {clouds:?}\nname = 'clusterd'\n{more}",
            state.path().join("state"),
        );
        let config: Config = toml::from_str(&text).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let service = Service::start(config).await.unwrap();
        let url = format!("http://{}", service.listeners().api);
        let running = tokio::spawn(async move {
            service.run(CancellationToken::new()).await.unwrap();
        });
        TestDaemon {
            cloud,
            client: Client::builder().no_proxy().build().unwrap(),
            url,
            _emulator: emulator,
            state,
            _running: AbortOnDropHandle::new(running),
        }
    }

    async fn start() -> TestDaemon {
        TestDaemon::with(Settings::default(), "").await
    }

    /// A token of this user, whose password is `NAME-secret`, with this scope.
    async fn token_in(&self, user: &str, scope: Value) -> String {
        let user = json!({"name": user, "domain": {"id": "default"}, "password": format!("{user}-secret")});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        let body = json!({"auth": {"identity": identity, "scope": scope}});
        let url = format!("{}/auth/tokens", self.cloud.auth_url());
        let answer = self.client.post(url).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 201);
        answer.headers()["x-subject-token"].to_str().unwrap().to_owned()
    }

    async fn token(&self, user: &str, project: &str) -> String {
        let project = json!({"name": project, "domain": {"id": "default"}});
        self.token_in(user, json!({"project": project})).await
    }

    async fn send(&self, token: &str, method: Method, path: &str, body: Value) -> Answer {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.header("x-auth-token", token);
        self.sent(if body.is_null() { request } else { request.json(&body) }).await
    }

    async fn sent(&self, request: reqwest::RequestBuilder) -> Answer {
        let answer = request.header("openstack-api-version", "container-infra latest").send().await;
        let answer = answer.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let text = answer.text().await.unwrap();
        Answer { status, headers, body: serde_json::from_str(&text).unwrap_or(Value::Null) }
    }

    async fn get(&self, token: &str, path: &str) -> Answer {
        self.send(token, Method::GET, path, Value::Null).await
    }

    async fn template(&self, token: &str, name: &str, public: bool) -> Answer {
        let body = json!({"name": name, "image_id": "i", "coe": "kubernetes", "flavor_id": "f", "public": public});
        self.send(token, Method::POST, "/v1/clustertemplates", body).await
    }

    async fn cluster(&self, token: &str, name: &str, template: &str) -> Answer {
        let body = json!({"name": name, "cluster_template_id": template});
        self.send(token, Method::POST, "/v1/clusters", body).await
    }

    async fn names(&self, token: &str, list: &str) -> Vec<String> {
        let answer = self.get(token, &format!("/v1/{list}")).await.has(200);
        let things = answer.body[list].as_array().unwrap().iter();
        things.map(|thing| thing["name"].as_str().unwrap().to_owned()).collect()
    }

    /// How often clusterd asked Keystone about a token.
    fn asked(&self) -> usize {
        self.cloud.count(|call| call.method == "GET" && call.path.ends_with("/v3/auth/tokens"))
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
        left::keep(&self.state.path().join("state"), "identity");
    }
}

#[tokio::test]
async fn a_request_without_a_valid_token_is_answered_with_the_address_of_keystone() {
    let given = TestDaemon::start().await;
    let request = given.client.get(format!("{}/v1/clusters", given.url));
    let answer = given.sent(request).await.refuses(401, "X-Auth-Token");
    let want = format!("Keystone uri=\"{}\"", given.cloud.auth_url());
    assert_eq!(answer.headers["www-authenticate"], want.as_str());
    assert_eq!(given.asked(), 0);

    for _ in 0..3 {
        given.get("gAAAAAnobodys", "/v1/clusters").await.refuses(401, "is invalid");
    }
    assert_eq!(given.asked(), 1, "that a token is nobody's is known for a while");
    given.get(&"x".repeat(8193), "/v1/clusters").await.refuses(401, "is not a Keystone token");
    let request = given.client.get(format!("{}/", given.url));
    given.sent(request).await.has(200);
}

#[tokio::test]
async fn a_project_sees_its_own_clusters_and_none_of_others() {
    let given = TestDaemon::start().await;
    let (alice, bob) =
        (given.token("alice", "tenant-a").await, given.token("bob", "tenant-b").await);
    let admin = given.token("admin", "admin").await;
    let whose = given.cloud.add_user_with("alice", "alice-secret", "tenant-a", &[]);

    let made = given.template(&alice, "t", false).await.has(201);
    assert_eq!(made.body["project_id"], whose.project_id);
    assert_eq!(made.body["user_id"], whose.user_id);
    let id = made.body["uuid"].as_str().unwrap().to_owned();
    given.cluster(&alice, "c", "t").await.has(202);
    let shown = given.get(&alice, "/v1/clusters/c").await.has(200);
    assert_eq!(shown.body["project_id"], whose.project_id);
    let cluster = shown.body["uuid"].as_str().unwrap().to_owned();

    assert!(given.names(&bob, "clusters").await.is_empty());
    assert!(given.names(&bob, "clustertemplates").await.is_empty());
    for path in ["/v1/clusters/c".to_owned(), format!("/v1/clusters/{cluster}")] {
        given.get(&bob, &path).await.refuses(404, "could not be found");
        given.send(&bob, Method::DELETE, &path, Value::Null).await.has(404);
    }
    given.get(&bob, &format!("/bedplate/v1/clusters/{cluster}/kubeconfig")).await.has(404);
    given.cluster(&bob, "mine", &id).await.refuses(404, "ClusterTemplate");
    let stats = format!("/v1/stats?project_id={}", whose.project_id);
    given.get(&bob, &stats).await.refuses(403, "other projects");
    given.get(&bob, "/v1/quotas?all_tenants=true").await.has(200);

    assert_eq!(given.names(&admin, "clusters").await, ["c"]);
    assert_eq!(given.get(&admin, &stats).await.has(200).body["clusters"], 1);
    given.template(&bob, "t", false).await.has(201);
    given.cluster(&bob, "c", "t").await.has(202);
    given.get(&admin, "/v1/clusters/c").await.refuses(409, "use its id");
    given.get(&admin, &format!("/v1/clusters/{cluster}")).await.has(200);
}

#[tokio::test]
async fn events_are_followed_no_longer_than_the_token_lasts() {
    let settings = Settings { token_seconds: 3, ..Settings::default() };
    let given = TestDaemon::with(settings, "").await;
    let alice = given.token("alice", "tenant-a").await;
    given.template(&alice, "t", false).await.has(201);
    given.cluster(&alice, "c", "t").await.has(202);
    let alice = given.token("alice", "tenant-a").await;
    let request = given.client.get(format!("{}/bedplate/v1/clusters/c/events", given.url));
    let request = request.header("accept", "text/event-stream").header("x-auth-token", &alice);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let whole = tokio::time::timeout(Duration::from_secs(30), answer.text()).await;
    let text = whole.expect("the stream ends by itself").unwrap();
    assert!(text.contains("CreateRequested"), "{text}");
    given.get(&alice, "/v1/clusters/c").await.has(401);
}

#[tokio::test]
async fn only_administrators_offer_a_template_to_everybody() {
    let given = TestDaemon::start().await;
    let alice = given.token("alice", "tenant-a").await;
    let admin = given.token("admin", "admin").await;
    given.template(&alice, "t", true).await.refuses(403, "only administrators");
    given.template(&alice, "t", false).await.has(201);
    let publish = json!([{"op": "replace", "path": "/public", "value": true}]);
    let path = "/v1/clustertemplates/t";
    given.send(&alice, Method::PATCH, path, publish).await.refuses(403, "only administrators");

    given.template(&admin, "offered", true).await.has(201);
    assert_eq!(given.names(&alice, "clustertemplates").await, ["t", "offered"]);
    let path = "/v1/clustertemplates/offered";
    given.send(&alice, Method::DELETE, path, Value::Null).await.refuses(403, "another project");
    given.cluster(&alice, "c", "offered").await.has(202);
    let hide = || json!([{"op": "replace", "path": "/hidden", "value": true}]);
    let own = "/v1/clustertemplates/t";
    given.send(&alice, Method::PATCH, own, hide()).await.refuses(403, "only administrators");
    given.send(&admin, Method::PATCH, path, hide()).await.has(200);
    given.get(&alice, path).await.has(404);
    given.cluster(&alice, "d", "offered").await.refuses(404, "offered");
    given.get(&admin, path).await.has(200);
    // An administrator may delete a template of another project.
    given.send(&admin, Method::DELETE, "/v1/clustertemplates/t", Value::Null).await.has(204);
}

#[tokio::test]
async fn a_reader_may_read_and_a_user_without_a_role_may_not() {
    let given = TestDaemon::start().await;
    let alice = given.token("alice", "tenant-a").await;
    given.cloud.add_user_with("carol", "carol-secret", "tenant-a", &["reader"]);
    given.cloud.add_user_with("dave", "dave-secret", "tenant-a", &["load-balancer_member"]);
    let (carol, dave) =
        (given.token("carol", "tenant-a").await, given.token("dave", "tenant-a").await);
    given.template(&alice, "t", false).await.has(201);
    given.cluster(&alice, "c", "t").await.has(202);

    assert_eq!(given.names(&carol, "clusters").await, ["c"]);
    let plan = json!({"cluster_template_id": "t"});
    given.send(&carol, Method::POST, "/bedplate/v1/plan", plan).await.has(200);
    given.cluster(&carol, "d", "t").await.refuses(403, "role member");
    let delete = given.send(&carol, Method::DELETE, "/v1/clusters/c", Value::Null).await;
    delete.refuses(403, "role member");
    given.get(&carol, "/bedplate/v1/clusters/c/kubeconfig").await.refuses(403, "role member");
    given.get(&dave, "/v1/clusters").await.refuses(403, "none of the roles");

    given.get(&alice, "/v1/mservices").await.refuses(403, "role admin");
    let quota = json!({"project_id": "p", "resource": "Cluster", "hard_limit": 100});
    given.send(&alice, Method::POST, "/v1/quotas", quota).await.refuses(403, "role admin");
    let unscoped = given.token_in("alice", Value::Null).await;
    given.get(&unscoped, "/v1/clusters").await.has(403);

    let whole = given.token_in("admin", json!({"system": {"all": true}})).await;
    assert_eq!(given.names(&whole, "clusters").await, ["c"]);
    given.template(&whole, "t", false).await.refuses(400, "has no project");
}

#[tokio::test]
async fn each_user_has_limits_and_only_administrators_set_them() {
    let given = TestDaemon::start().await;
    let (alice, bob) =
        (given.token("alice", "tenant-a").await, given.token("bob", "tenant-b").await);
    let admin = given.token("admin", "admin").await;
    let whose = given.cloud.add_user_with("alice", "alice-secret", "tenant-a", &[]);
    let (project, user) = (&whose.project_id, &whose.user_id);
    let limits = format!("/bedplate/v1/quotas/{project}/users/{user}");
    let one = json!({"clusters": 1});
    given.send(&alice, Method::PUT, &limits, one.clone()).await.refuses(403, "role admin");
    given.send(&admin, Method::PUT, &limits, one).await.has(200);
    let of_project = format!("/bedplate/v1/quotas/{project}");
    given.send(&alice, Method::PUT, &of_project, json!({})).await.refuses(403, "role admin");

    given.template(&alice, "t", false).await.has(201);
    given.cluster(&alice, "c", "t").await.has(202);
    let words = format!("user {user} in project {project} uses 1 of 1");
    given.cluster(&alice, "d", "t").await.refuses(403, &words);
    let quotas = async |token: &str, path: &str| -> Quotas {
        serde_json::from_value(given.get(token, path).await.has(200).body).unwrap()
    };
    let own = quotas(&alice, "/bedplate/v1/quotas").await;
    assert_eq!(own.project["clusters"], ResourceQuota { used: Some(1), limit: 20 });
    assert_eq!(own.user["clusters"], ResourceQuota { used: Some(1), limit: 1 });

    // Another user of the same project has limits of their own.
    given.cloud.add_user("carol", "carol-secret", "tenant-a");
    let carol = given.token("carol", "tenant-a").await;
    given.cluster(&carol, "d", "t").await.has(202);
    // A resize counts for the user who resizes, not for the user who created the cluster.
    let carols = given.cloud.add_user_with("carol", "carol-secret", "tenant-a", &[]).user_id;
    let limits = format!("/bedplate/v1/quotas/{project}/users/{carols}");
    given.send(&admin, Method::PUT, &limits, json!({"nodes": 2})).await.has(200);
    let more = json!([{"op": "replace", "path": "/node_count", "value": 2}]);
    let words = format!("user {carols} in project {project} uses 2 of 2");
    let resized = given.send(&carol, Method::PATCH, "/v1/clusters/c", more.clone()).await;
    resized.refuses(403, &words);
    given.send(&alice, Method::PATCH, "/v1/clusters/c", more).await.has(202);
    let asked = format!("/bedplate/v1/quotas?user_id={user}");
    given.get(&carol, &asked).await.refuses(403, "other users");
    let asked = format!("/bedplate/v1/quotas?project_id={project}");
    given.get(&bob, &asked).await.refuses(403, "other projects");
    let reported = quotas(&admin, &format!("{asked}&user_id={user}")).await;
    assert_eq!(reported.project["clusters"].used, Some(2));
    assert_eq!(reported.user["clusters"].used, Some(1));
}

#[tokio::test]
async fn a_hundred_requests_with_one_new_token_ask_keystone_once() {
    let given = TestDaemon::start().await;
    let alice = given.token("alice", "tenant-a").await;
    let all = (0..100).map(|_| given.get(&alice, "/v1/clusters"));
    // The client opens as many connections as there are requests.
    let answers = futures::future::join_all(all).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(given.asked(), 1);
}

#[tokio::test]
async fn a_revoked_token_is_accepted_no_longer_than_configured() {
    let given = TestDaemon::with(Settings::default(), "cache_for = '0s'\n").await;
    let alice = given.token("alice", "tenant-a").await;
    given.get(&alice, "/v1/clusters").await.has(200);
    let url = format!("{}/auth/tokens", given.cloud.auth_url());
    let revoke = given.client.delete(url).header("x-auth-token", &alice);
    let answer = revoke.header("x-subject-token", &alice).send().await.unwrap();
    assert_eq!(answer.status(), 204);
    given.get(&alice, "/v1/clusters").await.refuses(401, "is invalid or has expired");
    // All tokens are revoked, also clusterd's own, so clusterd has to get a new one.
    given.cloud.void_tokens();
    let alice = given.token("alice", "tenant-a").await;
    given.get(&alice, "/v1/clusters").await.has(200);
}

#[tokio::test]
async fn an_expired_token_is_not_accepted() {
    let settings = Settings { token_seconds: 2, ..Settings::default() };
    let given = TestDaemon::with(settings, "cache_for = '1h'\n").await;
    let alice = given.token("alice", "tenant-a").await;
    given.get(&alice, "/v1/clusters").await.has(200);
    let ends = async {
        while given.get(&alice, "/v1/clusters").await.status == 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ends).await.unwrap();
    given.get(&alice, "/v1/clusters").await.refuses(401, "has expired");
}

#[tokio::test]
async fn without_keystone_only_callers_with_a_cached_token_get_in() {
    let given = TestDaemon::start().await;
    let (alice, bob) =
        (given.token("alice", "tenant-a").await, given.token("bob", "tenant-b").await);
    given.get(&alice, "/v1/clusters").await.has(200);
    for act in [
        Act::Answer { status: 503, retry_after: None, message: None },
        Act::Answer { status: 500, retry_after: None, message: None },
        Act::Answer { status: 403, retry_after: None, message: None },
        Act::Close,
    ] {
        let away = given.cloud.misbehave(Rule::new("GET", "/identity/v3/auth/tokens", act));
        let answer = given.get(&bob, "/v1/clusters").await.refuses(503, "Keystone");
        assert_eq!(answer.headers["retry-after"], "5");
        given.get(&alice, "/v1/clusters").await.has(200);
        given.cloud.end_rule(away);
    }
    given.get(&bob, "/v1/clusters").await.has(200);
}

#[tokio::test]
async fn a_hanging_keystone_delays_only_callers_with_new_tokens() {
    let given = TestDaemon::with(Settings::default(), "answer_timeout = '2s'\n").await;
    let (alice, bob) =
        (given.token("alice", "tenant-a").await, given.token("bob", "tenant-b").await);
    given.get(&alice, "/v1/clusters").await.has(200);
    let hangs = given.cloud.misbehave(Rule::new("GET", "/identity/v3/auth/tokens", Act::Hang));

    let begun = Instant::now();
    let stranger = given.get("gAAAAAnobodys", "/v1/clusters");
    let known = async {
        for _ in 0..10 {
            given.get(&alice, "/v1/clusters").await.has(200);
        }
        begun.elapsed()
    };
    let (held, stranger, known) = tokio::join!(given.get(&bob, "/v1/clusters"), stranger, known);
    let took = begun.elapsed();
    for answer in [held, stranger] {
        let answer = answer.refuses(503, "Keystone is unavailable");
        assert_eq!(answer.headers["retry-after"], "5");
    }
    assert!(known < took / 2, "{known:?} of {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");

    given.cloud.end_rule(hangs);
    given.get(&bob, "/v1/clusters").await.has(200);
}

#[tokio::test]
async fn a_keystone_that_gives_clusterd_no_token_delays_nobody_for_long() {
    let given = TestDaemon::with(Settings::default(), "answer_timeout = '2s'\n").await;
    let alice = given.token("alice", "tenant-a").await;
    let bob = given.token("bob", "tenant-b").await;
    // clusterd has had no token of its own until now.
    let hangs = given.cloud.misbehave(Rule::new("POST", "/identity/v3/auth/tokens", Act::Hang));
    given.get(&alice, "/v1/clusters").await.refuses(503, "Keystone is unavailable");
    given.cloud.end_rule(hangs);
    given.get(&alice, "/v1/clusters").await.has(200);
    given.get(&bob, "/v1/clusters").await.has(200);
}

#[tokio::test]
async fn a_service_token_has_to_be_valid() {
    let given = TestDaemon::start().await;
    let alice = given.token("alice", "tenant-a").await;
    let service = given.token("clusterd", "service").await;
    for (through, status) in [(service.as_str(), 200), ("nobodys", 401)] {
        let request = given.client.get(format!("{}/v1/clusters", given.url));
        let request = request.header("x-auth-token", &alice).header("x-service-token", through);
        given.sent(request).await.has(status);
    }
}
