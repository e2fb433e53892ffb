//! Debian's Prometheus with the files of `deploy/monitoring`: it scrapes a daemon, and alerts fire.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use compat::Service;
use compat::wait::wait_for;
use compat::wire::Request;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The folder with the files for Prometheus and Grafana.
const MONITORING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/monitoring");
const OPERATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/docs/operations.md");
const PATIENCE: Duration = Duration::from_secs(60);
/// A daemon with metrics that gives up a BMC at once.
const TABLES: &str = "[metrics]\nlisten = '127.0.0.1:0'\n[timeouts]\nbmc = '1s'\n[bmc]\nnetworks = ['127.0.0.0/8']\n";

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(MONITORING).join(name)).expect("the file is there")
}

/// Whether Prometheus is installed; otherwise the test is skipped.
fn is_there(test: &str) -> bool {
    let is_there = peers::installed("prometheus") && peers::installed("promtool");
    if !is_there {
        peers::skip(test, "Debian's package prometheus is not installed");
    }
    is_there
}

/// A server that scrapes one daemon several times in a second. It ends with the test.
struct Prometheus {
    process: Child,
    url: String,
    folder: TempDir,
}

impl Prometheus {
    /// Starts a server with the rules and the configuration of the repository, without the waits, because a test has less patience than a
    /// site.
    #[track_caller]
    fn start(target: &str) -> Prometheus {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let rules = file("rules.yml");
        let at_once = rules.lines().filter(|line| !line.trim_start().starts_with("for: "));
        let at_once: Vec<&str> = at_once.collect();
        let config = file("prometheus.yml").replace("15s", "200ms");
        let config = config.replace("127.0.0.1:9638", target);
        let is_other = |line: &&str| line.contains(":9639") || line.contains(":9640");
        let config: Vec<&str> = config.lines().filter(|line| !is_other(line)).collect();
        let write = |name: &str, text: String| {
            fs::write(folder.path().join(name), text).expect("a file can be written");
        };
        write("rules.yml", at_once.join("\n"));
        write("prometheus.yml", config.join("\n"));
        let log = fs::File::create(folder.path().join("log")).expect("a file can be written");
        let process = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("Prometheus can be started");
        // From here on, the process ends with this value.
        let mut started = Prometheus { process, url: String::new(), folder };
        started.url = wait_for("Prometheus to listen", PATIENCE, || started.listens_at());
        started
    }

    /// Returns the URL that the server has printed, once it listens.
    fn listens_at(&self) -> Option<String> {
        let said = fs::read_to_string(self.folder.path().join("log")).ok()?;
        let line = said.lines().find(|line| line.contains("\"Listening on\""))?;
        let (_, address) = line.rsplit_once("address=")?;
        Some(format!("http://{}", address.trim()))
    }

    /// Evaluates an expression. Returns its series; `None` while the server starts.
    fn query(&self, expression: &str) -> Option<Vec<Value>> {
        let path = format!("/api/v1/query?query={}", encoded(expression));
        let answer = Request::new("GET", &path).send(&self.url);
        if answer.status == 503 {
            return None;
        }
        let answer = answer.expect(200).json();
        answer["data"]["result"].as_array().cloned()
    }

    /// Waits until an alert fires. Returns its labels.
    #[track_caller]
    fn firing(&self, alert: &str) -> Value {
        wait_for(alert, PATIENCE, || {
            let series =
                self.query(&format!("ALERTS{{alertname={alert:?},alertstate=\"firing\"}}"));
            series?.first().map(|it| it["metric"].clone())
        })
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Encodes text for the query of a URL.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            plain if plain.is_ascii_alphanumeric() => encoded.push(char::from(plain)),
            other => write!(encoded, "%{other:02X}").expect("a string takes all text"),
        }
        encoded
    })
}

