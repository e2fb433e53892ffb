//! Updates of a member's operating system: Zincati, the update agent of Fedora CoreOS, asks clusterd before it reboots.
//!
//! Zincati speaks FleetLock and knows no other certificate authorities than those of the system, so the system learns to trust the one of
//! clusterd. Fedora CoreOS runs `update-ca-trust` at its first boot.

use ignition::File;
use ignition::build::{file, inline};
use url::Url;

/// The configuration of Zincati. It replaces the one that switches updates off (`src/node.rs`).
const ZINCATI: &str = "/etc/zincati/config.d/90-bedplate.toml";
const TRUSTED: &str = "/etc/pki/ca-trust/source/anchors/bedplate-clusterd.pem";

/// Returns the configuration of a member that reboots only with permission from `url`, whose certificate authority is `authority`.
pub(crate) fn files(url: &Url, authority: &str) -> [File; 2] {
    let zincati = format!(
        "[updates]\nenabled = true\nstrategy = \"fleet_lock\"\n\n[updates.fleet_lock]\nbase_url = \"{url}\"\n"
    );
    // Zincati has an account of its own, which must be able to read the file.
    [
        file(ZINCATI, 0o644, inline(zincati.as_bytes())),
        file(TRUSTED, 0o644, inline(authority.as_bytes())),
    ]
}
