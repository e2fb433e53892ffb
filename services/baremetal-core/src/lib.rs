#![doc = include_str!("../README.md")]

mod explain;
mod join;
mod lease_end;
mod leaving;
mod plan;
mod preview;

mod acceptance;
mod boot_again;
mod crawl;
mod drain;
mod drain_needed;
mod enrolment;
mod host_placement;
mod lending;
mod machine_names;
mod node_request;
mod node_update;
mod notification;
mod rack;
mod request;
mod reservation;
mod take_out;

mod agent_ramdisk;
mod bmc_answer;
mod bmc_identity;
mod bmc_password;
mod boot_setting;
mod bootc;
mod change;
mod checksum_file;
mod conductor_group;
mod conductor_step;
mod console;
mod deploy_check;
mod deploy_method;
mod fast_track;
mod import;
mod indicator;
mod inspection;
mod instance;
mod listed_steps;
mod lldp;
mod local_link;
mod logical_disk;
mod maintenance;
mod network_data;
mod oci_image;
mod oci_manifest;
mod oci_reference;
mod own_image;
mod partition_image;
mod password;
mod profile_check;
mod raid;
mod raid_plan;
mod raid_request;
mod raid_step;
mod request_refused;
mod rescue_password;
mod service_network;
mod subscription;
mod tasks;
mod unheeded;
mod vendor;
mod vif;
mod wanted_boot;

mod allocation;
mod attribute;
mod bios;
mod bios_change;
mod boot;
mod chassis;
mod deploy_template;
mod inspection_rule;
mod node;
mod port;
mod port_group;
mod query;
mod record;
mod runbook;

mod boot_setting_request;
mod child_step;
mod drain_request;
mod firmware_component;
mod firmware_update;
mod hypervisor;
mod network_changes;
mod node_lease;
mod password_rotation;
mod power_request;
mod profile;
mod rack_location;
mod raid_change;
mod step;
mod verb;
mod volume;
mod wanted_steps;
mod work;

mod bmc_clock;
mod driver;
mod elapsed;
mod failure;
mod fault;
mod ids;
mod image_url;
mod interface;
mod secret;
mod state;
mod stored;
mod traits;

