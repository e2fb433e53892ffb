//! Two consoles on one PostgreSQL, as behind a load balancer.

use database::scratch::Scratch;

use crate::fixture::{Auth, Browser, ConsoleFixture};

/// Two consoles with more lines in `console.toml`, and their URLs; `None` without a PostgreSQL.
async fn two(more: &str) -> Option<(ConsoleFixture, [String; 2])> {
    let scratch = Scratch::postgres().await?;
    let more = format!("{more}\n[database]\nurl = '{}'\n", scratch.url);
    let mut given = ConsoleFixture::start_with(Auth::HttpBasic, &more).await;
    let urls = [given.url.clone(), given.another_console().await];
    Some((given, urls))
}

fn at(browser: &mut Browser, url: &str) {
    url.clone_into(&mut browser.url);
}

#[tokio::test]
async fn a_session_of_one_console_is_known_to_the_other() {
    let Some((given, [first, second])) = two("").await else { return };
    let mut browser = given.browser();
    let who = [("user", "alice"), ("password", "a secret")];
    // The form of one console is sent to the other.
    let token = browser.get("/login").await.has(200).token();
    at(&mut browser, &second);
    let fields = [("token", token.as_str()), who[0], who[1]];
    assert_eq!(browser.post("/login", &fields).await.leads(), "/");
    let cookie = browser.cookie.clone();
    at(&mut browser, &first);
    browser.get("/nodes").await.has(200).says("alice");
    assert_eq!(browser.fill("/nodes", "/logout", &[]).await.leads(), "/login");
    browser.cookie = cookie;
    at(&mut browser, &second);
    assert!(browser.get("/nodes").await.leads().starts_with("/login"));
}

#[tokio::test]
async fn wrong_passwords_count_at_all_consoles() {
    let Some((given, [_, second])) = two("guesses_per_minute = 1").await else { return };
    let mut browser = given.browser();
    let wrong = [("user", "alice"), ("password", "wrong")];
    for _ in 0..2 {
        browser.fill("/login", "/login", &wrong).await.has(401);
    }
    at(&mut browser, &second);
    browser.fill("/login", "/login", &wrong).await.has(429).says("too many wrong passwords");
}
