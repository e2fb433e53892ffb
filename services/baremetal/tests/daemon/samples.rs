//! The sample configurations, which administrators start from, are valid.

use std::fs;
use std::path::{Path, PathBuf};

use baremetal::Config;

/// Returns all sample configurations of this service below `deploy/`.
fn samples() -> Vec<PathBuf> {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let kinds = fs::read_dir(&deploy).expect("there are samples");
    let files =
        kinds.map(|kind| kind.expect("a folder can be read").path().join("baremetald.toml"));
    files.filter(|file| file.is_file()).collect()
}

#[test]
fn every_sample_configuration_is_valid() {
    let samples = samples();
    for kind in ["dev/baremetald.toml", "kubernetes/baremetald.toml", "systemd/baremetald.toml"] {
        assert!(samples.iter().any(|file| file.ends_with(kind)), "deploy/{kind} is gone");
    }
    for file in samples {
        let boots_machines = load(&file).provisioning.is_some();
        assert_eq!(boots_machines, file.ends_with("dev/baremetald.toml"), "{file:?}");
    }
}

/// The packages install this sample and start the service, before anybody has written an address into it.
#[test]
fn the_provisioning_network_of_the_packages_is_an_example() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd/baremetald.toml");
    // As the install guide does. The lines of the example have no space after their #.
    let text = fs::read_to_string(&file).expect("the sample can be read");
    let (before, section) = text.split_once("#[provisioning]\n").expect("there is an example");
    let mut enabled = format!("{before}[provisioning]\n");
    for line in section.lines() {
        let key = line.strip_prefix('#').filter(|key| !key.starts_with(' '));
        enabled.push_str(key.unwrap_or(line));
        enabled.push('\n');
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("baremetald.toml");
    fs::write(&file, enabled).expect("the configuration is written");
    let network = load(&file).provisioning.expect("the example is enabled");
    assert!(network.dhcp.is_some(), "the example has no DHCP server");
}

#[track_caller]
fn load(file: &Path) -> Config {
    // The error names the file, the line and the key.
    daemon::load(file).unwrap_or_else(|error| panic!("{error}"))
}
