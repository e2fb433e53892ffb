//! The sample configurations, which administrators start from, are valid.

use std::fs;
use std::path::{Path, PathBuf};

use baremetal::Config;

/// Returns all sample configurations of this service below `deploy/`.
fn samples() -> Vec<PathBuf> {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let kinds = fs::read_dir(&deploy).expect("there are samples");
    let files = kinds.flat_map(|kind| {
        fs::read_dir(kind.expect("a folder can be read").path()).expect("a folder can be read")
    });
    let files = files.map(|file| file.expect("a folder can be read").path());
    files.filter(|file| file.file_name().is_some_and(|name| name == "baremetald.toml")).collect()
}

#[test]
fn every_sample_configuration_is_valid() {
    let samples = samples();
    for kind in ["dev/baremetald.toml", "systemd/baremetald.toml"] {
        assert!(samples.iter().any(|file| file.ends_with(kind)), "deploy/{kind} is gone");
    }
    for file in samples {
        // The error names the file, the line and the key.
        let config: Config = daemon::load(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(config.provisioning.is_some(), "{} boots no machine", file.display());
    }
}
