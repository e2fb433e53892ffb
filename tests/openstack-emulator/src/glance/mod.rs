//! Glance v2: images.

mod access;
mod data;
mod image;
mod member;
mod routes;

pub(crate) use data::{arrived, failed};
pub(crate) use image::{plant, snapshot};
pub(crate) use routes::answer;
