//! Glance: images, what is known of them, and their bytes.

pub mod images;
pub mod upload;

use crate::service::Service;

const SERVICE: Service = Service::Image;

/// The most that Glance lists in a page; its own default is 25.
const PAGE: &str = "1000";
