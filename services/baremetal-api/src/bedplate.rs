//! `/bedplate/v1`: functions that Ironic does not have.

mod bmc_password;
mod conductors;
mod console;
mod console_session;
mod counts;
mod discoveries;
mod explain;
mod graphical_console;
mod hypervisor;
mod import;
mod lease_term;
mod leases;
mod machine;
mod plan;
mod profile;
mod rack;
mod reservations;

use openstack_api::Routes;

use crate::app::App;

/// The routes under `/bedplate/v1`.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("bedplate")
        .merge(explain::routes())
        .merge(plan::routes())
        .merge(machine::routes())
        .merge(bmc_password::routes())
        .merge(console::routes())
        .merge(graphical_console::routes())
        .merge(conductors::routes())
        .merge(counts::routes())
        .merge(discoveries::routes())
        .merge(rack::routes())
        .merge(reservations::routes())
        .merge(leases::routes())
        .merge(openstack_api::key_routes())
        .merge(openstack_api::health_routes())
        .merge(openstack_api::webhook_routes())
        .merge(profile::routes())
        .merge(hypervisor::routes())
        .merge(import::routes())
}
