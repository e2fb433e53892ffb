#![doc = include_str!("../README.md")]

mod page;

mod bmc_calls;
mod capacity;
mod cloud_calls;
mod clusters;
mod conditions;
mod conductors;
mod nodes;
mod process;
mod requests;
mod sensors;
mod states;
mod sweeps;
mod traces;
mod turns;
mod webhooks;
mod writes;

mod durations;
mod label;

pub use bmc_calls::{BmcCall, BmcCallTimer, BmcMetrics};
pub use capacity::{CapacityGauges, ClassCount};
pub use cloud_calls::CloudMetrics;
pub use clusters::ClusterGauges;
pub use conditions::{ClusterConditions, ConditionGauges};
pub use conductors::ConductorGauges;
pub use nodes::{NodeCount, NodeGauges};
pub use page::{CONTENT_TYPE, DatabaseUp, Metrics};
pub use requests::{RequestMetrics, RequestTimer};
pub use sensors::{NodeSensors, SensorGauges, SensorSample};
pub use states::StateMetrics;
pub use sweeps::SweepMetrics;
pub use traces::{SpanOutcome, TraceMetrics};
pub use turns::TurnMetrics;
pub use webhooks::{EventOutcome, WebhookMetrics};
pub use writes::{WriteMetrics, WriteTimer};
