//! The listener on the provisioning network: files for machines, and reports of their agents. No route of the API answers here.

mod boot;
mod discovery;
mod downloads;
mod files;
mod glance;
mod images;
mod iso;
mod oci;
mod state;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use baremetal_api::agents::{self, MAX_REPORT};

pub use downloads::Downloads;
pub use iso::{IsoError, IsoTemplate};
pub use state::{Files, Provisioning, RamdiskFiles};

/// Returns the router of the HTTPS listener, from which firmware loads iPXE. iPXE and the agent use the other listener.
pub fn loaders(provisioning: Provisioning) -> Router {
    Router::new().route("/ipxe/{loader}", get(files::loader)).with_state(provisioning)
}

/// Returns the router with all routes of the listener.
pub fn router(provisioning: Provisioning) -> Router {
    Router::new()
        .route("/", get(discovery::versions))
        .route("/v1/lookup", get(agents::lookup))
        .route("/v1/heartbeat/{node}", post(agents::heartbeat))
        .route("/v1/continue_inspection", post(agents::continue_inspection))
        .route("/discover/{mac}/{capability}/inventory", post(discovery::discovered))
        .route("/discover/{mac}/{capability}/{script}", get(boot::discovery_script))
        .route("/boot/{node}/{work}/{mac}/{capability}/{script}", get(boot::script))
        .route("/own-image/{node}/{mac}/{capability}/boot.ipxe", get(boot::own_image_script))
        .route("/media/{node}/{work}/{capability}/boot.iso", get(boot::medium))
        .route("/ramdisk/{file}", get(files::ramdisk))
        .route("/ramdisk/aarch64/{file}", get(files::ramdisk_of_arm))
        .route("/ipxe/{loader}", get(files::loader))
        .route("/images/{*name}", get(images::image))
        .route("/glance/{node}/{work}/{image}/{capability}", get(glance::image))
        .route("/oci/{node}/{work}/{digest}/{capability}", get(oci::blob))
        .layer(DefaultBodyLimit::max(MAX_REPORT))
        .with_state(provisioning)
}
