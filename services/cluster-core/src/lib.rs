#![doc = include_str!("../README.md")]

mod address;
mod allowance;
#[cfg(feature = "samples")]
mod asked;
mod authorities;
mod blueprint;
mod cidr;
mod cluster;
mod condition;
mod drain;
mod event;
mod holding;
mod ids;
mod key;
mod kube_proxy;
mod kubernetes;
mod label;
mod ledger;
mod lending;
mod need;
mod node_group;
mod options;
mod plan;
mod query;
mod repair;
mod request;
mod resource;
mod rules;
#[cfg(test)]
mod sample;
mod seen;
mod setback;
mod settings;
mod shape;
mod status;
mod template;
mod vm;

pub use address::{
    api_address, api_name, api_name_of_machines, lone_endpoint, machine_addresses, subdomain,
};
pub use allowance::{
    Account, Defaults, Denial, Excess, InvalidLimit, Limit, LimitChanges, Limits, UnknownResource,
    Whose, admit, admit_lease,
};
#[cfg(feature = "samples")]
pub use asked::Asked;
pub use authorities::{Authorities, AuthoritiesSeen, RotationStep, may_take, rotate, waiting};
pub use blueprint::{Blueprint, NetworkDriver, VolumeDriver};
pub use cidr::{Cidr, InvalidCidr};
pub use cluster::{Cluster, Desire, LabelsCompared};
pub use condition::{Condition, ConditionKind, Truth, conditions};
pub use drain::{
    Attempt, Carried, Drain, DrainOutcome, DrainPhase, DrainRefused, DrainRules, DrainStep,
    DrainTurned, Fate, HostName, HostSeen, InvalidHostName, Known, Left, Member, Quorum,
    QuorumLost, ServerCondition, ServerOnHost, ServiceSeen, admit_drain, drain_turn,
};
pub use event::{Event, Severity};
pub use holding::{Holding, holdings};
pub use ids::*;
pub use key::{Balancer, InvalidKey, Key, Kind, MachineRef, Named, Role};
pub use kube_proxy::{ProxyField, ProxyValue};
pub use kubernetes::{KubernetesVersion, UnknownVersion};
pub use label::{LABELS, Labels, LabelsError, Meaning};
pub use ledger::{Holder, LedgerEntry, LedgerState};
pub use lending::{
    LeaseTold, LendError, Lending, Rest, extend_lease, lease_due, lease_taken, lease_told,
    off_problem, undo_lease,
};
pub use need::{FlavorSize, Need, Shortage, need, shortages};
pub use node_group::{GroupRole, NodeGroup, NodeTaint, TaintEffect};
pub use plan::{Action, plan};
pub use query::{ClusterSort, Page, TemplateSort, VmSort};
pub use repair::{RepairLimits, late, replaceable};
pub use request::{
    MOST_GROUPS, Refusal, check_another_group, check_cluster, check_group, check_stays,
    check_template, resize,
};
pub use resource::{Amounts, Resource};
pub use rules::{Peer, Protocol, Rule};
pub use seen::{
    AddOnsSeen, Bootstrap, Facts, Found, FoundState, MachineSeen, NodeHealth, Problem, Seen,
};
pub use setback::{Backoff, Failure, Held, Setback, failures, held};
pub use settings::{Algorithm, Delivery, PodNetwork, Provider, Settings, Volume};
pub use shape::{
    ClusterSpec, Disk, Listener, Object, Reference, Shape, Thing, machine_name, shape, tag,
};
pub use status::{Health, Status, health, status, status_reason};
pub use template::{Owner, Template};
pub use vm::{
    Arrival, Asker, Errand, ErrandKind, Idle, IdleBy, NotSmaller, Sent, ServerFacts, ServerIs,
    ServerSeen, Snapshot, SnapshotNext, SnapshotRules, SnapshotSeen, SnapshotState, SnapshotWhy,
    Told, Turned, UserData, Vm, VmAsk, VmEvent, VmFlavor, VmImage, VmLook, VmMachine, VmPhase,
    VmRefusal, VmRules, snapshot_turn, vm_machine, vm_plan, vm_shape, vm_tag, vm_turn,
};
