//! `/bedplate/v1/webhooks`: the webhooks that get notifications, and the events that wait for each or were given up. No answer contains a
//! URL, which may have a token in its path.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use uuid::Uuid;

use crate::policy::ApiState;
use crate::{
    ApiError, Caller, JsonShape, RequiredAccess, Route, Routes, Shaped, Time, json_field, shaped,
};

shaped! {
    /// A webhook with its events.
    #[derive(Serialize)]
    pub struct WebhookState {
        pub name: String,
        /// False for a webhook that only earlier configurations name.
        pub configured: bool,
        /// The number of events that wait.
        pub waiting: u64,
        /// When the oldest of them was written.
        pub waiting_since: Option<Time>,
        /// The number of events that were given up and are kept.
        pub dead: u64,
        /// The events that were given up last, the newest first.
        pub last_dead: Vec<DeadEventState>,
    }
}

shaped! {
    /// An event that was given up.
    #[derive(Serialize)]
    pub struct DeadEventState {
        pub id: Uuid,
        pub event_type: String,
        /// The id of the object that the event is about.
        pub subject: String,
        pub time: Time,
        pub dead_at: Time,
        /// Why the last attempt failed.
        pub problem: String,
    }
}

impl WebhookState {
    /// A configured webhook without events.
    pub fn configured(name: String) -> Self {
        WebhookState {
            name,
            configured: true,
            waiting: 0,
            waiting_since: None,
            dead: 0,
            last_dead: Vec::new(),
        }
    }
}

/// How many dead events an answer shows of each webhook.
pub const SHOWN_DEAD: u32 = 20;

/// A service that sends notifications to webhooks.
pub trait WebhookSource: Clone + Send + Sync + 'static {
    /// Returns the configured webhooks, and those that still have events.
    fn webhooks(&self) -> impl Future<Output = Result<Vec<WebhookState>, ApiError>> + Send;
}

/// The routes of this file.
pub fn webhook_routes<S: WebhookSource + ApiState>() -> Routes<S>
where
    crate::Auth: axum::extract::FromRef<S>,
{
    let list = Route::get("List the webhooks with their events", list::<S>)
        .needs(RequiredAccess::Administer);
    let shape = JsonShape::list(WebhookState::shape());
    Routes::new("bedplate")
        .at("/bedplate/v1/webhooks", [list.returns(JsonShape::object([("webhooks", shape)]))])
}

/// `GET /bedplate/v1/webhooks`: needs an administrator.
async fn list<S: WebhookSource>(
    _caller: Caller,
    State(app): State<S>,
) -> Result<Response, ApiError> {
    Ok(json_field(StatusCode::OK, "webhooks", &app.webhooks().await?))
}
