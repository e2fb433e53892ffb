//! The sample configuration is what an administrator begins with: it is one that this service takes.

use std::path::Path;

use cluster::Config;

#[test]
fn the_sample_configuration_is_valid() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd/clusterd.toml");
    // An error names the file, the line and the key.
    let config: Config = daemon::load(&file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.api.listen.port(), 9511);
}
