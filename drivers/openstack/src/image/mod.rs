//! Glance: images, their metadata and their data.

pub mod download;
pub mod images;
pub mod upload;

use crate::service::Service;

const SERVICE: Service = Service::Image;

/// The largest page that Glance returns; its default is 25.
const PAGE: &str = "1000";