/// Returns the expressions of all panels of the dashboard, as Grafana sends them when everything is chosen.
fn panels() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&file("dashboard.json")).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let expressions = targets.map(|it| it["expr"].as_str().expect("it has an expression"));
    expressions.map(|it| it.replace("$__rate_interval", "1m").replace("$instance", ".*")).collect()
}

#[test]
fn rules_and_dashboards_use_documented_metrics_only() {
    let table = fs::read_to_string(OPERATIONS).expect("the document is there");
    let texts = [file("rules.yml"), file("rules.test.yml"), panels().join("\n")];
    let ends_word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let words = texts.iter().flat_map(|text| text.split(ends_word));
    let used: BTreeSet<&str> = words
        .filter(|word| {
            ["bedplate_", "process_", "baremetal_"].iter().any(|it| word.starts_with(it))
        })
        // The dashboard finds temperatures by the beginning of their names.
        .filter(|word| !word.ends_with('_'))
        .collect();
    assert!(used.len() > 20, "{used:?}");
    let is_listed = |name: &str| {
        let family = ["_bucket", "_count", "_sum"].iter().find_map(|it| name.strip_suffix(*it));
        [Some(name), family].into_iter().flatten().any(|it| table.contains(&format!("| `{it}` |")))
    };
    let unknown: Vec<&&str> = used.iter().filter(|name| !is_listed(name)).collect();
    assert!(unknown.is_empty(), "not in operations.md: {unknown:?}");
}

#[test]
fn each_alert_fires_for_its_cause_alone() {
    if !is_there("each_alert_fires_for_its_cause_alone") {
        return;
    }
    for arguments in [
        ["check", "rules", "rules.yml"],
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "rules.test.yml"],
    ] {
        let run = Command::new("promtool").args(arguments).current_dir(MONITORING).output();
        let run = run.expect("promtool can be started");
        let said = [run.stdout, run.stderr].concat();
        assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
    }
    let (rules, tests) = (file("rules.yml"), file("rules.test.yml"));
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} has no test");
    }
}

#[test]
fn prometheus_scrapes_a_daemon_and_alerts_when_it_is_gone() {
    if !is_there("prometheus_scrapes_a_daemon_and_alerts_when_it_is_gone") {
        return;
    }
    let service = Service::machines_with(TABLES);
    let target = service.listener("metrics");
    let prometheus = Prometheus::start(&target);
    let build = wait_for("a scrape", PATIENCE, || {
        prometheus.query("bedplate_build_info")?.first().map(|it| it["metric"].clone())
    });
    assert_eq!((&build["daemon"], &build["job"]), (&json!("baremetald"), &json!("bedplate")));

    // Nothing answers at this address, so the verification fails.
    let bmc = json!({
        "redfish_address": "http://127.0.0.1:9", "redfish_username": "u", "redfish_password": "p",
    });
    let node = json!({"driver": "redfish", "driver_info": bmc});
    let node = Request::new("POST", "/v1/nodes").version("1.80").json(&node).send(&service.url);
    let node = node.expect(201).json()["uuid"].as_str().expect("a node has a UUID").to_owned();
    let verb = Request::new("PUT", &format!("/v1/nodes/{node}/states/provision"));
    let verb = verb.version("1.80").json(&json!({"target": "manage"}));
    verb.send(&service.url).expect(202);
    let failed = prometheus.firing("BedplateNodesFailed");
    assert_eq!(failed["provision_state"], "enroll");
    let series = |expression: &str| prometheus.query(expression).unwrap_or_default();
    let unreachable = "bedplate_bmc_calls_total{driver=\"redfish\",outcome=\"unreachable\"}";
    assert_ne!(series(unreachable), Vec::<Value>::new());
    for expression in panels() {
        assert!(prometheus.query(&expression).is_some(), "{expression}");
    }
    assert_eq!(series("ALERTS{alertname=\"BedplateDown\"}"), Vec::<Value>::new());

    drop(service);
    let down = prometheus.firing("BedplateDown");
    assert_eq!((&down["instance"], &down["severity"]), (&json!(target), &json!("critical")));
}
