//! Tests of `bedplate` with the Keystone of an emulated cloud: registration in the catalogue, lookup of the services there, and
//! authentication.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use api_client::shared::PolicyRow;
use openstack_emulator::{Cloud, Emulator, Kind, Settings};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// An emulated cloud, and a folder with the clouds.yaml of the cloud.
struct Fixture {
    cloud: Cloud,
    folder: tempfile::TempDir,
    _emulator: Emulator,
}

/// The output of one run of `bedplate`, and whether the exit status was 0.
struct CommandOutput {
    done: bool,
    out: String,
    error: String,
}

impl CommandOutput {
    #[track_caller]
    fn done(self) -> String {
        assert!(self.done, "{}{}", self.out, self.error);
        self.out
    }

    #[track_caller]
    fn refused(self, words: &[&str]) {
        assert!(!self.done, "{}", self.out);
        for word in words {
            assert!(self.error.contains(word), "{word:?} in {}", self.error);
        }
    }
}

impl Fixture {
    async fn start() -> Fixture {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("clouds.yaml"), cloud.clouds_yaml()).unwrap();
        Fixture { cloud, folder, _emulator: emulator }
    }

    fn clouds(&self) -> PathBuf {
        self.folder.path().join("clouds.yaml")
    }

    /// Runs `bedplate` with only the given environment, in the folder of the clouds.yaml.
    async fn run_with(&self, environment: &[(&str, &str)], arguments: &[&str]) -> CommandOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bedplate"));
        command.env_clear().envs(environment.iter().copied());
        command.args(arguments).current_dir(self.folder.path());
        let output = command.output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandOutput {
            done: output.status.success(),
            out: text(output.stdout),
            error: text(output.stderr),
        }
    }

    async fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with(&[], arguments).await
    }

    async fn setup(&self, arguments: &[&str]) -> CommandOutput {
        let setup = ["--os-cloud", "admin", "setup", "keystone"];
        self.run(&[&setup[..], arguments].concat()).await
    }

    /// Returns how many changes the catalogue received since the last call of this function.
    fn changes(&self) -> usize {
        let is_change = |method: &str| ["POST", "PATCH", "DELETE"].contains(&method);
        let changes = self
            .cloud
            .count(|call| is_change(&call.method) && !call.path.ends_with("/auth/tokens"));
        self.cloud.forget_calls();
        changes
    }

    /// Returns a configuration of a daemon that authenticates callers with the Keystone of this cloud.
    fn keystone(&self, name: &str) -> String {
        format!(
            "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n[api.keystone]\nclouds_yaml = {:?}\nname = 'clusterd'\n",
            self.folder.path().join(name),
            self.clouds(),
        )
    }

    async fn clusterd(&self) -> (String, AbortOnDropHandle<()>) {
        let config: cluster::Config = toml::from_str(&self.keystone("clusterd")).unwrap();
        let service = cluster::Service::start(config).await.unwrap();
        let url = format!("http://{}", service.listeners().api);
        let running = async { service.run(CancellationToken::new()).await.unwrap() };
        (url, AbortOnDropHandle::new(tokio::spawn(running)))
    }
}

#[tokio::test]
async fn services_are_registered_once_and_moved_when_their_address_changes() {
    let given = Fixture::start().await;
    let urls =
        ["--baremetald", "https://h:6385", "--clusterd", "https://h:9511", "--region", "RegionOne"];
    let reported = given.setup(&[&urls[..], &["--dry-run"]].concat()).await.done();
    assert!(reported.contains("baremetal: the service would be added"), "{reported}");
    assert!(reported.ends_with("nothing was changed\n"), "{reported}");
    assert_eq!(given.changes(), 0);

    let reported = given.setup(&urls).await.done();
    let line = "container-infra: the internal endpoint was added: https://h:9511/v1\n";
    assert!(reported.contains(line), "{reported}");
    assert_eq!(given.changes(), 8);
    let reported = given.setup(&urls).await.done();
    assert_eq!(reported, "baremetal: unchanged\ncontainer-infra: unchanged\n");
    assert_eq!(given.changes(), 0);

    // Without `--region`, the command uses the region of clouds.yaml.
    let moved = ["--baremetald", "https://elsewhere", "--baremetald-internal", "https://h:6385"];
    let reported = given.setup(&moved).await.done();
    assert_eq!(
        reported,
        "baremetal: the public endpoint was changed from https://h:6385 to https://elsewhere\n"
    );
    assert_eq!(given.changes(), 1);
    let services = given.cloud.objects(Kind::Service);
    let of = |kind: &str| services.iter().find(|one| one.text("type") == kind).unwrap();
    assert_eq!(of("container-infra").text("name"), "magnum");
    let service = of("baremetal");
    let endpoints = given.cloud.objects(Kind::Endpoint);
    let own = endpoints.iter().filter(|one| one.text("service_id") == service.id);
    let mut own: Vec<_> = own.map(|one| (one.text("interface"), one.text("url"))).collect();
    own.sort_unstable();
    let near = "https://h:6385";
    assert_eq!(own, [("admin", near), ("internal", near), ("public", "https://elsewhere")]);
}

