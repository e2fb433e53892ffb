//! `/bedplate/v1/conductors`: the share of each conductor in the work, and the drain of a conductor before it is stopped.

use std::collections::HashMap;

use axum::response::Response;
use cluster_store::Store;
use http::StatusCode;
use jiff::Timestamp;
use openstack_api::{
    ApiError, JsonShape, PathParam, RequiredAccess, Route, Routes, Shaped, Time, json, shaped,
};
use replicas::{ConductorRow, ConductorState, DrainOutcome, LivingConductors, ShareKey};
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::request::{Request, missing};

pub(super) fn routes() -> Routes<App> {
    let list = Route::get("List conductors with their shares of the work", list)
        .returns(JsonShape::object([("conductors", JsonShape::list(Share::shape()))]));
    let show =
        Route::get("Show a conductor with its share of the work", show).returns(Share::shape());
    let drain = Route::put("Let a conductor take no work until it starts again", drain);
    let undrain = Route::delete("Let a conductor take work again", undrain);
    let [drain, undrain] = [drain, undrain].map(|route| {
        route
            .refuses([StatusCode::CONFLICT])
            .answers(StatusCode::ACCEPTED)
            .returns(Share::shape())
            .needs(RequiredAccess::Administer)
    });
    Routes::new("bedplate")
        .at("/bedplate/v1/conductors", [list.needs(RequiredAccess::Administer)])
        .at("/bedplate/v1/conductors/{hostname}", [show.needs(RequiredAccess::Administer)])
        .at("/bedplate/v1/conductors/{hostname}/drain", [drain, undrain])
}

shaped! {
    /// A conductor with its share.
    #[derive(Serialize)]
    struct Share<'a> {
        hostname: &'a str,
        state: &'static str = JsonShape::enumeration(ConductorState::ALL.map(ConductorState::as_str)),
        /// The version of its program; empty if the program is older than this field.
        version: &'a str,
        /// How many clusters belong to it.
        clusters: u64,
        /// How many VMs belong to it.
        machines: u64,
        /// How many snapshots belong to it.
        snapshots: u64,
        /// How many drains of hosts belong to it.
        drains: u64,
        /// How many turns it still has for resources that belong to others by now.
        turns_of_others: u32,
        last_seen_at: Time,
    }
}

/// The resources of a conductor.
#[derive(Clone, Copy, Default)]
struct ResourceCount {
    clusters: u64,
    machines: u64,
    snapshots: u64,
    drains: u64,
}

/// All conductors with their shares.
struct Shares {
    rows: Vec<ConductorRow>,
    living: LivingConductors,
    counts: HashMap<String, ResourceCount>,
}

impl Shares {
    async fn read(store: &Store, now: Timestamp) -> Result<Shares> {
        let conductors = store.conductors();
        let rows = conductors.list(now).await?;
        let living = LivingConductors::listed(&rows, &conductors);
        let mut shares = Shares { rows, living, counts: HashMap::new() };
        shares.count(&store.cluster_ids().await?, |count| &mut count.clusters);
        shares.count(&store.vm_ids().await?, |count| &mut count.machines);
        shares.count(&store.snapshot_ids().await?, |count| &mut count.snapshots);
        shares.count(&store.drain_ids().await?, |count| &mut count.drains);
        Ok(shares)
    }

    /// Counts the resources with these ids for the conductors that work on them.
    fn count<K: ShareKey>(&mut self, ids: &[K], number: fn(&mut ResourceCount) -> &mut u64) {
        for id in ids {
            if let Some(hostname) = self.living.conductor_of(id, "") {
                *number(self.counts.entry(hostname.to_owned()).or_default()) += 1;
            }
        }
    }

    fn of<'a>(&'a self, row: &'a ConductorRow) -> Share<'a> {
        let count = self.counts.get(&row.hostname).copied().unwrap_or_default();
        let ResourceCount { clusters, machines, snapshots, drains } = count;
        Share {
            hostname: &row.hostname,
            state: self.living.state_of(&row.hostname).as_str(),
            version: &row.program,
            clusters,
            machines,
            snapshots,
            drains,
            turns_of_others: row.turns,
            last_seen_at: Time(row.seen_at),
        }
    }

    fn find(&self, hostname: &str) -> Result<Share<'_>> {
        let row = self.rows.iter().find(|row| row.hostname == hostname);
        Ok(self.of(row.ok_or_else(|| missing("Conductor", hostname))?))
    }
}

#[derive(Serialize)]
struct List<'a> {
    conductors: Vec<Share<'a>>,
}

/// `GET /bedplate/v1/conductors`: lists conductors in the order in which they were first seen.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let shares = Shares::read(&app.store, (app.clock)()).await?;
    let conductors = shares.rows.iter().map(|row| shares.of(row)).collect();
    Ok(json(StatusCode::OK, &List { conductors }))
}

/// `GET /bedplate/v1/conductors/{hostname}`: shows a conductor.
async fn show(
    Request { app, .. }: Request,
    PathParam(hostname): PathParam<String>,
) -> Result<Response> {
    let shares = Shares::read(&app.store, (app.clock)()).await?;
    Ok(json(StatusCode::OK, &shares.find(&hostname)?))
}

/// `PUT /bedplate/v1/conductors/{hostname}/drain`: drains a conductor.
async fn drain(
    Request { app, .. }: Request,
    PathParam(hostname): PathParam<String>,
) -> Result<Response> {
    let outcome = app.store.conductors().drain(&hostname, (app.clock)()).await?;
    recorded(&app, &hostname, outcome).await
}

/// `DELETE /bedplate/v1/conductors/{hostname}/drain`: undrains a conductor.
async fn undrain(
    Request { app, .. }: Request,
    PathParam(hostname): PathParam<String>,
) -> Result<Response> {
    let outcome = app.store.conductors().undrain(&hostname, (app.clock)()).await?;
    recorded(&app, &hostname, outcome).await
}

/// Tells all conductors of the change, and answers with the conductor.
async fn recorded(app: &App, hostname: &str, outcome: DrainOutcome) -> Result<Response> {
    let why = match outcome {
        DrainOutcome::Recorded => {
            app.conductor.wake_conductors();
            let shares = Shares::read(&app.store, (app.clock)()).await?;
            return Ok(json(StatusCode::ACCEPTED, &shares.find(hostname)?));
        }
        DrainOutcome::Missing => return Err(missing("Conductor", hostname).into()),
        DrainOutcome::NotAlive if app.store.conductors().is_shared() => {
            format!("conductor {} is not alive", hostname.chars().take(64).collect::<String>())
        }
        DrainOutcome::NotAlive => {
            "a conductor whose database is SQLite has no other that takes its work".to_owned()
        }
        DrainOutcome::LastOfGroup(_) => {
            "no other living conductor takes the work; start another one first".to_owned()
        }
    };
    Err(ApiError::conflict(why).into())
}
