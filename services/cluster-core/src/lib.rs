#![doc = include_str!("../README.md")]

// The layers of the README, from the top: each layer imports from the layers below it only.
mod cloud_calls;
mod cluster_turn;

mod drain;
mod vm;

mod backup_plan;
mod ca_rotation;
mod cluster_lease;
mod cluster_request;
mod conclusion;
mod conditions;
mod failure;
mod group_request;
mod notification;
mod plan;
mod quota;
mod quota_need;
mod reboot;
mod renewal;
mod repair;
mod request;
#[cfg(feature = "samples")]
mod requested_cluster;
mod resource_use;
mod restore_plan;
mod roll_step;
#[cfg(test)]
mod sample;
mod status;
mod template_request;
mod upgrade_request;

mod address;
mod boot_source;
mod desired_objects;
mod rules;

mod cluster;
mod cluster_spec;
mod event;
mod labels_compared;
mod lease_notice;
mod ledger;
mod node_group;
mod roll;
mod rolling_group;
mod template;

mod backup;
mod ca_revision;
mod condition;
mod desired_object;
mod desired_state;
mod failure_count;
mod ingress_rule;
mod member_certificates;
mod member_reboot;
mod observation;
mod project_observation;
mod record_change;
mod reported_health;
mod restore;
mod server_state;
mod turn_pauses;

mod cidr;
mod cluster_parameters;
mod flavor_size;
mod ids;
mod key;
mod kube_proxy;
mod kubernetes;
mod label;
mod options;
mod query;
mod resource;
mod settings;

