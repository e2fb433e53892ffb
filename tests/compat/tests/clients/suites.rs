//! OpenStack's own test suites of the Bare Metal API: ironic-tempest-plugin's tests of the API, and openstacksdk's functional tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compat::{Cloud, Service, python};
use serde_json::json;

const REQUIREMENTS: &str = "suites-requirements.txt";

#[test]
fn the_api_tests_of_ironic_tempest_plugin_pass() {
    let (mut cloud, _service) = baremetal();
    let mut run = tempest(&mut cloud, "admin", "");
    // Without a VIF in Neutron and a graphical console, the classes for these skip.
    passes(&mut run, 380, 3);
}

#[test]
fn the_role_tests_of_ironic_tempest_plugin_pass() {
    let (mut cloud, _service) = baremetal();
    let mut run = tempest(&mut cloud, "rbac_defaults", "[enforce_scope]\nironic = true\n");
    // The test that is left out expects that an administrator of one project is refused. Here, as in Nova and Neutron, an administrator of
    // any project is an administrator of the cloud.
    run.args(["-k", "TestNode", "-k", "test_runbook_visibility_and_access_control"]);
    passes(&mut run, 93, 0);
}

#[test]
fn the_functional_tests_of_openstacksdk_pass() {
    let (cloud, _service) = baremetal();
    let mut run = suite("openstack/tests/functional/baremetal");
    run.env("OS_CLIENT_CONFIG_FILE", cloud.clouds_yaml());
    for (variable, account) in [
        ("OS_CLOUD", "admin"),
        ("OPENSTACKSDK_DEMO_CLOUD", "alice"),
        ("OPENSTACKSDK_DEMO_CLOUD_ALT", "bob"),
        ("OPENSTACKSDK_OPERATOR_CLOUD", "admin"),
        ("OPENSTACKSDK_SYSTEM_ADMIN_CLOUD", "admin-system"),
    ] {
        run.env(variable, account);
    }
    // One test waits until the client has sent a refused request five times.
    run.env("OS_TEST_TIMEOUT", "120");
    passes(&mut run, 96, 0);
}

/// A baremetald with the tokens of an emulated cloud, in whose catalogue it is.
fn baremetal() -> (Cloud, Service) {
    let mut cloud = Cloud::start();
    let config = format!("{}[agents]\non_api_listener = true\n", cloud.keystone());
    let service = Service::machines_with(&config);
    cloud.register("baremetal", &service.url);
    cloud.system("admin");
    (cloud, service)
}

/// Runs the tests in a folder of the installed packages.
fn suite(tests: &str) -> Command {
    let interpreter = python::tool(REQUIREMENTS, "python");
    let packages = packages(&interpreter);
    let mut run = Command::new(interpreter);
    run.args(["-W", "ignore", "-m", "unittest", "discover", "--verbose", "--start-directory"]);
    run.arg(packages.join(tests)).arg("--top-level-directory").arg(&packages);
    run.stdin(Stdio::null());
    run
}

/// The folder into which the packages are installed.
fn packages(interpreter: &Path) -> PathBuf {
    let ask = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let run = Command::new(interpreter).args(["-c", ask]).output().expect("Python can be started");
    PathBuf::from(String::from_utf8(run.stdout).expect("it is text").trim())
}

/// Checks that all tests pass: at least `least`, of which `skipped` are skipped.
#[track_caller]
fn passes(run: &mut Command, least: usize, skipped: usize) {
    let ended = run.output().expect("Python can be started");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{told}");
    let ran = told.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next());
    let ran: usize = ran.expect("it tells the number").parse().expect("it is a number");
    assert!(ran >= least, "only {ran} tests ran\n{told}");
    let want = match skipped {
        0 => "OK".to_owned(),
        _ => format!("OK (skipped={skipped})"),
    };
    assert_eq!(told.lines().last(), Some(&*want), "{told}");
}

/// tempest's tests of the API in this folder of ironic-tempest-plugin, with further `settings`.
fn tempest(cloud: &mut Cloud, tests: &str, settings: &str) -> Command {
    for (name, project, role) in SYSTEM_USERS.iter().chain(&PROJECT_USERS) {
        cloud.user(name, project, &[role]);
    }
    let mut admin = cloud.client("admin");
    for (name, _, role) in SYSTEM_USERS {
        admin.done(&["role", "add", "--user", name, "--system", "all", role]);
    }
    let folder = cloud.clouds_yaml().parent().expect("it is in a folder").to_owned();
    let config = tempest_config(cloud, &folder) + settings;
    fs::write(folder.join("accounts.yaml"), accounts().to_string()).expect("it can be written");
    fs::write(folder.join("tempest.conf"), config).expect("it can be written");
    let mut run = suite(&format!("ironic_tempest_plugin/tests/api/{tests}"));
    run.env("TEMPEST_CONFIG", "tempest.conf").env("TEMPEST_CONFIG_DIR", &folder);
    run
}

/// Users with a role in the system. tempest confuses two entries with one user name, so they are users of their own.
const SYSTEM_USERS: [(&str, &str, &str); 2] =
    [("root", "admin", "admin"), ("auditor", "admin", "reader")];
/// Users with a role in a project. tempest chooses any administrator of a project and then wants a member of the same project, so each
/// project with an administrator has a member.
const PROJECT_USERS: [(&str, &str, &str); 3] =
    [("carol", "tenant-a", "reader"), ("dave", "tenant-b", "admin"), ("erin", "admin", "member")];

/// The accounts of the emulated cloud, as tempest wants them.
fn accounts() -> serde_json::Value {
    let account = |name: &str, role: &str, project: Option<&str>| {
        let mut account = json!({
            "username": name,
            "password": format!("{name}-secret"),
            "user_domain_name": "Default",
            "roles": [role],
        });
        match project {
            Some(project) => {
                account["project_name"] = project.into();
                account["project_domain_name"] = "Default".into();
            }
            None => account["system"] = "all".into(),
        }
        account
    };
    let of_system = SYSTEM_USERS.iter().map(|(name, _, role)| account(name, role, None));
    let of_cloud = [
        ("admin", "admin", "admin"),
        ("alice", "tenant-a", "member"),
        ("bob", "tenant-b", "member"),
    ];
    let of_project = of_cloud.iter().chain(&PROJECT_USERS);
    let of_project = of_project.map(|(name, project, role)| account(name, role, Some(project)));
    of_system.chain(of_project).collect()
}

/// The configuration of tempest for this cloud.
fn tempest_config(cloud: &Cloud, folder: &Path) -> String {
    let (identity, folder) = (cloud.identity(), folder.display());
    format!(
        "[DEFAULT]\nlog_file = {folder}/tempest.log\n\
         [auth]\nuse_dynamic_credentials = false\ntest_accounts_file = {folder}/accounts.yaml\n\
         admin_username = admin\nadmin_password = admin-secret\nadmin_project_name = admin\nadmin_domain_name = Default\n\
         [identity]\nuri_v3 = {identity}\nauth_version = v3\nregion = RegionOne\n\
         [identity-feature-enabled]\napi_v2 = false\n\
         [service_available]\nironic = true\nnova = false\nneutron = false\nglance = false\ncinder = false\nswift = false\n\
         [baremetal]\ndriver = fake-hardware\nmin_microversion = 1.1\nmax_microversion = 1.115\n\
         [oslo_concurrency]\nlock_path = {folder}\n"
    )
}
