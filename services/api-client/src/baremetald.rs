//! The answers of baremetald.

mod conductor;
mod discovery;
mod explanation;
mod firmware;
mod import;
mod node;
mod overview;
mod plan;
mod profile;
mod rack;
mod reservation;

pub use conductor::Conductor;
pub use discovery::{AcceptedDiscovery, Discoveries, Discovery, Neighbour};
pub use explanation::{Explanation, LastSeen, Location, Observation};
pub use firmware::{BiosSetting, FirmwareComponent};
pub use import::ImportAnswer;
pub use node::{
    EventLog, EventLogEntry, History, HistoryEvent, Inventory, Node, NodeLease, Port, Ports,
    SensorReading, Sensors, Validation, Vif, VirtualDrive,
};
pub use overview::{NodeCounts, NodesInState};
pub use plan::{OfferedStep, OfferedSteps, Plan, PlannedStep, PlannedTask, StepArgument};
pub use profile::{JoinTimeouts, Keystone, PlaceName, Placement, Profile, ProfileSettings};
pub use rack::{
    BringUp, EnrolledMachine, Enrolment, Failure, GoalProgress, Hypervisor, Rack, RackGoal,
    RackMachine, RackSummary, Task, TaskProgress,
};
pub use reservation::{Allocation, Reservation, ReservedNode};
