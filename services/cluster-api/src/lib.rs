#![doc = include_str!("../README.md")]

// The layers of the README, from the top: each layer imports from the layers below it only.
mod action;
mod bedplate;
mod certificate;
mod cluster;
mod node_group;
mod quota;
mod root;
mod service;
mod stats;
mod template;
mod vm;

mod accepted;
mod body;
mod change;
mod event;
mod field;
mod input;
mod lease_stage;
mod lease_terms;
mod listing;
mod measure;
mod openapi;
mod shown;
mod upgrade;
mod view;

mod request;

mod app;

mod error;
mod lenient;
mod microversion;
mod streams;

use std::sync::Arc;

use axum::Router;
use openstack_api::{ApiConfig, BrowserCheck, Routes, version_routes};

pub use app::{App, LeaseSettings, Settings};
pub use streams::Streams;

/// The maximum size of a body: labels and certificate requests are small.
const BODY_LIMIT: usize = 256 << 10;

/// Returns every route, in the order of the API description. A further resource is one more line.
fn routes() -> Routes<App> {
    version_routes(&root::VERSIONS)
        .merge(template::routes())
        .merge(cluster::routes())
        .merge(action::routes())
        .merge(node_group::routes())
        .merge(certificate::routes())
        .merge(quota::routes())
        .merge(stats::routes())
        .merge(service::routes())
        .merge(bedplate::routes())
        .merge(vm::routes())
}

/// Returns the router of the whole API.
pub fn router(app: App) -> Router {
    let store = app.store.for_callers(app.settings.api.limits.document);
    let app = App { store, ..app };
    let config = ApiConfig {
        dialect: microversion::dialect(),
        alias: |_, _| None,
        unrouted: |_, _, _| None,
        envelope: error::envelope,
        challenge: app.auth.challenge("Container Infra API"),
        browsers: BrowserCheck::new(&app.auth, app.settings.api.hosts.clone()),
        trail: Arc::new(app.store.trail().clone()),
        ticket_keys: None,
        longest_body: BODY_LIMIT,
        settings: app.settings.api.clone(),
    };
    let router = routes().finish(openapi::description());
    openstack_api::apply(router.with_state(app), config)
}