pub use address::{
    api_address, api_name, api_name_for_members, machine_addresses, private_api_warning,
    single_endpoint_warning, subdomain,
};
pub use backup::{Backup, BackupContents, BackupOrigin, BackupState, BackupStep, BackupWork};
pub use backup_plan::{
    BackupResult, BackupRules, BackupSchedule, BackupTask, backup_task, backups_to_delete,
    begin_backup, delete_backup, finish_backup, request_backup, transfer_time,
};
pub use boot_source::{BootSource, boot_source, data_volumes};
pub use ca_revision::{CaRevision, RotationStep};
pub use ca_rotation::{may_take_revision, members_without_revision, start_rotation};
pub use cidr::{Cidr, InvalidCidr};
pub use cloud_calls::{
    ActionChange, CallFailure, CallResults, Capacity, CloudGoal, CloudProgress, Ledger,
    LedgerMatch, LedgerUpdate, NextCalls, ObjectOwner, TurnCalls, cluster_progress,
    may_reuse_observation, next_calls, next_turn, pause_after,
};
pub use cluster::{Cluster, ClusterLease, LeasePower};
pub use cluster_lease::{
    LeaseChangeRefused, after_lease_stage, extend_lease, grant_lease, lease_due, off_problem,
    undo_lease,
};
pub use cluster_parameters::{ClusterParameters, NetworkDriver, VolumeDriver};
pub use cluster_request::{ClusterRequest, LabelsRequest, health_reason, health_status};
pub use cluster_spec::ClusterSpec;
pub use cluster_turn::{
    ClusterAction, ClusterOutcome, ClusterRecords, ClusterRules, ClusterUpdate, ClusterWork,
    after_cluster_actions, plan_cluster,
};
pub use condition::{Condition, ConditionKind, ConditionStatus};
pub use conditions::conditions;
pub use desired_object::{
    DesiredObject, DesiredObjects, Listener, Reference, ResourceSpec, ServerVolume,
};
pub use desired_objects::{desired_objects, machine_name, tag};
pub use desired_state::DesiredState;
pub use drain::{
    ComputeServiceState, Drain, DrainAction, DrainObservation, DrainOutcome, DrainPhase,
    DrainRefused, DrainRules, EtcdQuorum, HostName, HostObservation, InvalidHostName, Member,
    MigrationAttempts, OwnServer, QuorumLost, RemainingServer, ServerCondition, ServerOnHost,
    ServerOutcome, ServerOwner, admit_drain, after_drain_actions, plan_drain,
};
pub use event::{Event, Severity};
pub use failure::{Backoff, backing_off, failures};
pub use failure_count::FailureCount;
pub use flavor_size::FlavorSize;
pub use group_request::{GroupRequest, changed_group, label_changes, node_labels};
pub use ids::*;
pub use ingress_rule::{IngressRule, Protocol, RuleSource};
pub use key::{BalancerPurpose, DnsName, InvalidKey, Key, Kind, MemberName, SecurityGroupRole};
pub use kube_proxy::{ProxyField, ProxyValue};
pub use kubernetes::{KubernetesVersion, UnknownVersion};
pub use label::{LABELS, Labels, LabelsError, Meaning, unknown_labels_warning};
pub use labels_compared::LabelsCompared;
pub use lease_notice::{LeaseNotice, lease_notice};
pub use ledger::{LedgerEntry, LedgerOwner, LedgerState};
pub use member_certificates::{LeafCertificate, MemberCertificates};
pub use member_reboot::{MemberReboot, RebootPhase};
pub use node_group::{GroupRole, NodeGroup, NodeTaint, TaintEffect};
pub use notification::cluster_notification;
pub use observation::{
    AddOnsObservation, BackingOff, Bootstrap, CaRotationObservation, CloudObject,
    CloudObjectDetails, CloudObjectState, ClusterObservation, Failure, MemberObservation,
    NodeHealth, Problem,
};
pub use plan::{Action, plan};
pub use project_observation::ProjectObservation;
pub use query::{ClusterSort, Page, TemplateSort, VmSort};
pub use quota::{
    DefaultLimits, InvalidLimit, Limit, LimitChanges, LimitExceeded, Limits, QuotaRefused,
    QuotaScope, QuotaUsage, UnknownResource, check_lease_limit, check_quota,
};
pub use quota_need::{QuotaNeed, QuotaShortage, quota_need, shortages};
pub use reboot::{RebootAnswer, RebootDecision, ask_reboot, end_reboot};
pub use record_change::RecordChange;
pub use renewal::{
    CertificateReport, RenewalAnswer, RenewalDecision, RenewalStage, answer_certificates,
};
pub use repair::{RepairLimits, members_to_replace, servers_to_recreate};
pub use reported_health::{Health, ReportedHealth};
pub use request::{
    MOST_GROUPS, Refusal, check_another_group, check_can_resize, check_cluster, check_group,
    check_not_deleting, check_template, resize, without_group,
};
#[cfg(feature = "samples")]
pub use requested_cluster::RequestedCluster;
pub use resource::{Amounts, Resource};
pub use resource_use::{ResourceUse, resource_uses};
pub use restore::{Restore, RestorePhase};
pub use restore_plan::{RestoreForce, start_restore};
pub use roll::{GroupParameters, Roll, RollOrigin};
pub use server_state::{ServerDetails, ServerState};
pub use settings::{Algorithm, Delivery, PodNetwork, Provider, Settings, Volume};
pub use status::{
    Status, group_status, group_status_reason, health, reported_health, status, status_reason,
};
pub use template::{Owner, Template};
pub use template_request::{api_port, default_name, name_servers, network_driver, volume_driver};
pub use turn_pauses::TurnPauses;
pub use upgrade_request::{
    PlannedRoll, RollChange, UpgradeRequest, UpgradeScope, after_roll, pause_roll, planned_rolls,
    resume_roll, roll_back, roll_growth,
};
pub use vm::{
    ActionOrigin, FlavorTooSmall, IdleCheck, IdleSource, RequestArrival, SentRequest,
    ServerObservation, Snapshot, SnapshotAction, SnapshotImage, SnapshotObservation,
    SnapshotOrigin, SnapshotOutcome, SnapshotRules, SnapshotState, SnapshotUpdate, UserData,
    UserDataFormat, Vm, VmAction, VmActionKind, VmCall, VmCallResult, VmCloudWork, VmEvent,
    VmFlavor, VmImage, VmMachine, VmPhase, VmRecords, VmRefusal, VmRequest, VmRules, VmUpdate,
    after_snapshot_actions, after_vm_calls, grant_vm_lease, plan_snapshot, plan_vm,
    vm_desired_objects, vm_machine, vm_plan, vm_tag,
};