pub use acceptance::{
    Acceptance, AcceptanceFacts, AcceptanceRequest, BmcCredentials, MissingAddress, bmc_addresses,
    plan_acceptance,
};
pub use agent_ramdisk::{AgentKernel, BOOT_PROPERTIES, KernelWord, check_agent_ramdisk};
pub use allocation::{
    Allocation, AllocationState, BackfillMismatch, NodePool, Reservation, UnknownAllocationState,
    assign, backfill, ended_allocation, release,
};
pub use attribute::{
    Attribute, AttributeValue, Attributes, InvalidValue, Store, attribute, parse_flag,
    parse_object, parse_text, reason_of, store_mark, store_reason,
};
pub use bios::{
    BiosRefused, BiosSetting, MOST_BIOS_SETTINGS, NewBiosSetting, apply_bios_settings,
    parse_bios_settings,
};
pub use bios_change::{
    BiosProblem, BiosValuesRefused, NamedAttributes, NamedValues, bios_not_applied, bios_values,
    recorded_bios_settings,
};
pub use bmc_answer::{BmcAnswer, IpmiAnswer, RedfishAnswer};
pub use bmc_clock::{ClockRefused, ClockSetting, SET_BMC_CLOCK, parse_clock_setting};
pub use bmc_identity::BmcIdentity;
pub use bmc_password::{
    new_password, new_password_length, request_password_rotation, settle_password,
};
pub use boot::Boot;
pub use boot_again::{BootAgain, boot_again};
pub use boot_setting::request_boot_setting;
pub use boot_setting_request::{BootSettingRequest, BootSettingStage};
pub use bootc::{BootableContainer, bootable_container};
pub use change::{ChangeRefused, check_change, check_delete, check_idle, check_release};
pub use chassis::Chassis;
pub use checksum_file::{ChecksumFileError, find_checksum};
pub use child_step::ChildStep;
pub use conductor_group::{InvalidGroup, check_conductor_group, parse_conductor_group};
pub use conductor_step::{
    APPLY_BIOS_SETTINGS, APPLY_RAID, CLEAR_SECURE_BOOT_KEYS, CREATE_RAID, DELETE_RAID,
    RESET_BIOS_SETTINGS, RESET_SECURE_BOOT_KEYS, UPDATE_FIRMWARE,
};
pub use console::{NoConsole, switch_console};
pub use crawl::{CrawlRange, FoundBmc, InvalidCrawlRange, crawl_targets};
pub use deploy_check::{check_boot, check_deploy};
pub use deploy_method::DeployMethod;
pub use deploy_template::{DeployTemplate, TemplatesConflict, instance_traits, with_templates};
pub use drain::{
    NewDrainRequest, drain_refused, drain_stuck, end_maintenance_drain, wait_for_drain,
};
pub use drain_needed::{
    after_drain, check_compute_host, compute_host, compute_host_name, power_change_stops_servers,
};
pub use drain_request::{
    AfterDrain, ClusterdCall, DrainFate, DrainOwner, DrainRequest, DrainSeen, DrainStage,
};
pub use driver::{CREDENTIALS, Credential, Driver, UnknownDriver};
pub use elapsed::elapsed;
pub use enrolment::{
    Enrolment, EnrolmentEffect, EnrolmentFacts, EnrolmentResult, EnrolmentRules, RackMistakes,
    plan_enrolment,
};
pub use explain::{CurrentTask, Explanation, current_task, explain};
pub use failure::{Failure, Problem, Reason};
pub use fault::Fault;
pub use firmware_component::FirmwareComponent;
pub use firmware_update::{
    AcceptedUpdate, ComponentKind, FirmwareRefused, FirmwareUpdate, UpdateInProgress, UpdateStage,
    parse_firmware_updates,
};
pub use host_placement::HostPlacement;
pub use hypervisor::{EarlierReport, Hypervisor, JoinState};
pub use ids::{
    AllocationKind, AllocationUuid, HistoryUuid, InvalidName, NodeIdent, NodeKind, NodeName,
    NodeUuid, PortKind, PortUuid, RESERVED_NODE_NAMES, WorkKind, WorkUuid,
};
pub use image_url::FILE_SCHEME;
pub use import::{ImportRefused, check_imported, check_imported_vifs};
pub use indicator::{
    IndicatorRefused, IndicatorSource, find_indicator, indicator_source, settable_state,
};
pub use inspection::{apply_bmc_inventory, apply_inventory};
pub use inspection_rule::{
    ActionOperator, Condition, ConditionOperator, InspectedMachine, InspectionRule, LogLevel,
    MAX_INSPECTION_RULES, Multiple, Operator, RuleAction, RuleChanges, RuleFailed, RuleLog,
    RuleProblem, apply_inspection_rules,
};
pub use instance::{
    ConfigDrive, Image, ImageChecksum, config_drive_of, glance_image, image, node_with_image,
    parse_config_drive,
};
pub use interface::{
    BiosInterface, BootInterface, ConsoleInterface, DeployInterface, FirmwareInterface,
    InspectInterface, Interface, Interfaces, ManagementInterface, NetworkInterface, PowerInterface,
    RaidInterface, RescueInterface, StorageInterface, UnsupportedInterface, VendorInterface,
};
pub use join::{
    AggregateSeen, CloudSeen, HypervisorSeen, JoinAction, JoinRules, ServiceSeen, after_cloud_call,
    join_again, plan_join,
};
pub use lease_end::{LeaseRules, after_lease_call, is_lease_stage_due, plan_lending};
pub use leaving::{LeavingRules, after_leaving_call, plan_leaving};
pub use lending::{
    LendError, LendRequest, drain_noted, end_held, extend, lend, returned, undo, visible_reason,
    with_stage_taken,
};
pub use listed_steps::{ListedSteps, StepPriorities};
pub use lldp::{Neighbour, neighbours};
pub use local_link::LocalLinkRefused;
pub use logical_disk::{LogicalDisk, RaidStepProblem};
pub use machine_names::{
    DnsZone, InvalidZone, NameChange, NamePlan, NamedMachine, SeenName, plan_names,
};
pub use maintenance::{power_failed, power_recovered};
pub use network_changes::{NetworkChanges, ServiceNetwork};
pub use network_data::{
    NetworkDataRefused, RamdiskNetwork, StaticAddress, StaticRoute, ramdisk_network,
};
pub use node::{MOST_PARTS, Maintenance, Node};
pub use node_lease::{LeaseDrain, NodeLease};
pub use node_request::{NodeChange, NodeRefused, Passwords, check_new_node};
pub use node_update::{InspectionChanges, NodeUpdate, Obstacle};
pub use notification::{
    Notified, PayloadVersion, RecordChange, allocation_notification, node_notifications,
    port_notification, resource_notification,
};
pub use oci_image::{OciImage, PULL_SECRET, PullSecret, check_operators_secret, oci_image};
pub use oci_manifest::{
    LARGEST_OCI_DOCUMENT, OCI_MEDIA_TYPES, OciCandidate, OciDisk, OciDocument, OciIndex,
    OciManifest, OciRefused,
};
pub use oci_reference::{
    InvalidDigest, InvalidRegistry, OCI_SCHEME, OciDigest, OciReference, OciRegistry, OciVersion,
};
pub use own_image::{OwnImage, own_image};
pub use partition_image::{
    ImageProperties, layout_at_url, layout_in_glance, layout_in_registry, mirrored_root,
};
pub use password_rotation::{AccountPassword, PasswordRotation, RotationStage};
pub use plan::{
    Action, ActionOutcome, AgentSeen, BootSettingsSeen, CommandSeen, FirmwareSeen, Observed,
    PasswordSeen, PlanRules, PowerSeen, RaidChangeSeen, RaidSeen, Timeouts, UpdateSeen,
    after_action, plan,
};
pub use port::Port;
pub use port_group::{GroupRefused, PortGroup, check_member, check_members};
pub use power_request::PowerRequest;
pub use preview::{Preview, PreviewRefused, preview};
pub use profile::{
    BaseConfig, Bridge, ComputeSettings, CpuMode, Hugepages, HypervisorMachine, HypervisorSettings,
    Iommu, JoinLimits, KernelArgument, KeystoneSettings, MessageBus, NameSource, NeutronAgent,
    PageSize, PciDevice, Placement, Profile, ProfileKind, SecretText, Storage, Virtualization,
    config_drive,
};
pub use profile_check::{InvalidProfile, check_profile};
pub use query::{
    AllocationFilter, AllocationSort, NodeFilter, NodeSort, Page, PortFilter, PortSort,
};
pub use rack::{
    Rack, RackAction, RackGoal, RackProgress, RackRequest, RackTarget, UnreadableRack, plan_rack,
    rack_progress,
};
pub use rack_location::RackLocation;
pub use raid::{
    LOGICAL_DISK_PROPERTIES, LogicalDiskProperty, RaidRefused, with_target_raid_config,
};
pub use raid_change::{AcceptedRaidChange, RaidChange, RaidStage, VolumeChange};
pub use raid_plan::plan_raid;
pub use raid_request::{RaidRequest, raid_request};
pub use raid_step::{RaidStepRefused, check_raid_step};
pub use record::{
    Discovery, DiscoveryId, HistoryEntry, InspectionReport, InvalidDiscoveryId, Severity,
};
pub use request::{
    fail_work, finish_work, power_step_done, request_power, request_verb, start_next_task,
};
pub use request_refused::RequestRefused;
pub use rescue_password::{HASHED_RESCUE_PASSWORD, check_rescue};
pub use reservation::{ReservationRequest, reserve};
pub use runbook::{Runbook, RunbookApproval, RunbookRefused, RunbookStep};
pub use secret::is_secret;
pub use service_network::{PORT_OWNER, connected_ports};
pub use state::{Event, IllegalEvent, State, TRANSITIONS, UnknownState, mermaid};
pub use step::{
    ChildNodes, DeployStep, InvalidStepName, OfferedStep, RequestedStep, Step, StepArgument,
    StepKind, StepName, StepRefused, StepRunner,
};
pub use stored::{Content, Stored, StoredFilter, StoredSort};
pub use take_out::{TakeOutRefused, check_take_out};
pub use traits::{InvalidTrait, Trait};
pub use unheeded::{Unheeded, unheeded_boot, unheeded_way};
pub use vendor::{
    VendorAnswer, VendorCall, VendorMethod, VendorRefused, check_vendor_call, driver_call_refused,
};
pub use verb::{Verb, VerbRequest};
pub use vif::{
    VifPlace, VifRefused, VifRequest, check_port_deletion, choose_place, place_of_vif, vifs,
    with_attached_vif, with_detached_vif,
};
pub use volume::{
    VolumeConnector, VolumeInUse, VolumeTarget, check_volume_change, check_volume_deletion,
};
pub use wanted_boot::declared_boot_mode;
pub use wanted_steps::WantedSteps;
pub use work::{AgentCommand, Task, Work};
