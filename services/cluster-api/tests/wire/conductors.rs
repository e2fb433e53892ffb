//! The conductors with their shares of the work. No conductor runs here.

use jiff::SignedDuration;

use crate::api::{Api, NEWEST};

/// The version of the programs of this workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[tokio::test]
async fn conductors_are_shown_with_their_shares() {
    let api = Api::start().await;
    let now: jiff::Timestamp = "2026-01-02T03:04:05.000006Z".parse().unwrap();
    let groups = [String::new()];
    api.store.conductors().touch("host-1", &groups, now).await.unwrap();
    let before = now - SignedDuration::from_mins(5);
    api.store.conductors().touch("host-2", &groups, before).await.unwrap();
    api.template("t", "").await;
    api.cluster("c", "").await;
    let one = |name: &str, state: &str, clusters: u32, seen: &str| {
        format!(
            r#"{{"hostname": "{name}", "state": "{state}", "version": "{VERSION}", "clusters": {clusters}, "machines": 0, "snapshots": 0,
                "drains": 0, "turns_of_others": 0, "last_seen_at": "{seen}"}}"#
        )
    };
    let alive = one("host-1", "working", 1, "2026-01-02T03:04:05.000006+00:00");
    let dead = one("host-2", "dead", 0, "2026-01-02T02:59:05.000006+00:00");
    let path = "/bedplate/v1/conductors";
    api.get(path).await.has(200).is(&format!(r#"{{"conductors": [{dead}, {alive}]}}"#));
    api.get(&format!("{path}/host-1")).await.has(200).is(&alive);
    api.get(&format!("{path}/zz")).await.refuses(404, "Conductor zz could not be found.");
    for method in ["PUT", "DELETE"] {
        let drain =
            async |name: &str| api.send(method, &format!("{path}/{name}/drain"), NEWEST, "").await;
        drain("zz").await.refuses(404, "Conductor zz could not be found.");
        let why = "a conductor whose database is SQLite has no other that takes its work";
        drain("host-1").await.refuses(409, why);
    }
}
