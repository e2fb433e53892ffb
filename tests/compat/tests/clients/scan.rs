//! Scans both services with schemathesis against their own documents: no server error, and no undocumented answer.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use compat::wire::Request;
use compat::{Cloud, Service, python};
use serde_json::{Value, json};

/// Requests for each operation, besides those that schemathesis makes for every limit in the document. Nothing else limits a scan: with a
/// time limit, the number of requests would depend on the machine.
const EXAMPLES: &str = "10";
/// A fixed seed gives the same requests in every run.
const SEED: &str = "1";

/// The argon2id hash of "password".
const HASH: &str =
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

/// Ann's credentials.
const ANN: &str = "Basic YW5uOnBhc3N3b3Jk";

fn proven(request: Request, proof: Option<&str>) -> Request {
    match proof {
        Some(proof) => request.header("Authorization", proof),
        None => request,
    }
}

/// The service to scan, and the parts of each request.
struct Scan<'a> {
    service: &'a Service,
    version: &'a str,
    /// Names of existing objects, by the parameter of a path.
    there: Value,
    /// The `Authorization` header; `None` without authentication.
    proof: Option<&'a str>,
}

impl Scan<'_> {
    /// Fails unless every operation was tried, and every answer was documented.
    #[track_caller]
    fn run(&self) {
        let folder = tempfile::tempdir().expect("a folder");
        let (config, report) = (folder.path().join("scan.toml"), folder.path().join("report.json"));
        let named = |(name, value): (&String, &Value)| format!("'path.{name}' = {value}\n");
        let parameters: String = self.there.as_object().into_iter().flatten().map(named).collect();
        fs::write(&config, format!("[parameters]\n{parameters}")).expect("a file");
        let mut command = Command::new(python::tool("scan-requirements.txt", "st"));
        command.arg("--config-file").arg(&config).args(["--no-color", "run"]);
        command.arg(format!("{}/openapi.json", self.service.url));
        command.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"]);
        command.args(["--max-examples", EXAMPLES, "--seed", SEED, "--header", self.version]);
        command.args(["--request-timeout", "20", "--report-json-path"]);
        command.arg(&report).current_dir(folder.path()).stdin(Stdio::null());
        if let Some(proof) = self.proof {
            command.args(["--header", &format!("Authorization: {proof}")]);
        }
        let ran = command.output().expect("schemathesis can be started");
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
        let report = fs::read(&report).expect("schemathesis reports");
        let report: Value = serde_json::from_slice(&report).expect("it is JSON");
        // The document's own operation was used for reading, and is not tried.
        let described = self.described() - 1;
        assert_eq!(report["operations"]["tested"], json!(described), "{said}");
    }

    /// The number of operations in the document; every route has one.
    #[track_caller]
    fn described(&self) -> usize {
        let get = |path: &str| {
            proven(Request::new("GET", path), self.proof).send(&self.service.url).json()
        };
        let (document, policy) = (get("/openapi.json"), get("/bedplate/v1/policy"));
        let paths = document["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().expect("an item").keys();
            methods.map(move |method| (method.to_uppercase(), path.clone()))
        });
        let operations: BTreeSet<(String, String)> = operations.collect();
        let text = |row: &Value, key: &str| row[key].as_str().expect("text").to_owned();
        let rows = policy["policy"].as_array().expect("a table").iter();
        let rows: BTreeSet<_> = rows.map(|row| (text(row, "method"), text(row, "path"))).collect();
        assert_eq!(operations, rows, "each route is described");
        operations.len()
    }
}

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// The settings below `[api]`: Ann and her password.
fn htpasswd(folder: &tempfile::TempDir) -> String {
    let file = folder.path().join("htpasswd");
    fs::write(&file, format!("ann:{HASH}\n")).expect("a file");
    format!("auth = 'http_basic'\nhtpasswd = {file:?}\n")
}

#[track_caller]
fn scan_machines(service: &Service, proof: Option<&str>) {
    let send = |method: &str, path: &str, body: Value| {
        let request = Request::new(method, path).version("latest").json(&body);
        proven(request, proof).send(&service.url)
    };
    send("POST", "/v1/nodes", json!({"driver": "fake-hardware", "name": "n"})).expect(201);
    let machine = json!({"name": "m", "position": 1, "driver": "fake-hardware"});
    send("POST", "/bedplate/v1/racks", json!({"name": "r", "machines": [machine]})).expect(200);
    let there = json!({"node": "n", "rack": "r", "driver": "fake-hardware"});
    let version = "X-OpenStack-Ironic-API-Version: latest";
    Scan { service, version, there, proof }.run();
}

#[track_caller]
fn scan_clusters(service: &Service, proof: Option<&str>) {
    let send = |path: &str, body: Value| {
        proven(Request::new("POST", path).json(&body), proof).send(&service.url)
    };
    let template = json!({"name": "t", "image_id": "fcos", "coe": "kubernetes", "flavor_id": "m1.large",
                          "external_network_id": "public"});
    send("/v1/clustertemplates", template).expect(201);
    send("/v1/clusters", json!({"name": "c", "cluster_template_id": "t"})).expect(202);
    let there = json!({"cluster": "c", "template": "t", "nodegroup": "default-worker"});
    let version = "OpenStack-API-Version: container-infra latest";
    Scan { service, version, there, proof }.run();
}

#[test]
fn baremetald_matches_its_document_without_authentication() {
    scan_machines(&Service::machines_with(""), None);
}

#[test]
fn baremetald_matches_its_document_with_passwords() {
    let folder = tempfile::tempdir().expect("a folder");
    scan_machines(&Service::machines_with(&htpasswd(&folder)), Some(ANN));
}

#[test]
fn clusterd_matches_its_document_without_authentication() {
    let cloud = Cloud::start();
    let file = cloud.clouds_yaml();
    let tables = format!("[cloud]\nclouds_yaml = {file:?}\nname = 'clusterd'\n");
    scan_clusters(&Service::clusters_with(&tables), None);
}

#[test]
fn clusterd_matches_its_document_with_passwords() {
    let (cloud, folder) = (Cloud::start(), tempfile::tempdir().expect("a folder"));
    let (users, file) = (htpasswd(&folder), cloud.clouds_yaml());
    let tables = format!("{users}[cloud]\nclouds_yaml = {file:?}\nname = 'clusterd'\n");
    scan_clusters(&Service::clusters_with(&tables), Some(ANN));
}
