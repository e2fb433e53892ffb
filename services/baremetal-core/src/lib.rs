#![doc = include_str!("../README.md")]

mod allocation;
mod boot;
mod boot_again;
mod change;
mod console;
mod driver;
mod elapsed;
mod explain;
mod failure;
mod guard;
mod hypervisor;
mod ids;
mod inspection;
mod instance;
mod leaving;
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
    Allocation, AllocationState, Mismatch, Pool, UnknownAllocationState, backfill, check_release,
    occupy, release, released,
};
pub use boot::Boot;
pub use boot_again::boot_again;
pub use change::{Frozen, check_change, check_delete, check_idle};
pub use console::{NoConsole, switch_console};
pub use driver::{
    BootInterface, CREDENTIALS, Credential, Driver, InspectInterface, Interface, UnknownDriver,
};
pub use elapsed::elapsed;
pub use explain::{CurrentTask, Explanation, current_task, explain};
pub use failure::{Failure, Problem, Reason};
pub use guard::{check_compute_host, compute_host, switches_off, takes_out};
pub use hypervisor::{
    AggregateSeen, CloudSeen, Host, Hypervisor, HypervisorSeen, JoinAction, JoinState, JoinStep,
    Report, ServiceSeen, join_again, plan_join,
};
pub use ids::{
    AllocationKind, AllocationUuid, HistoryUuid, InvalidName, NodeIdent, NodeKind, NodeName,
    NodeUuid, PortKind, PortUuid, WorkKind, WorkUuid,
};
pub use inspection::{note_bmc_inventory, note_inventory};
pub use instance::{ConfigDrive, Image, check_boot, check_deploy, image, parse_config_drive};
pub use leaving::{
    AfterDrain, DrainOwner, DrainSeen, LeaveRequest, Leaving, LeavingEnd, LeavingStage,
    LeavingStep, come_back, held, leave, plan_leaving, stays,
};
pub use lending::{
    LeaseDrain, LendError, Lending, LendingStep, Loan, drain_noted, end_held, extend, given_back,
    lend, lending_taken, plan_lending, told, undo,
};
pub use node::{Maintenance, Node, Place, PowerRequest};
pub use plan::{Action, AgentSeen, CommandSeen, Observed, PowerSeen, Step, Timeouts, plan};
pub use port::Port;
pub use profile::{
    BaseConfig, Bridge, ComputeSettings, CpuMode, Guest, Hugepages, HypervisorSettings,
    InvalidProfile, Iommu, JoinLimits, KernelArgument, KeystoneSettings, MessageBus, Named,
    NeutronAgent, PageSize, PciDevice, Placement, Profile, ProfileKind, Secret, Storage,
    Virtualization, check_profile, config_drive,
};
pub use query::{
    AllocationFilter, AllocationSort, NodeFilter, NodeSort, Page, PortFilter, PortSort,
};
pub use rack::{Rack, RackGoal, RackStep, Reach, Way, plan_rack, way};
pub use record::{Discovery, HistoryEntry, Inspected, Severity};
pub use request::{
    Refusal, Verb, ask, ask_power, finish, give_up, power_step_done, start_next_task,
};
pub use reservation::{Order, Reservation, reserve};
pub use secret::is_secret;
pub use state::{Event, IllegalEvent, State, TRANSITIONS, UnknownState, mermaid};
pub use traits::{InvalidTrait, Trait};
pub use work::{AgentCommand, Task, Work};
