//! Log-in, sessions, and the protection of cookies and tokens.

use std::net::Ipv4Addr;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use reqwest::StatusCode;

use crate::fixture::{Auth, ConsoleFixture, Stream};

#[tokio::test]
async fn a_keystone_user_sees_their_own_resources_and_no_token() {
    let given = ConsoleFixture::start(Auth::Keystone).await;
    let mut browser = given.browser();
    assert_eq!(browser.get("/clusters?x=1").await.leads(), "/login?next=%2Fclusters%3Fx%3D1");
    let before = browser.cookie.clone();
    let wrong = [("user", "alice"), ("password", "wrong"), ("project", "tenant-a")];
    let refused =
        browser.fill("/login", "/login", &wrong).await.has(401).says("wrong user name or password");
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

    let tokens = |given: &ConsoleFixture| {
        given.cloud.count(|call| call.method == "DELETE" && call.path.ends_with("/v3/auth/tokens"))
    };
    let revoked = tokens(&given);
    let stale = browser.cookie.clone();
    assert_eq!(browser.fill("/clusters", "/logout", &[]).await.leads(), "/login");
    assert_eq!(tokens(&given), revoked + 1, "the token was revoked");
    browser.cookie = stale;
    assert!(browser.get("/clusters").await.leads().starts_with("/login"));
}

#[tokio::test]
async fn a_user_can_switch_projects_and_log_out_revokes_all_tokens() {
    let given = ConsoleFixture::start(Auth::Keystone).await;
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
    assert_eq!(tokens(), revoked + 2, "both tokens were revoked");
}

