//! Tests of `bedplate audit list` and `bedplate audit verify`.

use reqwest::Client;
use rusqlite::Connection;
use tokio::process::Command;

use crate::fixture::Clusterd;

/// The output and the exit status of one run of `bedplate`.
struct CommandOutput {
    status: i32,
    out: String,
    error: String,
}

impl Clusterd {
    /// Requests the deletion of a template that does not exist, which adds a row to the audit trail.
    async fn ask(&self) {
        let client = Client::builder().no_proxy().build().unwrap();
        let answer = client.delete(format!("{}/v1/clustertemplates/t1", self.url)).send().await;
        assert_eq!(answer.unwrap().status(), 404);
    }

    async fn audit(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bedplate"));
        command.env_clear().args(["--clusters-url", &self.url, "audit"]).args(arguments);
        let output = command.output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandOutput {
            status: output.status.code().unwrap(),
            out: text(output.stdout),
            error: text(output.stderr),
        }
    }

    async fn verified(&self) -> String {
        let said = self.audit(&["verify", "clusters"]).await;
        assert_eq!(said.status, 0, "{}", said.error);
        said.out.trim_end().rsplit(' ').next().unwrap().to_owned()
    }
}

#[tokio::test]
async fn audit_list_shows_the_requests_of_the_trail() {
    let given = Clusterd::start().await;
    given.ask().await;
    let said = given.audit(&["list", "clusters"]).await;
    assert_eq!(said.status, 0, "{}", said.error);
    let line = said.out.lines().last().unwrap();
    for word in ["1", "clusters", "127.0.0.1", "template=t1", "404"] {
        assert!(line.contains(word), "{word} in {line}");
    }
    assert_eq!(said.out.lines().count(), 2, "{}", said.out);
    let said = given.audit(&["--output", "json", "list", "clusters", "--by", "nobody"]).await;
    let listed: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(listed, serde_json::json!({"clusters": []}));
    given.ask().await;
    given.ask().await;
    for (limit, requests) in [("1", 1), ("2", 2), ("9", 3)] {
        let said = given.audit(&["list", "clusters", "--limit", limit]).await;
        assert_eq!(said.out.lines().count(), 1 + requests, "of --limit {limit}: {}", said.out);
    }
    let said = given.audit(&["list", "clusters", "--limit", "0"]).await;
    assert_eq!(said.status, 2, "{}", said.error);
    let said = given.audit(&["list", "clusters", "--since", "yesterday"]).await;
    assert_eq!(said.status, 1);
    assert!(said.error.contains("since: must be a time"), "{}", said.error);
}

#[tokio::test]
async fn a_changed_row_of_the_trail_is_found() {
    let given = Clusterd::start().await;
    given.ask().await;
    let head = given.verified().await;
    assert!(head.starts_with("2:"), "{head}");
    given.ask().await;
    given.verified().await;
    let known = given.audit(&["verify", "clusters", "--head", &head]).await;
    assert_eq!(known.status, 0, "{}", known.error);
    let other = format!("2:{}", "0".repeat(64));
    let said = given.audit(&["verify", "clusters", "--head", &other]).await;
    assert_eq!(said.status, 1);
    assert!(said.error.contains("row 2 was replaced"), "{}", said.error);
    let said = given.audit(&["verify", "--head", &head]).await;
    assert_eq!(said.status, 2, "{}", said.error);

    let around = Connection::open(given.state.path().join("clusterd.db")).unwrap();
    let change = "UPDATE audit SET user_name = 'mallory' WHERE number = 3";
    around.execute_batch(change).unwrap_err();
    for sql in ["DROP TRIGGER audit_is_not_changed", change] {
        around.execute_batch(sql).unwrap();
    }
    let said = given.audit(&["verify", "clusters"]).await;
    assert_eq!(said.status, 1);
    assert!(
        said.error.contains("the audit trail of clusters is broken: row 3 was changed"),
        "{}",
        said.error
    );
    let said = given.audit(&["--output", "json", "verify", "clusters"]).await;
    let verdict: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.status, &verdict["clusters"]["count"]), (1, &serde_json::json!(2)));
}
