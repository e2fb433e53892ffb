//! On a real OpenStack with fake hypervisors, two projects have clusters of one clusterd. Each cluster is in the project of its tenant,
//! because clusterd's user has a role in both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use compat::Service;
use real_clusters::{Cloud, VERSION, for_nobody};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(600);
const USER: &str = "own-clusterd";
const HOME: &str = "own-clusterd-home";
const PASSWORD: &str = "own-clusterd-secret";
/// The tenants who ask for a cluster, and their projects.
const TENANTS: [(&str, &str); 2] = [("alice", "tenant-a"), ("bob", "tenant-b")];

#[test]
fn each_cluster_is_in_the_project_of_its_tenant() {
    let Some(mut admin) = Cloud::without_machines("admin") else { return };
    let clouds = account(&mut admin);
    let service = Service::clusters_with(&format!(
        "auth = 'keystone'\nkeystone = {{ clouds_yaml = '{}', name = 'admin' }}\n\
         [cloud]\nclouds_yaml = '{}'\nname = '{USER}'\n[conductor]\nlook_every = '5s'\n{}",
        admin.clouds_yaml.display(),
        clouds.display(),
        for_nobody()
    ));
    setup(&admin, &["--clusterd", &service.url, "--region", "RegionOne"]);
    let mut tenants = TENANTS
        .map(|(user, _)| Cloud::without_machines(user).expect("the cloud was there a moment ago"));

    for (cloud, (user, project)) in tenants.iter_mut().zip(TENANTS) {
        cloud.done(&format!(
            "coe cluster template create own --coe kubernetes --image tiny --flavor m1.small --master-flavor m1.small \
             --external-network public --floating-ip-disabled --labels kube_tag={VERSION}"
        ));
        let create = format!("coe cluster create own-{user} --cluster-template own --node-count 1");
        let refused = cloud.refused(&create);
        let words = format!("clusterd's user {USER} lacks the role member in project {project}");
        assert!(refused.contains(&words), "{refused}");
        assert_eq!(cloud.json("server list"), json!([]));
        setup(&admin, &["--tenant", project, "--service-user", USER]);
        // clusterd caches the refusal for a moment.
        wait_for("clusterd to be let in", || cloud.goes(&create));
    }
    for (cloud, (user, _)) in tenants.iter_mut().zip(TENANTS) {
        wait_for(&format!("two servers of {user}'s"), || {
            let servers = cloud.json("server list");
            let servers = servers.as_array().expect("a list");
            let is_own = |it: &&Value| {
                it["Name"].as_str().is_some_and(|name| name.contains(&format!("own-{user}")))
            };
            // The project holds no servers but those of this cluster.
            assert_eq!(servers.iter().filter(is_own).count(), servers.len(), "{servers:#?}");
            servers.len() == 2 && servers.iter().all(|it| it["Status"] == "ACTIVE")
        });
    }
    each_credential_is_good_in_one_project(&clouds, &mut admin);

    for (cloud, (user, _)) in tenants.iter_mut().zip(TENANTS) {
        cloud.done(&format!("coe cluster delete own-{user}"));
    }
    for cloud in &mut tenants {
        wait_for("no cluster", || cloud.json("coe cluster list") == json!([]));
        for list in ["server list", "port list", "router list", "subnet list", "server group list"]
        {
            assert_eq!(cloud.json(list), json!([]), "openstack {list}");
        }
        cloud.done("coe cluster template delete own");
    }
    admin.done("service delete container-infra");
    admin.done(&format!("user delete {USER}"));
    admin.done(&format!("project delete {HOME}"));
}

/// Creates the user of clusterd in a project of its own, and returns the path of a clouds.yaml for that user.
fn account(admin: &mut Cloud) -> PathBuf {
    admin.done(&format!("project create --or-show {HOME}"));
    admin.done(&format!("user create --or-show --password {PASSWORD} {USER}"));
    admin.done(&format!("role add --project {HOME} --user {USER} member"));
    // A user left by an earlier run may have another password.
    admin.done(&format!("user set --password {PASSWORD} {USER}"));
    let url = admin.json("endpoint list --service identity --interface public");
    let url = url[0]["URL"].as_str().expect("Keystone has an address");
    let auth = json!({
        "auth_url": url, "username": USER, "password": PASSWORD, "project_name": HOME,
        "user_domain_name": "Default", "project_domain_name": "Default",
    });
    let cloud = json!({"auth": auth, "region_name": "RegionOne", "identity_api_version": "3"});
    let file = std::env::temp_dir().join(format!("own-clusterd-{}.yaml", std::process::id()));
    // JSON is YAML.
    fs::write(&file, json!({"clouds": {USER: cloud}}).to_string()).expect("a file can be written");
    file
}

/// Runs `bedplate setup keystone …` as administrator of the cloud.
fn setup(admin: &Cloud, options: &[&str]) {
    let mut command = Command::new(compat::program("bedplate"));
    command.env_clear().env("OS_CLIENT_CONFIG_FILE", &admin.clouds_yaml);
    command.args(["--os-cloud", "admin", "setup", "keystone"]).args(options);
    let run = command.output().expect("bedplate can be started");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// Keystone has one application credential for each cluster, each in the project of another tenant.
fn each_credential_is_good_in_one_project(clouds: &Path, admin: &mut Cloud) {
    let mut clusterd = Cloud::of(clouds.to_owned(), USER);
    let listed = clusterd.json("application credential list");
    let names = listed.as_array().expect("a list").iter().map(|it| it["Name"].as_str());
    let mut projects: Vec<String> = names
        .map(|name| {
            let name = name.expect("it has a name");
            clusterd.value(&format!("application credential show {name}"), "project_id")
        })
        .collect();
    let mut want =
        TENANTS.map(|(_, project)| admin.value(&format!("project show {project}"), "id"));
    projects.sort();
    want.sort();
    assert_eq!(projects, want);
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < PATIENCE, "not {what}");
        thread::sleep(Duration::from_secs(2));
    }
    eprintln!("{what} after {:.0?}", begun.elapsed());
}