#[tokio::test]
async fn a_user_can_log_in_with_a_password_of_the_services() {
    let given = ConsoleFixture::start(Auth::HttpBasic).await;
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
async fn a_live_page_is_told_when_its_session_ends() {
    let given = ConsoleFixture::start_with(Auth::HttpBasic, "sessions = { longest = '3s' }").await;
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
async fn without_passwords_only_loopback_host_names_are_answered() {
    let given = ConsoleFixture::start(Auth::None).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |host: &str| client.get(&given.url).header("host", host.to_owned()).send();
    assert_eq!(ask("localhost:1").await.unwrap().status(), 200);
    assert_eq!(ask("evil.example").await.unwrap().status(), 421);
}

#[tokio::test]
async fn a_service_that_is_down_is_named_and_the_rest_is_shown() {
    let given = ConsoleFixture::start_with(Auth::None, "").await;
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

#[tokio::test]
async fn logging_in_leads_to_no_other_host_and_never_fails() {
    let given = ConsoleFixture::start(Auth::HttpBasic).await;
    for (next, leads) in [
        ("/nodes?state=active", "/nodes?state=active"),
        ("/\t/evil.example", "/"),
        ("/\n/evil.example", "/"),
        ("/\\evil.example", "/"),
        ("//evil.example", "/"),
        ("/\0", "/"),
        ("/nodes\u{1}", "/"),
        ("https://evil.example/", "/"),
        ("/nothing", "/"),
    ] {
        let mut browser = given.browser();
        let query: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
        let page = format!("/login?next={query}");
        let form =
            browser.get(&page).await.has(200).says(&format!("name=\"next\" value=\"{leads}\""));
        let token = form.token();
        let fields = [
            ("token", token.as_str()),
            ("user", "alice"),
            ("password", "a secret"),
            ("next", next),
        ];
        assert_eq!(browser.post("/login", &fields).await.leads(), leads, "{next:?}");
        assert_eq!(browser.get(&page).await.leads(), leads, "{next:?}, of who is logged in");
    }
}

#[tokio::test]
async fn wrong_passwords_are_rate_limited() {
    let given = ConsoleFixture::start_with(Auth::Keystone, "guesses_per_minute = 6").await;
    let shown = || {
        let is_log_in =
            |method: &str, path: &str| method == "POST" && path.ends_with("/v3/auth/tokens");
        given.cloud.count(|call| is_log_in(&call.method.to_string(), &call.path))
    };
    let before = shown();
    let mut guesses: FuturesUnordered<_> = (0..40)
        .map(|number| {
            let mut browser = given.browser();
            async move {
                let password = format!("guess {number}");
                let wrong =
                    [("user", "alice"), ("password", password.as_str()), ("project", "tenant-a")];
                browser.fill("/login", "/login", &wrong).await
            }
        })
        .collect();
    let (mut refused, mut wrong) = (0, 0);
    while refused < 24 || wrong == 0 {
        let answer = guesses.next().await.unwrap();
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            let seconds: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
            assert!(seconds > 0);
            answer.says("retry later");
            refused += 1;
        } else {
            answer.has(401);
            wrong += 1;
        }
    }
    // The guesses that still wait are cancelled.
    drop(guesses);
    let tried = shown() - before;
    assert!((1..=16).contains(&tried), "Keystone was shown {tried} of 40 guesses");

    let who = [("user", "bob"), ("password", "bob-secret"), ("project", "tenant-a")];
    given.cloud.add_user("bob", "bob-secret", "tenant-a");
    let mut elsewhere = given.browser_at(Ipv4Addr::new(127, 0, 0, 2));
    assert_eq!(elsewhere.fill("/login", "/login", &who).await.leads(), "/");
    let mut beside = given.browser();
    assert_eq!(
        beside.fill("/login", "/login", &who).await.leads(),
        "/",
        "another name from that address"
    );
}

#[tokio::test]
async fn overlong_names_and_passwords_are_not_sent_to_keystone() {
    let given = ConsoleFixture::start(Auth::Keystone).await;
    let mut browser = given.browser();
    let shown = given.cloud.count(|call| call.path.ends_with("/v3/auth/tokens"));
    let long = "x".repeat(5000);
    for name in ["user", "password", "project", "domain"] {
        let mut fields = vec![("user", "alice"), ("password", "alice-secret")];
        fields.retain(|(field, _)| *field != name);
        fields.push((name, &long));
        let refused = browser.fill("/login", "/login", &fields).await.has(400);
        refused.says(&format!("{name}: must not be longer than"));
    }
    let asked = given.cloud.count(|call| call.path.ends_with("/v3/auth/tokens"));
    assert_eq!(asked, shown, "Keystone was not asked");
}

/// Reads a stream to its end. Returns the last data before the end.
async fn last_words(stream: &mut Stream) -> String {
    let mut last = String::new();
    while let Some((name, page)) = stream.next().await {
        if name == "over" {
            return last;
        }
        last = page;
    }
    panic!("the stream ended without a word: {last}");
}

#[tokio::test]
async fn one_user_cannot_take_all_live_pages() {
    let more = "live_pages = 4\nlive_pages_of_an_account = 3\nlive_pages_of_a_session = 2";
    let given = ConsoleFixture::start_with(Auth::HttpBasic, more).await;
    let log_in = async || {
        let mut browser = given.browser();
        let who = [("user", "alice"), ("password", "a secret")];
        assert_eq!(browser.fill("/login", "/login", &who).await.leads(), "/");
        browser
    };
    let (mut first, mut second) = (log_in().await, log_in().await);
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = first.follow("/nodes").await;
        assert_eq!(stream.next().await.unwrap().0, "live");
        streams.push(stream);
    }
    let reported = last_words(&mut streams[0]).await;
    assert!(reported.contains("no longer updated"), "{reported}");
    for _ in 0..2 {
        let mut stream = second.follow("/nodes").await;
        assert_eq!(stream.next().await.unwrap().0, "live");
        streams.push(stream);
    }
    last_words(&mut streams[1]).await;
    // A freed place can be used by another page.
    drop(streams);
    first.follow("/nodes").await.until("No matching nodes").await;
}

#[tokio::test]
async fn without_accounts_one_browser_cannot_take_all_live_pages() {
    let more = "live_pages = 3\nlive_pages_of_a_session = 3";
    let given = ConsoleFixture::start_with(Auth::None, more).await;
    let (mut greedy, mut other) = (given.browser(), given.browser());
    greedy.get("/nodes").await.has(200);
    other.get("/nodes").await.has(200);
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = greedy.follow("/nodes").await;
        assert_eq!(stream.next().await.unwrap().0, "live");
        streams.push(stream);
    }
    other.follow("/nodes").await.until("No matching nodes").await;
    last_words(&mut streams[0]).await;
}
