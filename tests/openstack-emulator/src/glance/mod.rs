//! Glance v2: images.

mod data;
mod image;
mod member;
mod routes;
mod types;

pub(crate) use data::{arrived, failed};
pub(crate) use image::{plant, snapshot};
pub(crate) use routes::answer;
