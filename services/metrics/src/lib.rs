#![doc = include_str!("../README.md")]

mod page;

mod clusters;
mod nodes;
mod requests;
mod turns;

mod durations;

pub use clusters::ClusterGauges;
pub use nodes::{NodeCount, NodeGauges};
pub use page::{CONTENT_TYPE, Metrics};
pub use requests::{RequestMetrics, RequestTimer};
pub use turns::TurnMetrics;
