#![doc = include_str!("../README.md")]

pub mod agents;

mod admission;
mod allocation;
mod app;
mod bedplate;
mod bios;
mod boot_device;
mod boot_setting;
mod chassis;
mod conductor;
mod console;
mod deploy_template;
mod driver;
mod error;
mod event;
mod field;
mod filter;
mod firmware;
mod history;
mod indicator;
mod inspection_rule;
mod inventory;
mod list_query;
mod listing;
mod maintenance;
mod microversion;
mod node;
mod openapi;
mod parameters;
mod paths;
mod port;
mod port_group;
mod power;
mod provision;
mod raid;
mod request;
mod rescue_password;
mod root;
mod rule;
mod runbook;
mod secret;
mod shards;
mod shown;
mod states;
mod step;
mod stored;
mod traits;
mod unrouted;
mod validate;
mod value;
mod vendor;
mod view;
mod vifs;
mod virtual_media;
mod volume;
mod write;

use std::sync::Arc;

use axum::Router;
use openstack_api::{ApiConfig, BrowserCheck, Routes, version_routes};

pub use app::{App, Reservations, Settings};

/// The largest body in bytes, for routes without a limit of their own.
const BODY_LIMIT: usize = 4 << 20;

/// Every route, in the order of the OpenAPI document. A new resource adds one line here.
fn routes(settings: &Settings) -> Routes<App> {
    let all = match settings.serves_agents {
        true => version_routes(&root::VERSIONS_WITH_AGENTS).merge(agents::routes()),
        false => version_routes(&root::VERSIONS),
    };
    all.merge(node::routes())
        .merge(states::routes())
        .merge(console::routes())
        .merge(power::routes())
        .merge(provision::routes())
        .merge(maintenance::routes())
        .merge(boot_device::routes())
        .merge(boot_setting::routes())
        .merge(indicator::routes())
        .merge(validate::routes())
        .merge(traits::routes())
        .merge(vifs::routes())
        .merge(virtual_media::routes())
        .merge(raid::routes())
        .merge(bios::routes())
        .merge(firmware::routes())
        .merge(vendor::routes())
        .merge(inventory::routes())
        .merge(history::routes())
        .merge(port::routes())
        .merge(driver::routes())
        .merge(conductor::routes())
        .merge(allocation::routes())
        .merge(chassis::routes())
        .merge(port_group::routes())
        .merge(volume::routes())
        .merge(deploy_template::routes())
        .merge(runbook::routes())
        .merge(inspection_rule::routes())
        .merge(shards::routes())
        .merge(event::routes())
        .merge(bedplate::routes())
}

/// Builds the router of the whole API.
pub fn router(app: App) -> Router {
    let (documents, allocations) =
        (app.settings.api.limits.document, app.settings.allocations_each);
    let store = app.store.for_callers(documents, allocations);
    let app = App { store, ..app };
    let config = ApiConfig {
        dialect: microversion::dialect(),
        alias: paths::alias,
        unrouted: unrouted::answer,
        envelope: error::envelope,
        challenge: app.auth.challenge("Baremetal API"),
        browsers: BrowserCheck::new(&app.auth, app.settings.api.hosts.clone()),
        trail: Arc::new(app.store.trail().clone()),
        ticket_keys: app.store.keyring().cloned(),
        longest_body: BODY_LIMIT,
        settings: app.settings.api.clone(),
    };
    let router = routes(&app.settings).finish(openapi::description());
    openstack_api::apply(router.with_state(app), config)
}
