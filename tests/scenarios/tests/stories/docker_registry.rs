//! A machine is installed with images in Debian's docker-registry, whose authors wrote the OCI distribution specification.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use lab::{Lab, Machine};
use machine_emulator::Stage;
use rcgen::{CertificateParams, KeyPair};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Certificate, Client, Method, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use crate::oci::{choose, content, qcow2};
use crate::oci_registry::{
    EMPTY_CONFIG, INDEX, MANIFEST, PASSWORD, USER, bootable, digest, manifest_of,
};

/// The cost of bcrypt, the lowest possible.
const COST: u32 = 4;

/// A running docker-registry, which wants a user name and a password. It stops on drop.
struct DockerRegistry {
    client: Client,
    /// The URL of the repository's objects.
    repository: Url,
    certificate: String,
    process: Child,
    _folder: TempDir,
}

impl DockerRegistry {
    fn start() -> DockerRegistry {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let key = KeyPair::generate().expect("a key");
        let names = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
        let certificate = names.self_signed(&key).expect("a certificate").pem();
        let hash = bcrypt::hash(PASSWORD, COST).expect("a hash");
        let config = json!({
            "version": 0.1,
            "log": {"level": "info", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": at("storage")}},
            "http": {"addr": "127.0.0.1:0", "tls": {"certificate": at("certificate.pem"), "key": at("key.pem")}},
            "auth": {"htpasswd": {"realm": "lab", "path": at("htpasswd")}},
        });
        // Each JSON document is a YAML document.
        for (name, text) in [
            ("certificate.pem", certificate.clone()),
            ("key.pem", key.serialize_pem()),
            ("htpasswd", format!("{USER}:{hash}\n")),
            ("config.yml", config.to_string()),
        ] {
            std::fs::write(at(name), text).expect("a file");
        }
        let mut process = Command::new("docker-registry")
            .arg("serve")
            .arg(at("config.yml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("docker-registry starts");
        let mut log = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let port = log.by_ref().map_while(Result::ok).find_map(|line| {
            let after = line.split_once("listening on 127.0.0.1:")?.1.to_owned();
            after.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u16>().ok()
        });
        let port = port.expect("docker-registry listens");
        // Nobody would read the rest of its log, and then it would wait.
        std::thread::spawn(move || log.map_while(Result::ok).for_each(drop));
        let root = Certificate::from_pem(certificate.as_bytes()).expect("a certificate");
        let client = Client::builder().no_proxy().tls_certs_only([root]).build();
        let repository = format!("https://127.0.0.1:{port}/v2/images/debian/");
        DockerRegistry {
            client: client.expect("a client"),
            repository: repository.parse().expect("a URL"),
            certificate,
            process,
            _folder: folder,
        }
    }

    async fn send(&self, method: Method, url: Url, kind: &str, body: Vec<u8>) -> Response {
        let request = self.client.request(method, url).basic_auth(USER, Some(PASSWORD));
        let request = request.header(CONTENT_TYPE, kind).body(body);
        let answer = request.send().await.expect("docker-registry answers");
        assert!(answer.status().is_success(), "{} from {}", answer.status(), answer.url());
        answer
    }

    /// Stores a blob in two requests ("POST then PUT" in the specification).
    async fn push_blob(&self, blob: Vec<u8>) {
        let kind = "application/octet-stream";
        let uploads = self.repository.join("blobs/uploads/").expect("a URL");
        let begun = self.send(Method::POST, uploads, kind, Vec::new()).await;
        let place = begun.headers()[LOCATION].to_str().expect("a URL");
        let mut place = begun.url().join(place).expect("a URL");
        place.query_pairs_mut().append_pair("digest", &digest(&blob));
        self.send(Method::PUT, place, kind, blob).await;
    }

    /// Stores a document under a tag or its digest.
    async fn push_document(&self, name: &str, kind: &str, document: &Value) {
        let place = self.repository.join(&format!("manifests/{name}")).expect("a URL");
        self.send(Method::PUT, place, kind, document.to_string().into()).await;
    }

    /// Stores a disk without a tag, and returns its manifest.
    async fn push_disk(&self, disktype: &str, disk: Vec<u8>) -> Value {
        let manifest = manifest_of(&disk, Some(disktype));
        self.push_blob(EMPTY_CONFIG.into()).await;
        self.push_blob(disk).await;
        self.push_document(&digest(manifest.to_string()), MANIFEST, &manifest).await;
        manifest
    }

    fn instance_info(&self, version: &str) -> Value {
        let port = self.repository.port().expect("the URL has a port");
        json!({
            "image_source": format!("oci://127.0.0.1:{port}/images/debian{version}"),
            "image_pull_secret": format!("{USER}:{PASSWORD}"), "image_ca": self.certificate,
        })
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn our_agent_installs_images_that_docker_registry_stores() {
    if !peers::installed("docker-registry") {
        let why = "it is not installed (Debian's package docker-registry)";
        return peers::skip("docker-registry", why);
    }
    let lab = Lab::start().await;
    let registry = DockerRegistry::start();
    let machine = lab.rack(Machine::redfish("r1u1").with_our_agent()).await;
    let node = lab.available(&machine).await;
    let (first, second) = (bootable(7), bootable(8));
    let raw = registry.push_disk("raw", first.clone()).await;
    let packed = registry.push_disk("qcow2", qcow2(&second)).await;
    let entry = |manifest: &Value, architecture: &str, disktype: &str| {
        let text = manifest.to_string();
        json!({
            "mediaType": MANIFEST, "digest": digest(&text), "size": text.len(), "annotations": {"disktype": disktype},
            "platform": {"os": "linux", "architecture": architecture},
        })
    };
    let entries = [entry(&packed, "amd64", "qcow2"), entry(&raw, "amd64", "raw")];
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
    registry.push_document("12", INDEX, &index).await;

    choose(&lab, node, &registry.instance_info(":12")).await;
    lab.provision(node, "active").await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    assert!(content(&machine, first.len()) == first, "the disk is not the raw image");

    // The agent reads the tables of a qcow2 image by range requests.
    let version = format!("@{}", digest(packed.to_string()));
    choose(&lab, node, &registry.instance_info(&version)).await;
    lab.provision(node, "rebuild").await.reaches("active").await;
    assert!(content(&machine, second.len()) == second, "the disk is not the qcow2 image");

    let mut wrong = registry.instance_info(":12");
    wrong["image_pull_secret"] = json!(format!("{USER}:wrong"));
    choose(&lab, node, &wrong).await;
    let path = format!("/v1/nodes/{}/states/provision", node.0);
    let answer = lab.api().send(Method::PUT, &path, Some(&json!({"target": "rebuild"}))).await;
    let why = answer.body.to_string();
    assert!(
        answer.status == 400 && why.contains("refused instance_info.image_pull_secret"),
        "{why}"
    );
}
