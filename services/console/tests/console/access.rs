//! Who is let in, what is kept of them, and what the browser gets of it.

use crate::given::{Auth, Given};

#[tokio::test]
async fn who_logs_in_by_keystone_sees_what_is_theirs_and_no_token() {
    let given = Given::start(Auth::Keystone).await;
    let mut browser = given.browser();
    assert_eq!(browser.get("/clusters?x=1").await.leads(), "/login?next=%2Fclusters%3Fx%3D1");
    let before = browser.cookie.clone();
    let wrong = [("user", "alice"), ("password", "wrong"), ("project", "tenant-a")];
    let refused =
        browser.fill("/login", "/login", &wrong).await.has(401).says("name or password is wrong");
    assert!(
        !refused.text.contains("wrong\"") && refused.text.contains("value=\"alice\""),
        "{}",
        refused.text
    );
    assert_eq!(browser.get("/").await.leads(), "/login?next=%2F");

    let right = [
        ("user", "alice"),
        ("password", "alice-secret"),
        ("project", "tenant-a"),
        ("next", "/clusters"),
    ];
    let entered = browser.fill("/login", "/login", &right).await;
    assert_eq!(entered.leads(), "/clusters");
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains("Secure"),
        "{cookie}"
    );
    assert_ne!(browser.cookie, before, "nobody can have given us the cookie");
    let page = browser.get("/clusters").await.has(200).says("alice in ").says(">tenant-a</a>");
    assert!(!page.text.contains("gAAAA") && !page.text.contains("alice-secret"));
    let overview = browser.get("/").await.has(200);
    assert!(overview.text.contains("Clusters"), "{}", overview.text);

    let tokens = |given: &Given| {
        given.cloud.count(|call| call.method == "DELETE" && call.path.ends_with("/v3/auth/tokens"))
    };
    let revoked = tokens(&given);
    let stale = browser.cookie.clone();
    assert_eq!(browser.fill("/clusters", "/logout", &[]).await.leads(), "/login");
    assert_eq!(tokens(&given), revoked + 1, "the token was given back");
    browser.cookie = stale;
    assert!(browser.get("/clusters").await.leads().starts_with("/login"));
}

#[tokio::test]
async fn who_has_several_projects_goes_on_in_another_and_gives_all_tokens_back() {
    let given = Given::start(Auth::Keystone).await;
    given.cloud.add_user("alice", "alice-secret", "tenant-c");
    let mut browser = given.browser();
    let who = [("user", "alice"), ("password", "alice-secret"), ("project", "tenant-a")];
    browser.fill("/login", "/login", &who).await;
    let offered = browser.get("/project").await.has(200).says("tenant-c");
    let row = offered.text.split("<tr>").find(|row| row.contains("tenant-c")).unwrap();
    let id = row.split("name=\"project\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let before = browser.cookie.clone();
    assert_eq!(browser.fill("/project", "/project", &[("project", id)]).await.leads(), "/");
    assert_ne!(browser.cookie, before);
    browser.get("/clusters").await.has(200).says(">tenant-c</a>");
    let strange = browser.fill("/project", "/project", &[("project", "nobodys")]).await;
    assert!(strange.status.is_client_error(), "{}", strange.text);
    browser.get("/clusters").await.has(200).says(">tenant-c</a>");

    let tokens = || {
        given.cloud.count(|call| call.method == "DELETE" && call.path.ends_with("/v3/auth/tokens"))
    };
    let revoked = tokens();
    browser.fill("/clusters", "/logout", &[]).await;
    assert_eq!(tokens(), revoked + 2, "both tokens were given back");
}

#[tokio::test]
async fn who_logs_in_by_a_password_of_the_services_is_let_in() {
    let given = Given::start(Auth::HttpBasic).await;
    let mut browser = given.browser();
    browser.fill("/login", "/login", &[("user", "alice"), ("password", "no")]).await.has(401);
    let entered =
        browser.fill("/login", "/login", &[("user", "alice"), ("password", "a secret")]).await;
    assert_eq!(entered.leads(), "/");
    for page in ["/", "/nodes", "/clusters"] {
        browser.get(page).await.has(200).says("alice");
    }
    let mut other = given.browser();
    assert!(other.get("/nodes").await.leads().starts_with("/login"));
    other.get("/live?page=/nodes").await.has(401);
    let token = other.get("/login").await.has(200).token();
    let away = [
        ("token", token.as_str()),
        ("user", "alice"),
        ("password", "a secret"),
        ("next", "https://evil.example/"),
    ];
    assert_eq!(other.post("/login", &away).await.leads(), "/");
}

#[tokio::test]
async fn a_session_ends_and_who_follows_a_page_is_told() {
    let given = Given::start_with(Auth::HttpBasic, "sessions = { longest = '3s' }").await;
    let mut browser = given.browser();
    browser.fill("/login", "/login", &[("user", "alice"), ("password", "a secret")]).await;
    let mut stream = browser.follow("/").await;
    assert_eq!(stream.next().await.unwrap().0, "live");
    while let Some((name, _)) = stream.next().await {
        assert!(["live", "over"].contains(&name.as_str()), "{name}");
    }
    assert!(browser.get("/").await.leads().starts_with("/login"));
}

#[tokio::test]
async fn without_passwords_no_name_but_this_machines_is_answered() {
    let given = Given::start(Auth::None).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |host: &str| client.get(&given.url).header("host", host.to_owned()).send();
    assert_eq!(ask("localhost:1").await.unwrap().status(), 200);
    assert_eq!(ask("evil.example").await.unwrap().status(), 421);
}

#[tokio::test]
async fn a_service_that_is_down_is_named_and_the_rest_is_shown() {
    let given = Given::start_with(Auth::None, "").await;
    let text = format!(
        "listen = '127.0.0.1:0'\nbaremetal = '{}'\nclusters = 'http://127.0.0.1:1'",
        given.machines
    );
    let service = console::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
    let mut browser = given.browser();
    browser.url = format!("http://{}", service.address());
    let _running = tokio::spawn(async move { service.run(Default::default()).await });
    browser
        .get("/")
        .await
        .has(200)
        .says("Clusters cannot be shown: clusterd does not answer")
        .says("Nodes");
    browser.get("/clusters").await.has(502).says("clusterd does not answer");
}
