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
    cloud.user("root", "admin", &["admin"]);
    let folder = cloud.clouds_yaml().parent().expect("it is in a folder").to_owned();
    fs::write(folder.join("accounts.yaml"), accounts().to_string()).expect("it can be written");
    fs::write(folder.join("tempest.conf"), tempest(&cloud, &folder)).expect("it can be written");
    let mut run = suite("ironic_tempest_plugin/tests/api/admin");
    run.env("TEMPEST_CONFIG", "tempest.conf").env("TEMPEST_CONFIG_DIR", &folder);
    // Without a VIF in Neutron and a graphical console, the classes for these skip.
    passes(&mut run, 380, 3);
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

/// The accounts of the emulated cloud, as tempest wants them. tempest confuses two entries with one user name, so the
/// administrator of the system is one of its own.
fn accounts() -> serde_json::Value {
    let account = |name: &str, project: &str, role: &str| {
        json!({
            "username": name,
            "password": format!("{name}-secret"),
            "project_name": project,
            "user_domain_name": "Default",
            "project_domain_name": "Default",
            "roles": [role],
        })
    };
    json!([
        {
            "username": "root",
            "password": "root-secret",
            "user_domain_name": "Default",
            "system": "all",
            "roles": ["admin"],
        },
        account("admin", "admin", "admin"),
        account("alice", "tenant-a", "member"),
        account("bob", "tenant-b", "member"),
    ])
}

/// The configuration of tempest for this cloud.
fn tempest(cloud: &Cloud, folder: &Path) -> String {
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
