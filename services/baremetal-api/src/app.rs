//! The state shared by all handlers.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use baremetal_conductor::Conductor;
use baremetal_store::Store;
use jiff::Timestamp;
use lease::Terms;
use openstack_api::{ApiSettings, Auth, PlaceCounts};
use url::Url;

use crate::error::Error;

/// The state shared by all handlers.
#[derive(Clone)]
pub struct App {
    pub store: Store,
    pub conductor: Conductor,
    /// Returns the current time.
    pub clock: fn() -> Timestamp,
    pub auth: Auth,
    /// How many consoles each user has open.
    pub lookers: PlaceCounts,
    pub settings: Settings,
}

/// The settings of an operator.
#[derive(Clone, Debug)]
pub struct Settings {
    pub api: ApiSettings,
    /// The timeout of a power change if the client sets none.
    pub power_timeout: Duration,
    /// How many consoles one caller may have open.
    pub consoles_each: NonZeroUsize,
    /// The page of noVNC that opens graphical consoles; `None` if there is none.
    pub novnc_url: Option<Url>,
    /// How many allocations a project may have.
    pub allocations_each: NonZeroU32,
    pub reservations: Reservations,
    /// Whether the API serves the requests of agents.
    pub serves_agents: bool,
}

/// The limits of reservations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reservations {
    /// How many nodes a project may have reserved.
    pub nodes_per_project: u32,
    /// The default and the maximum length of a lease.
    pub lease: Terms,
}

openstack_api::service_state!(App, Error, Operators);
