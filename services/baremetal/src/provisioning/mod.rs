//! The listener on the provisioning network: files for machines, and reports of their agents. No route of the API answers here.

mod agents;
mod boot;
mod error;
mod files;
mod images;
mod iso;
mod report;
mod state;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

pub use iso::{IsoError, IsoTemplate};
pub use state::{Files, Provisioning};

/// The maximum size of an agent's report in bytes: an inventory with its logs.
const MAX_REPORT: usize = 8 << 20;

/// Returns the router with all routes of the listener.
pub fn router(provisioning: Provisioning) -> Router {
    Router::new()
        .route("/", get(agents::versions))
        .route("/v1/lookup", get(agents::lookup))
        .route("/v1/heartbeat/{node}", post(agents::heartbeat))
        .route("/v1/continue_inspection", post(agents::continue_inspection))
        .route("/discover/{mac}/{capability}/inventory", post(agents::discovered))
        .route("/discover/{mac}/{capability}/boot.ipxe", get(boot::discovery_script))
        .route("/boot/{node}/{work}/{mac}/{capability}/boot.ipxe", get(boot::script))
        .route("/media/{node}/{work}/{capability}/boot.iso", get(boot::medium))
        .route("/ramdisk/{file}", get(files::ramdisk))
        .route("/ipxe/{loader}", get(files::loader))
        .route("/images/{*name}", get(images::image))
        .layer(DefaultBodyLimit::max(MAX_REPORT))
        .with_state(provisioning)
}
