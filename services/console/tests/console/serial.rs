//! The serial console of a machine that echoes its input, and the page of a graphical console.

use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::json;
use websocket::{Message, UpgradeError};

use crate::fixture::{Auth, Browser, ConsoleFixture, Stream};

/// Creates a node with a console. Returns the path of its console page.
async fn node(given: &ConsoleFixture, interface: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = json!({"driver": "fake-hardware", "name": "n1", "console_interface": interface});
    let request = client.request(Method::POST, format!("{}/v1/nodes", given.machines));
    let request = request.header("x-openstack-ironic-api-version", "1.95").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 201);
    "/nodes/n1/console".to_owned()
}

/// Reads a stream until these words have come. Returns all data and the names of the events.
async fn until(stream: &mut Stream, words: &str) -> (String, Vec<String>) {
    let (mut shown, mut names) = (String::new(), Vec::new());
    while !shown.contains(words) {
        let (name, data) = stream.next().await.expect("the stream goes on");
        shown += &data;
        names.push(name);
    }
    (shown, names)
}

async fn follow(browser: &mut Browser) -> Stream {
    browser.stream("/live/console/n1").await
}

#[tokio::test]
async fn a_console_is_enabled_followed_typed_at_and_disabled() {
    let given = ConsoleFixture::start(Auth::None).await;
    let page = node(&given, "fake").await;
    let mut browser = given.browser();
    browser.get("/nodes/n1").await.has(200).says("href=\"/nodes/n1/console\"");
    browser.get(&page).await.has(200).says("The console is disabled");
    assert_eq!(browser.fill(&page, &page, &[("target", "on")]).await.leads(), page);
    let shown = browser.get(&page).await.has(200).says("sse-connect=\"/live/console/n1\"");
    let shown = shown.says("<pre class=\"screen\" role=\"log\"").says("name=\"text\"");
    assert!(!shown.text.contains("This is not a machine"), "nobody looked yet");

    let mut stream = follow(&mut browser).await;
    let (shown, names) = until(&mut stream, "it echoes what you type.").await;
    assert_eq!(names[0], "whole", "{shown}");
    assert!(shown.contains("sse-swap=\"lines\""), "{shown}");
    let input = format!("{page}/input");
    let typed = [("text", "<b>\u{1b}[1mls</b>"), ("key", "enter")];
    assert_eq!(browser.fill(&page, &input, &typed).await.leads(), page);
    let (shown, _) = until(&mut stream, "ls").await;
    assert!(shown.contains("&lt;b&gt;ls&lt;/b&gt;"), "{shown}");
    // The page shows the output in browsers without scripts too.
    browser.get(&page).await.has(200).says("This is not a machine").says("&lt;b&gt;ls&lt;/b&gt;");

    assert_eq!(browser.fill(&page, &page, &[("target", "off")]).await.leads(), page);
    let (shown, names) = until(&mut stream, "over").await;
    assert!(shown.contains("[the console was disabled]"), "{shown}");
    assert_eq!(names.last().map(String::as_str), Some("over"));
    assert!(stream.next().await.is_none(), "it has ended");
    browser.get(&page).await.has(200).says("The console is disabled");
    let mut stream = follow(&mut browser).await;
    until(&mut stream, "is not enabled").await;
}

#[tokio::test]
async fn input_works_without_scripts_and_a_script_gets_the_form_again() {
    let given = ConsoleFixture::start(Auth::None).await;
    let page = node(&given, "fake").await;
    let mut browser = given.browser();
    browser.fill(&page, &page, &[("target", "on")]).await.leads();
    let input = format!("{page}/input");
    browser.fill(&page, &input, &[("text", "uname"), ("key", "enter")]).await.leads();
    browser.until(&page, "uname").await;
    for key in ["interrupt", "escape"] {
        browser.fill(&page, &input, &[("key", key)]).await.leads();
    }
    browser.fill(&page, &input, &[("key", "reset")]).await.has(400).says("key: must be enter");
    let token = browser.get(&page).await.token();
    let fields = [("token", token.as_str()), ("text", "id"), ("key", "enter")];
    let form = browser.post_by_script(&input, &fields).await.has(200).says("<form id=\"typing\"");
    assert!(!form.text.contains("<html") && !form.text.contains("value=\"id\""), "{}", form.text);
    let forged = [("token", "x"), ("text", "id"), ("key", "enter")];
    browser.post(&input, &forged).await.has(403);
}

#[tokio::test]
async fn a_node_without_a_console_says_so() {
    let given = ConsoleFixture::start(Auth::None).await;
    let page = node(&given, "no-console").await;
    let mut browser = given.browser();
    let node = browser.get("/nodes/n1").await.has(200);
    assert!(!node.text.contains(&page), "{}", node.text);
    let shown = browser.get(&page).await.has(200).says("This node has no console");
    assert!(!shown.text.contains("id=\"enable\""));
    browser.fill(&page, &page, &[("target", "on")]).await.has(400).says("no-console");
}

#[tokio::test]
async fn a_user_without_a_session_cannot_follow_a_console() {
    let given = ConsoleFixture::start(Auth::HttpBasic).await;
    let mut browser = given.browser();
    for path in ["/nodes/n1/console", "/live/console/n1", "/live/screen/n1"] {
        let answer = browser.get(path).await;
        assert!([303, 401].contains(&answer.status.as_u16()), "{path}: {}", answer.status);
    }
}

#[tokio::test]
async fn a_graphical_console_has_a_screen_and_tells_why_it_is_not_shown() {
    let given = ConsoleFixture::start(Auth::None).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let info = json!({"redfish_address": "https://192.0.2.1", "vnc_address": "192.0.2.1"});
    let body = json!({
        "driver": "redfish", "name": "n1", "console_interface": "bmc-vnc", "driver_info": info,
    });
    let request = client.request(Method::POST, format!("{}/v1/nodes", given.machines));
    let request = request.header("x-openstack-ironic-api-version", "1.95").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 201);
    let (page, mut browser) = ("/nodes/n1/console", given.browser());
    browser.get("/nodes/n1").await.has(200).says("Graphical console");
    let shown = browser.get(page).await.has(200).says("The console is disabled");
    assert!(!shown.text.contains("<canvas"), "{}", shown.text);

    let open = async |origin: &str| {
        let request = client.get(format!("{}/live/screen/n1", given.url)).header("origin", origin);
        let (request, asked) = websocket::upgrade_request(request);
        asked.open(request.send().await.unwrap()).await
    };
    let refused = open("https://evil.example").await.unwrap_err();
    assert!(matches!(refused, UpgradeError::Refused(StatusCode::FORBIDDEN)), "{refused}");
    let mut socket = open(&given.url).await.unwrap();
    let Some(Ok(Message::Close(Some(why)))) = socket.next().await else {
        panic!("it is closed with a reason")
    };
    assert!(why.reason.contains("is not enabled"), "{}", why.reason);

    assert_eq!(browser.fill(page, page, &[("target", "on")]).await.leads(), page);
    let shown = browser.get(page).await.has(200).says("data-socket=\"/live/screen/n1\"");
    shown.says("screen.js");
}
