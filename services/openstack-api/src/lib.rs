#![doc = include_str!("../README.md")]

#[cfg(feature = "conformance")]
pub mod conformance;

mod api_config;
mod audit_routes;
mod health_routes;
mod key_routes;
mod openapi_document;
mod reauthentication;
mod service_state;
mod shared_routes;
mod versions;
mod webhook_routes;

mod routes;

mod admission;
mod body;

mod access;
mod auth;
mod browser_check;
mod keystone;
mod limits;
mod policy;
mod request_recorder;
mod request_span;
mod security_headers;
mod socket_tickets;

mod caller;
mod htpasswd;
mod rule;

mod json;
mod json_shape;
mod links;
mod listing;
mod microversion;
mod origin;
mod paging;
mod patch;
mod query;
mod segment;
mod shown;
mod time;
mod trusted_proxies;
mod unique_keys;

mod error;
mod request_id;

pub use access::{AccessError, AuthConfig, AuthKind, KeystoneAccess};
pub use admission::{AdmissionRefused, admit};
pub use api_config::{ApiConfig, ApiSettings, apply};
pub use audit::Trail;
pub use auth::{Auth, ListenerRefused, PlainHttp};
pub use body::{JsonPatch, StrictJson};
pub use browser_check::{AllowedHostNames, BrowserCheck, HostName};
pub use caller::{AccessScope, Caller};
pub use error::{ApiError, Envelope, Kind, chain};
pub use health_routes::{DatabaseHealth, Health, HealthSource, health_routes};
pub use htpasswd::{Htpasswd, HtpasswdError};
pub use json::{WriteJson, accepted_at, json, json_field, json_of, with_location};
pub use json_shape::{JsonShape, Shaped};
pub use key_routes::{KeyRotation, key_file, key_routes};
pub use keystone::{Keystone, callers_token};
pub use limits::{CredentialSource, Guess, Guesses, Limits, Place, PlaceCounts, Ticket};
pub use links::Links;
pub use listing::{ListPart, ListRequest, Listing, NextLink, PartFuture, PartRequest, list};
pub use microversion::{Microversion, NotAcceptable, VersionHeaders};
pub use openapi_document::ApiDescription;
pub use openstack::request_id;
pub use origin::{Forwarded, Origin, Scheme};
pub use paging::{Direction, MAX_LIMIT, Paging, next_link};
pub use patch::{Op, Operation, apply as apply_patch};
pub use policy::{ApiState, RequiredAccess, ResourceOwnership};
pub use query::{Query, flag};
pub use reauthentication::SessionCheck;
pub use request_id::RequestId;
pub use request_recorder::ConnectionEndRecorder;
pub use routes::{Authenticated, Guarded, Hidden, PolicyRow, PolicyTable, REFUSAL, Route, Routes};
pub use rule::{Relation, Role, Rule};
pub use segment::PathParam;
pub use socket_tickets::{OpenedByTicket, TICKET_LIFETIME, TicketIssuer};
pub use spans::current as current_trace;
pub use time::Time;
pub use trusted_proxies::TrustedProxies;
pub use unique_keys::check_unique_keys;
pub use versions::{ApiVersions, VersionLayout, version_routes};
pub use webhook_routes::{DeadEventState, SHOWN_DEAD, WebhookSource, WebhookState, webhook_routes};
