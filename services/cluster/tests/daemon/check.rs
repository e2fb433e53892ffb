//! Runs `clusterd --check` on configurations that a start would refuse.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};

/// The error output for a configuration with `more`; `None` if the configuration is valid.
fn said(folder: &Path, more: &str) -> Option<String> {
    let file = folder.join("clusterd.toml");
    fs::write(&file, format!("state_dir = {:?}\n{more}", folder.join("state"))).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_clusterd"));
    let run = command.arg("--check").arg("--config").arg(file).output().unwrap();
    assert!(!folder.join("state").exists(), "it made something");
    (!run.status.success()).then(|| String::from_utf8(run.stderr).unwrap())
}

#[test]
fn the_certificate_files_of_the_listener_for_members_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let nodes = format!(
        "[nodes]\nlisten = '[::]:9512'\nurl = 'https://c:9512'\ncertificate = {:?}\nkey = {:?}\nca_file = {:?}\n",
        at("c.pem"),
        at("k.pem"),
        at("a.pem")
    );
    let check = |words: &[&str]| match said(folder.path(), &nodes) {
        None => assert_eq!(words, [""; 0]),
        Some(said) => words.iter().for_each(|it| assert!(said.contains(it), "{it}: {said}")),
    };
    check(&["(nodes)", "c.pem", "No such file"]);
    let own = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new([name.to_owned()]).unwrap();
        (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
    };
    let (certificate, key) = own("c");
    fs::write(at("c.pem"), &certificate).unwrap();
    fs::write(at("k.pem"), own("other").1).unwrap();
    fs::write(at("a.pem"), "none").unwrap();
    check(&["(nodes)", "a.pem does not contain certificates in PEM"]);
    fs::write(at("a.pem"), &certificate).unwrap();
    check(&["(nodes)", "TLS cannot use the certificate and the key"]);
    fs::write(at("k.pem"), key).unwrap();
    check(&[]);
}

#[test]
fn the_clouds_yaml_of_clusters_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(said(folder.path(), ""), None);
    let lacks = |more: &str| said(folder.path(), more).unwrap();
    let cloud = lacks("[cloud]\nclouds_yaml = '/no/clouds.yaml'\n");
    assert!(cloud.contains("cannot use /no/clouds.yaml (cloud.clouds_yaml)"), "{cloud}");
    let backups = lacks("[backups]\ncontainer = 'etcd'\n");
    assert!(backups.contains("backups.container: needs [cloud]"), "{backups}");
}

#[test]
fn an_application_credential_cannot_create_clusters_in_other_projects() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, auth: &str| {
        let file = folder.path().join(name);
        fs::write(&file, format!("clouds: {{c: {{{auth}}}}}")).unwrap();
        file
    };
    let user =
        "username: u, password: p, project_name: s, user_domain_name: D, project_domain_name: D";
    let user = write("user.yaml", &format!("auth: {{auth_url: 'http://k/v3', {user}}}"));
    let bound = "application_credential_id: a, application_credential_secret: s";
    let bound =
        format!("auth_type: v3applicationcredential, auth: {{auth_url: 'http://k/v3', {bound}}}");
    let bound = write("bound.yaml", &bound);
    let keystone = format!("[api]\nauth = 'keystone'\nkeystone.clouds_yaml = {user:?}\n");
    let check = |api: &str, clouds: &Path, tenancy: &str| {
        said(folder.path(), &format!("{api}[cloud]\nclouds_yaml = {clouds:?}\n{tenancy}"))
    };
    let own = "tenancy = 'own'\n";
    for (api, clouds, tenancy) in [
        (keystone.as_str(), &user, ""),
        (&keystone, &user, own),
        (&keystone, &bound, ""),
        (&keystone, &bound, "tenancy = 'shared'\n"),
        ("", &user, ""),
    ] {
        assert_eq!(check(api, clouds, tenancy), None);
    }
    let refused = check(&keystone, &bound, own).unwrap();
    assert!(
        refused.contains("an application credential is valid in one project only"),
        "{refused}"
    );
    let refused = check("", &user, own).unwrap();
    assert!(refused.contains("own needs api.auth"), "{refused}");
}
