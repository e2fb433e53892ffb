//! The sample configurations for administrators and developers are valid.

use std::path::Path;

use cluster::Config;

fn sample(path: &str) -> Config {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path);
    // The error names the file, the line and the key.
    daemon::load(&file).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_sample_configuration_is_valid() {
    for path in ["systemd/clusterd.toml", "kubernetes/clusterd.toml"] {
        assert_eq!(sample(path).api.listener.listen.port(), 9511, "{path}");
    }
}

#[test]
fn the_configuration_of_a_laptop_stays_on_loopback() {
    let config = sample("dev/clusterd.toml");
    assert!(config.api.listener.listen.ip().is_loopback());
    assert!(config.nodes.is_some_and(|nodes| nodes.listen.ip().is_loopback()));
}
