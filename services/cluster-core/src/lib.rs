#![doc = include_str!("../README.md")]

mod address;
mod ca_rotation;
mod cidr;
mod cluster;
mod cluster_lease;
mod cluster_parameters;
mod condition;
mod desired_objects;
mod drain;
mod event;
mod failure;
mod ids;
mod key;
mod kube_proxy;
mod kubernetes;
mod label;
mod ledger;
mod node_group;
mod observation;
mod options;
mod plan;
mod query;
mod quota;
mod quota_need;
mod repair;
mod request;
#[cfg(feature = "samples")]
mod requested_cluster;
mod resource;
mod resource_use;
mod rules;
#[cfg(test)]
mod sample;
mod settings;
mod status;
mod template;
mod vm;

pub use address::{
    api_address, api_name, api_name_for_members, machine_addresses, single_endpoint_warning,
    subdomain,
};
pub use ca_rotation::{
    CaRevision, CaRotationObservation, RotationStep, may_take_revision, members_without_revision,
    start_rotation,
};
pub use cidr::{Cidr, InvalidCidr};
pub use cluster::{Cluster, DesiredState, LabelsCompared};
pub use cluster_lease::{
    ClusterLease, LeaseChangeRefused, LeaseNotice, LeasePower, after_lease_stage, extend_lease,
    lease_due, lease_notice, off_problem, undo_lease,
};
pub use cluster_parameters::{ClusterParameters, NetworkDriver, VolumeDriver};
pub use condition::{Condition, ConditionKind, ConditionStatus, conditions};
pub use desired_objects::{
    ClusterSpec, DesiredObject, DesiredObjects, Listener, Reference, ResourceSpec, ServerVolume,
    desired_objects, machine_name, tag,
};
pub use drain::{
    ComputeServiceState, Drain, DrainDecision, DrainOutcome, DrainPhase, DrainRefused, DrainRules,
    DrainStep, EtcdQuorum, HostName, HostObservation, InvalidHostName, Member, MigrationAttempts,
    OwnServer, QuorumLost, RemainingServer, ServerCondition, ServerOnHost, ServerOutcome,
    ServerOwner, admit_drain, drain_turn,
};
pub use event::{Event, Severity};
pub use failure::{BackingOff, Backoff, Failure, FailureCount, backing_off, failures};
pub use ids::*;
pub use key::{BalancerPurpose, DnsName, InvalidKey, Key, Kind, MemberName, SecurityGroupRole};
pub use kube_proxy::{ProxyField, ProxyValue};
pub use kubernetes::{KubernetesVersion, UnknownVersion};
pub use label::{LABELS, Labels, LabelsError, Meaning};
pub use ledger::{LedgerEntry, LedgerOwner, LedgerState};
pub use node_group::{GroupRole, NodeGroup, NodeTaint, TaintEffect};
pub use observation::{
    AddOnsObservation, Bootstrap, CloudObject, CloudObjectDetails, CloudObjectState,
    ClusterObservation, MemberObservation, NodeHealth, Problem,
};
pub use plan::{Action, plan};
pub use query::{ClusterSort, Page, TemplateSort, VmSort};
pub use quota::{
    DefaultLimits, InvalidLimit, Limit, LimitChanges, LimitExceeded, Limits, QuotaRefused,
    QuotaScope, QuotaUsage, UnknownResource, check_lease_limit, check_quota,
};
pub use quota_need::{FlavorSize, QuotaNeed, QuotaShortage, quota_need, shortages};
pub use repair::{RepairLimits, members_to_replace, servers_to_recreate};
pub use request::{
    MOST_GROUPS, Refusal, check_another_group, check_cluster, check_group, check_not_deleting,
    check_template, resize,
};
#[cfg(feature = "samples")]
pub use requested_cluster::RequestedCluster;
pub use resource::{Amounts, Resource};
pub use resource_use::{ResourceUse, resource_uses};
pub use rules::{IngressRule, Protocol, RuleSource};
pub use settings::{Algorithm, Delivery, PodNetwork, Provider, Settings, Volume};
pub use status::{Health, Status, health, status, status_reason};
pub use template::{Owner, Template};
pub use vm::{
    ActionOrigin, FlavorTooSmall, IdleCheck, IdleSource, RequestArrival, SentRequest,
    ServerDetails, ServerObservation, ServerState, Snapshot, SnapshotImage, SnapshotOrigin,
    SnapshotRules, SnapshotState, SnapshotStep, UserData, UserDataFormat, Vm, VmAction,
    VmActionKind, VmDecision, VmEvent, VmFlavor, VmImage, VmMachine, VmObservation, VmPhase,
    VmRefusal, VmRequest, VmRules, snapshot_turn, vm_desired_objects, vm_machine, vm_plan, vm_tag,
    vm_turn,
};