#[tokio::test]
async fn an_invalid_registration_changes_nothing() {
    let given = Fixture::start().await;
    let url = ["--baremetald", "https://h"];
    let nowhere = given.setup(&[&url[..], &["--region", "west"]].concat()).await;
    nowhere.refused(&[r#"no region "west""#, "RegionOne"]);
    given.setup(&[]).await.refused(&["--baremetald"]);
    given.setup(&["--baremetald", "ftp://h"]).await.refused(&["must begin with https://"]);
    given.setup(&["--baremetald", "https://u:p@h"]).await.refused(&["no user"]);
    let setup = ["setup", "keystone", "--baremetald", "https://h"];
    given.run(&setup).await.refused(&["no cloud is selected", "--os-cloud"]);
    let alice = given.run(&[&["--os-cloud", "alice"][..], &setup].concat()).await;
    alice.refused(&["administrators"]);
    assert_eq!(given.changes(), 0);
}

#[tokio::test]
async fn clusterd_is_found_in_the_catalogue() {
    let given = Fixture::start().await;
    let (url, _clusterd) = given.clusterd().await;
    let list = ["cluster", "list"];
    let alice = ["--os-cloud", "alice", "cluster", "list"];
    given.run(&alice).await.refused(&["no endpoint of clusterd", "bedplate setup keystone"]);
    given.setup(&["--clusterd", &url]).await.done();
    given.run(&alice).await.done();

    let keystone = given.cloud.auth_url();
    let environment = [
        ("OS_AUTH_URL", keystone.as_str()),
        ("OS_USERNAME", "alice"),
        ("OS_PASSWORD", "alice-secret"),
        ("OS_PROJECT_NAME", "tenant-a"),
        ("OS_USER_DOMAIN_NAME", "Default"),
        ("OS_PROJECT_DOMAIN_NAME", "Default"),
    ];
    given.run_with(&environment, &list).await.done();
    let mut wrong = environment;
    wrong[2].1 = "a-guess";
    let said = given.run_with(&wrong, &list).await;
    assert!(!said.error.contains("a-guess"), "{}", said.error);
    said.refused(&["cannot get a token from Keystone"]);
    given.run_with(&[("OS_CLOUD", "nobody")], &list).await.refused(&[r#"no cloud "nobody""#]);
    let elsewhere = [("OS_CLOUD", "alice"), ("OS_CLIENT_CONFIG_FILE", "/nowhere/clouds.yaml")];
    given.run_with(&elsewhere, &list).await.refused(&["/nowhere/clouds.yaml"]);
    // `OS_AUTH_TYPE=none`, which clients of a service without Keystone set, switches off the other `OS_*` variables.
    for name in ["OS_AUTH_URL", "OS_CLOUD"] {
        let standalone = [("OS_AUTH_TYPE", "none"), (name, "alice")];
        let direct = [&["--clusters-url", &url][..], &list].concat();
        given.run_with(&standalone, &direct).await.refused(&["X-Auth-Token"]);
    }
}

#[tokio::test]
async fn a_refused_login_names_the_option_to_use() {
    let given = Fixture::start().await;
    let (url, _clusterd) = given.clusterd().await;
    let list = ["--clusters-url", &url, "cluster", "list"];
    let keystone = given.cloud.auth_url();
    given.run(&list).await.refused(&["the service requires a token", &keystone, "--os-cloud"]);
    std::fs::write(given.folder.path().join("password"), "p\n").unwrap();
    let named = ["--user", "ann", "--password-file", "password"];
    given.run(&[&named[..], &list].concat()).await.refused(&["only tokens", &keystone]);
    let both = ["--os-cloud", "alice"];
    given.run(&[&named[..], &both, &list].concat()).await.refused(&["cannot be used with"]);
    let after = [&list[..], &named[..], &both].concat();
    given.run(&after).await.refused(&["cannot be used with"]);
    let daily = [("BEDPLATE_USER", "ann"), ("BEDPLATE_PASSWORD_FILE", "password")];
    given.run_with(&daily, &[&both[..], &list].concat()).await.done();

    let htpasswd = given.folder.path().join("htpasswd");
    // The argon2id hash of "password".
    let hash =
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
    std::fs::write(&htpasswd, format!("ann:{hash}\n")).unwrap();
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'http_basic'\nhtpasswd = {htpasswd:?}\n",
        given.folder.path().join("baremetald"),
    );
    let service = baremetal::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
    let url = format!("http://{}", service.listeners().api);
    let running = async { service.run(CancellationToken::new()).await.unwrap() };
    let _baremetald = AbortOnDropHandle::new(tokio::spawn(running));
    let list = ["--url", &url, "rack", "list"];
    given.run(&list).await.refused(&["requires a password", "--password-file"]);
    let known = given.run(&[&["--os-cloud", "alice"][..], &list].concat()).await;
    known.refused(&["no tokens", "--password-file"]);
    given.run(&[&named[..], &list].concat()).await.refused(&[r#"has "ann""#]);
    std::fs::write(given.folder.path().join("password"), "password\n").unwrap();
    given.run(&[&named[..], &list].concat()).await.done();
    // A cloud named only by the environment does not conflict with `--user`.
    let environment = [("OS_CLOUD", "alice")];
    given.run_with(&environment, &[&named[..], &list].concat()).await.done();
}

#[tokio::test]
async fn the_policy_is_printed_as_a_table_and_as_json() {
    let given = Fixture::start().await;
    let (url, _clusterd) = given.clusterd().await;
    let policy = ["--os-cloud", "alice", "--clusters-url", &url, "policy", "clusters"];
    let table = given.run(&policy).await.done();
    let path = "/bedplate/v1/clusters/{cluster}/kubeconfig";
    let row = table.lines().find(|line| line.contains(path)).unwrap();
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row, ["clusters", "GET", path, "member", "-", "member", "-"]);

    let reported = given.run(&[&policy[..], &["--output", "json"]].concat()).await.done();
    let reported: BTreeMap<String, Vec<PolicyRow>> = serde_json::from_str(&reported).unwrap();
    let rows = &reported["clusters"];
    // The first line of the table is the header.
    assert_eq!(rows.len(), table.lines().count() - 1);
    let row = rows.iter().find(|row| row.path == path).unwrap();
    assert_eq!((row.cloud.as_deref(), &row.lessee), (Some("member"), &None));
}

#[tokio::test]
async fn clusterd_gets_its_roles_in_the_projects_of_tenants() {
    let given = Fixture::start().await;
    let tenants = ["--tenant", "tenant-a", "--tenant", "tenant-b"];
    let reported = given.setup(&[&tenants[..], &["--dry-run"]].concat()).await.done();
    assert!(
        reported.contains("tenant-b: clusterd would be granted the role member\n"),
        "{reported}"
    );
    assert_eq!(given.changes(), 0);
    given.setup(&["--tenant", "tenant-a", "--tenant", "nobody"]).await.refused(&["\"nobody\""]);
    given.setup(&["--tenant", "tenant-a", "--service-user", "x"]).await.refused(&["user \"x\""]);
    let puts = |given: &Fixture| given.cloud.count(|call| call.method == "PUT");
    assert_eq!(puts(&given), 0, "nothing is given where anything is wrong");

    let reported = given.setup(&tenants).await.done();
    assert!(
        reported.contains("tenant-a: clusterd was granted the role load-balancer_member\n"),
        "{reported}"
    );
    assert_eq!(puts(&given), 4);
    let reported = given.setup(&tenants).await.done();
    assert!(reported.contains("tenant-b: clusterd has the role member\n"), "{reported}");
    assert_eq!(puts(&given), 4);
    let alice = ["--os-cloud", "alice", "setup", "keystone", "--tenant", "tenant-a"];
    given.run(&alice).await.refused(&["administrators"]);
}
