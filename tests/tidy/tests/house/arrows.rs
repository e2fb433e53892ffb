//! Checks the allowed directions of dependencies: tests, then services, then drivers.

use std::collections::HashMap;

use tidy::{Crate, Kind, Layer, assert_none, crates, graph, text_files};

/// Crates that compute without I/O, clock or randomness.
const PURE: [&str; 16] = [
    "agent-protocol",
    "audit",
    "baremetal-core",
    "cloud-event",
    "cluster-addons",
    "cluster-bootstrap",
    "cluster-core",
    "decision",
    "dhcp",
    "hardware",
    "ignition",
    "lease",
    "rack-manifest",
    "readable",
    "tftp",
    "trace-context",
];

/// Crates that a pure crate must not link, because they allow more than computing.
const IMPURE: [&str; 8] =
    ["axum", "hyper", "rand", "reqwest", "rusqlite", "socket2", "sqlx", "tokio"];

/// Crates with a restricted set of users, so that there is a single place to look.
const RESTRICTED_USERS: [(&str, &[&str]); 6] = [
    ("rusqlite", &["database"]),
    ("sqlx", &["database"]),
    (
        "database",
        &[
            "audit-store",
            "baremetal-store",
            "cluster-store",
            "console-store",
            "notices",
            "replicas",
        ],
    ),
    ("redfish", &["baremetal-conductor"]),
    ("ipmi", &["baremetal-conductor"]),
    ("rfb", &["baremetal-conductor"]),
];

/// The functions that the `.clippy.toml` of a pure crate must forbid.
const FORBIDDEN: [&str; 3] =
    ["std::time::Instant::now", "std::time::SystemTime::now", "std::env::var"];

/// The reason why `from` must not depend on `to`; `None` if it may.
fn objection(from: &Crate, to: &Crate, kind: Kind) -> Option<&'static str> {
    if from.is_emulator() && to.layer != Layer::Tests {
        return Some("an emulator with our code in it would share our mistakes");
    }
    match (from.layer, to.layer, kind) {
        (Layer::Tests, _, _) => None,
        (_, Layer::Tests, Kind::Dev)
            if to.is_emulator() || ["contract", "left", "peers"].contains(&to.folder.as_str()) =>
        {
            None
        }
        (_, Layer::Tests, Kind::Dev) => {
            Some("of tests/, only emulators, `contract`, `left` and `peers` serve others' tests")
        }
        (_, Layer::Tests, Kind::Normal) => Some("what is run does not need what tries it"),
        (Layer::Drivers, Layer::Services, _) => Some("a driver knows no service"),
        (Layer::Drivers, Layer::Drivers, _) => None,
        (Layer::Services, Layer::Services | Layer::Drivers, _) => None,
    }
}

#[test]
fn dependencies_point_one_way() {
    let crates = crates();
    let by_name: HashMap<&str, &Crate> =
        crates.iter().map(|one| (one.folder.as_str(), one)).collect();
    let wrong = crates.iter().flat_map(|from| {
        from.dependencies.iter().filter_map(|dependency| {
            let to = by_name.get(dependency.name.as_str())?;
            let why = objection(from, to, dependency.kind)?;
            Some(format!("{} depends on {}: {why}", from.path(), to.path()))
        })
    });
    assert_none("dependencies that point the wrong way", wrong);
}

#[test]
fn pure_crates_link_no_impure_crate() {
    let graph = graph();
    let wrong = PURE.iter().flat_map(|pure| {
        let linked = graph.linked_with(pure);
        let impure = IMPURE.iter().filter(move |name| linked.contains(**name));
        impure.map(move |name| format!("{pure} links {name}"))
    });
    assert_none("pure crates that could act", wrong);
}

#[test]
fn pure_crates_forbid_clocks_and_the_environment() {
    let crates = crates();
    let pure = crates.iter().filter(|one| PURE.contains(&one.folder.as_str()));
    let wrong = pure.flat_map(|one| {
        let text = std::fs::read_to_string(one.file(".clippy.toml")).unwrap_or_default();
        let lints: toml::Table = text.parse().expect("a .clippy.toml is TOML");
        let methods = lints.get("disallowed-methods").and_then(toml::Value::as_array);
        let paths = methods.into_iter().flatten().filter_map(|method| method.get("path")?.as_str());
        let paths: Vec<String> = paths.map(str::to_owned).collect();
        let missing = FORBIDDEN.iter().filter(move |name| !paths.iter().any(|path| path == *name));
        missing.map(|name| format!("{}/.clippy.toml does not forbid {name}", one.path()))
    });
    assert_none("pure crates that may look at the world", wrong);
}

#[test]
fn sql_and_bmcs_have_few_users() {
    let crates = crates();
    let run = crates.iter().filter(|one| one.layer != Layer::Tests);
    let wrong = run.flat_map(|one| {
        let taken = |name: &str| RESTRICTED_USERS.iter().find(|(what, _)| *what == name);
        let linked = one.dependencies.iter().filter(|it| it.kind == Kind::Normal);
        let taken = linked.filter_map(move |it| taken(&it.name));
        let others = taken.filter(|(_, users)| !users.contains(&one.folder.as_str()));
        others.map(|(what, users)| {
            format!("{} uses {what}, which is for {}", one.path(), users.join(" and "))
        })
    });
    assert_none("crates that use what is another's", wrong);
}

#[test]
fn no_service_or_driver_starts_a_program() {
    let starts = ["process::Command", "tokio::process", "process::{"];
    // The purpose of `bedplate dev` is to start programs, and `bedplate sim` becomes the program `sim`. The agent starts mdadm, because the md
    // driver needs ioctls, and mke2fs.
    let may = [
        "services/bedplate/src/dev/",
        "services/bedplate/src/sim.rs",
        "services/agent/src/image/mke2fs.rs",
        "services/agent/src/raid/mdadm.rs",
    ];
    let sources = text_files().into_iter().filter(|file| {
        let run = file.path.starts_with("drivers/") || file.path.starts_with("services/");
        let source = file.path.ends_with(".rs") && file.path.contains("/src/");
        run && source && !may.iter().any(|place| file.path.starts_with(place))
    });
    let wrong = sources.filter(|file| starts.iter().any(|word| file.text.contains(word)));
    assert_none("sources that start programs", wrong.map(|file| file.path));
}

#[test]
fn every_core_is_pure() {
    let cores = crates().into_iter().filter(|one| one.folder.ends_with("-core"));
    let wrong = cores.filter(|one| !PURE.contains(&one.folder.as_str()));
    assert_none("cores that nobody keeps pure", wrong.map(|one| one.path()));
}

#[test]
fn every_api_makes_its_routes_with_routes() {
    // `Routes` makes a route together with its row in the policy table; a route made by other means has no row.
    let around = ["axum::routing", "MethodRouter", ".route(", ".route_service(", ".nest("];
    let sources = text_files().into_iter().filter(|file| {
        let api = ["services/baremetal-api/src/", "services/cluster-api/src/"];
        api.iter().any(|folder| file.path.starts_with(folder))
    });
    let wrong = sources.filter(|file| around.iter().any(|word| file.text.contains(word)));
    assert_none("sources that make routes without `Routes`", wrong.map(|file| file.path));
}
