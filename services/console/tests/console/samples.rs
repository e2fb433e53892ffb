//! The sample configurations for administrators and developers are valid.

use std::path::Path;

use console::{Access, Config};

fn sample(path: &str) -> Config {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path);
    // The error names the file, the line and the key.
    daemon::load(&file).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_sample_configuration_is_valid() {
    for path in ["systemd/console.toml", "kubernetes/console.toml"] {
        let config = sample(path);
        assert_eq!(config.listen.port(), 9510, "{path}");
        assert_eq!(config.access, Access::HttpBasic, "{path}");
    }
}

#[test]
fn the_configuration_of_a_laptop_stays_on_loopback() {
    assert!(sample("dev/console.toml").listen.ip().is_loopback());
}
