//! Tests of the confirmation before data is erased or deleted: a terminal asks for a name, and a pipe needs `--yes`.

use reqwest::Client;
use rusqlite::Connection;

use crate::fixture::Fixture;
use crate::terminal::Terminal;

const RACK: &str = "rack: r1\nmachines:\n\
    - {name: r1u1, mac: \"52:54:00:de:00:01\", bmc: {type: fake}}\n\
    - {name: r1u2, mac: \"52:54:00:de:00:02\", bmc: {type: fake}}\n";

impl Fixture {
    /// Returns the status with which baremetald answers a GET request for the path.
    async fn answers(&self, path: &str) -> u16 {
        let client = Client::builder().no_proxy().build().unwrap();
        let request = client.get(format!("{}{path}", self.machines));
        let request = request.header("X-OpenStack-Ironic-API-Version", "1.95");
        request.send().await.unwrap().status().as_u16()
    }

    async fn rack(&self) {
        std::fs::write(self.folder.path().join("r1.yaml"), RACK).unwrap();
        self.run(&["rack", "enroll", "r1.yaml"]).await.done();
    }
}

#[tokio::test]
async fn a_pipe_needs_yes_to_erase_or_delete() {
    let given = Fixture::start().await;
    given.rack().await;
    let up = ["rack", "up", "r1", "--reach", "available", "--detach"];
    let words = ["the disks of 2 machines of rack r1 are erased", "--yes"];
    given.run(&up).await.failed_with(2, &words);
    let shown = given.run(&["rack", "status", "r1", "-o", "json"]).await.done();
    assert!(shown.contains("\"goal\": null"), "nothing was asked of the rack: {shown}");
    given.run(&["rack", "up", "r1", "--reach", "inspected", "--timeout", "1m"]).await;

    let node = ["node", "delete", "r1u1"];
    given.run(&node).await.failed_with(2, &["node r1u1 is deleted", "--yes"]);
    assert_eq!(given.answers("/v1/nodes/r1u1").await, 200);
    let reported = given.run(&[&node[..], &["--yes"]].concat()).await.done();
    assert_eq!(reported, "node r1u1 is deleted\n");
    assert_eq!(given.answers("/v1/nodes/r1u1").await, 404);
    given.run(&[&node[..], &["--yes"]].concat()).await.failed_with(4, &["`bedplate node list`"]);

    given.run(&["rack", "delete", "r1", "--yes"]).await.failed_with(1, &["1 machines", "--nodes"]);
    let rack = ["rack", "delete", "r1", "--nodes"];
    given.run(&rack).await.failed_with(2, &["--yes"]);
    assert_eq!(given.answers("/v1/nodes/r1u2").await, 200);
    let reported = given.run(&[&rack[..], &["--yes"]].concat()).await.done();
    assert_eq!(reported, "node r1u2 is deleted\nrack r1 is deleted\n");
    assert_eq!(given.answers("/v1/nodes/r1u2").await, 404);
    assert_eq!(given.answers("/bedplate/v1/racks/r1").await, 404);
}

#[tokio::test]
async fn a_terminal_asks_for_the_name_before_a_deletion() {
    let given = Fixture::start().await;
    given.node("n1").await;
    let Some(terminal) = Terminal::start(&given).await else { return };
    terminal.types("clear; $bedplate node delete n1; echo status $?").await;
    terminal.shows("question", |screen| screen.contains("Type \"n1\" to confirm:")).await;
    terminal.types("y").await;
    let screen = terminal.shows("the end", |screen| screen.contains("status 1")).await;
    assert!(screen.contains("nothing was changed"), "{screen}");
    assert_eq!(given.answers("/v1/nodes/n1").await, 200);
    terminal.types("clear; $bedplate node delete n1; echo status $?").await;
    terminal.shows("question", |screen| screen.contains("Type \"n1\" to confirm:")).await;
    terminal.types("n1").await;
    let screen = terminal.shows("the end", |screen| screen.contains("status 0")).await;
    assert!(screen.contains("node n1 is deleted"), "{screen}");
    assert_eq!(given.answers("/v1/nodes/n1").await, 404);
}

#[tokio::test]
async fn an_unknown_machine_is_listed_and_dismissed_or_accepted() {
    let given = Fixture::start().await;
    let file = given.folder.path().join("baremetald/baremetal.db");
    let database = Connection::open(file).unwrap();
    for id in ["52:54:00:de:00:09", "52:54:00:de:00:0a"] {
        let insert = "INSERT INTO discoveries (id, first_seen_at, last_seen_at) VALUES (?1, 1, 2)";
        database.execute(insert, [id]).unwrap();
    }
    let listed = given.run(&["discovery", "list"]).await.done();
    assert!(listed.contains("52:54:00:de:00:09"), "{listed}");
    given.run(&["discovery", "dismiss", "52:54:00:de:00:09"]).await.done();
    let listed = given.run(&["discovery", "list"]).await.done();
    assert!(!listed.contains("52:54:00:de:00:09"), "{listed}");
    given.run(&["discovery", "dismiss", "nonsense"]).await.failed_with(1, &["id:"]);

    let password = given.folder.path().join("bmc.password");
    std::fs::write(&password, "hunter2\n").unwrap();
    let accept = [
        "discovery",
        "accept",
        "52:54:00:de:00:0a",
        "--name",
        "found",
        "--driver",
        "redfish",
        "--bmc-address",
        "https://127.0.0.9",
        "--bmc-user",
        "admin",
        "--bmc-password-file",
        password.to_str().unwrap(),
        "--resource-class",
        "large",
    ];
    let said = given.run(&accept).await.done();
    assert!(said.contains("52:54:00:de:00:0a is now node found"), "{said}");
    let again = given.run(&accept).await.done();
    assert!(again.contains("was accepted before: node found"), "{again}");
    let listed = given.run(&["discovery", "list"]).await.done();
    assert!(!listed.contains("52:54:00:de:00:0a"), "{listed}");
    let nodes = given.run(&["node", "list"]).await.done();
    assert!(nodes.contains("found"), "{nodes}");
}
