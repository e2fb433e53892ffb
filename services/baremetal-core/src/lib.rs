#![doc = include_str!("../README.md")]

mod allocation;
mod boot;
mod boot_again;
mod change;
mod console;
mod drain_needed;
mod drain_request;
mod driver;
mod elapsed;
mod explain;
mod failure;
mod hypervisor;
mod ids;
mod inspection;
mod instance;
mod lending;
mod node;
mod plan;
mod port;
mod profile;
mod query;
mod rack;
mod record;
mod request;
mod reservation;
mod secret;
mod state;
mod traits;
mod work;

pub use allocation::{
    Allocation, AllocationState, BackfillMismatch, NodePool, UnknownAllocationState, assign,
    backfill, check_release, ended_allocation, release,
};
pub use boot::Boot;
pub use boot_again::boot_again;
pub use change::{ChangeRefused, check_change, check_delete, check_idle};
pub use console::{NoConsole, switch_console};
pub use drain_needed::{
    check_compute_host, compute_host, power_change_stops_servers, verb_stops_servers,
};
pub use drain_request::{
    AfterDrain, DrainFate, DrainOwner, DrainRequest, DrainSeen, DrainStage, DrainStep,
    NewDrainRequest, drain_refused, drain_stuck, end_maintenance_drain, plan_leaving,
    wait_for_drain,
};
pub use driver::{
    BootInterface, CREDENTIALS, Credential, Driver, InspectInterface, Interface, UnknownDriver,
};
pub use elapsed::elapsed;
pub use explain::{CurrentTask, Explanation, current_task, explain};
pub use failure::{Failure, Problem, Reason};
pub use hypervisor::{
    AggregateSeen, CloudSeen, EarlierReport, HostPlacement, Hypervisor, HypervisorSeen, JoinAction,
    JoinState, JoinStep, ServiceSeen, join_again, plan_join,
};
pub use ids::{
    AllocationKind, AllocationUuid, HistoryUuid, InvalidName, NodeIdent, NodeKind, NodeName,
    NodeUuid, PortKind, PortUuid, WorkKind, WorkUuid,
};
pub use inspection::{apply_bmc_inventory, apply_inventory};
pub use instance::{ConfigDrive, Image, check_boot, check_deploy, image, parse_config_drive};
pub use lending::{
    LeaseDrain, LendError, LendRequest, LendingStep, NodeLease, drain_noted, end_held, extend,
    lend, plan_lending, returned, undo, visible_reason, with_stage_taken,
};
pub use node::{Maintenance, Node, PowerRequest, RackLocation};
pub use plan::{Action, AgentSeen, CommandSeen, Observed, PowerSeen, Step, Timeouts, plan};
pub use port::Port;
pub use profile::{
    BaseConfig, Bridge, ComputeSettings, CpuMode, Hugepages, HypervisorMachine, HypervisorSettings,
    InvalidProfile, Iommu, JoinLimits, KernelArgument, KeystoneSettings, MessageBus, NameSource,
    NeutronAgent, PageSize, PciDevice, Placement, Profile, ProfileKind, SecretText, Storage,
    Virtualization, check_profile, config_drive,
};
pub use query::{
    AllocationFilter, AllocationSort, NodeFilter, NodeSort, Page, PortFilter, PortSort,
};
pub use rack::{Rack, RackGoal, RackProgress, RackStep, RackTarget, plan_rack, rack_progress};
pub use record::{Discovery, HistoryEntry, InspectionReport, Severity};
pub use request::{
    RequestRefused, Verb, fail_work, finish_work, power_step_done, request_power, request_verb,
    start_next_task,
};
pub use reservation::{Reservation, ReservationRequest, reserve};
pub use secret::is_secret;
pub use state::{Event, IllegalEvent, State, TRANSITIONS, UnknownState, mermaid};
pub use traits::{InvalidTrait, Trait};
pub use work::{AgentCommand, Task, Work};
