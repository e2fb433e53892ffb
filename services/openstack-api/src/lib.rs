#![doc = include_str!("../README.md")]

mod auth;
mod body;
mod error;
mod htpasswd;
mod json;
mod links;
mod manners;
mod microversion;
mod origin;
mod paging;
mod patch;
mod query;
mod routes;
mod segment;
mod time;
mod versions;

pub use auth::{Auth, Caller, Exposed};
pub use body::Strict;
pub use error::{ApiError, Envelope, Kind};
pub use htpasswd::{Htpasswd, HtpasswdError};
pub use json::{json, json_of};
pub use links::Links;
pub use manners::{Manners, RequestId, apply};
pub use microversion::{Dialect, Microversion, NotAcceptable};
pub use origin::{Forwarded, Origin, Scheme};
pub use paging::{Direction, MAX_LIMIT, Paging, next_link};
pub use patch::{Op, Operation, apply as apply_patch};
pub use query::{Query, flag};
pub use routes::{Guarded, Handle, Routes};
pub use segment::Segment;
pub use time::Time;
pub use versions::{Version, document};
