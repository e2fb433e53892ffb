//! The pages of the console, one file for each group of pages with its routes and actions.

mod audit;
mod bring_up;
mod cluster_new;
mod clusters;
mod confirm;
mod discoveries;
mod graphical;
mod hosts;
mod images;
mod location;
mod node;
mod nodes;
mod overview;
mod profiles;
mod quotas;
mod racks;
mod serial;
mod vms;

use axum::Router;

use crate::state::Console;

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .merge(overview::routes())
        .merge(racks::routes())
        .merge(nodes::routes())
        .merge(node::routes())
        .merge(serial::routes())
        .merge(graphical::routes())
        .merge(bring_up::routes())
        .merge(discoveries::routes())
        .merge(profiles::routes())
        .merge(hosts::routes())
        .merge(location::routes())
        .merge(clusters::routes())
        .merge(cluster_new::routes())
        .merge(vms::routes())
        .merge(images::routes())
        .merge(quotas::routes())
        .merge(audit::routes())
}
