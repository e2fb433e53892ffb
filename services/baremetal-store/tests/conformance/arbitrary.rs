//! Strategies for arbitrary nodes and ports.

use std::time::Duration;

use baremetal_core::{
    AcceptedRaidChange, AcceptedUpdate, ActionOperator, AfterDrain, AgentCommand,
    BootSettingRequest, BootSettingStage, ChildNodes, ChildStep, Condition, ConditionOperator,
    DeployStep, DrainOwner, DrainRequest, DrainStage, Driver, EarlierReport, Failure, Fault,
    FirmwareComponent, Hypervisor, InspectionRule, Interface, Interfaces, JoinLimits, JoinState,
    LeaseDrain, Maintenance, Multiple, NetworkChanges, Node, NodeLease, NodeName, NodeUuid,
    Operator, PasswordRotation, Port, PortUuid, PowerRequest, RackLocation, RaidChange, RaidStage,
    Reason, RequestedStep, RotationStage, RuleAction, Runbook, RunbookStep, ServiceNetwork, State,
    Step, StepKind, StepName, StepRunner, Task, UpdateInProgress, UpdateStage, VolumeChange,
    WantedSteps, Work, WorkUuid,
};
use hardware::{
    ApplyTime, BootMode, BootSetting, Health, MacAddress, NewVolume, PowerChange, PowerState,
    RaidLevel,
};
use jiff::Timestamp;
use lease::{Lease, Length};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Text of any characters, including NUL and quotes.
pub(crate) fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

/// Any timestamp with microsecond precision.
fn moment() -> impl Strategy<Value = Timestamp> {
    let (first, last) = (Timestamp::MIN.as_microsecond(), Timestamp::MAX.as_microsecond());
    (first..=last).prop_map(|micros| Timestamp::from_microsecond(micros).unwrap())
}

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<[u8; 16]>().prop_map(|bytes| uuid::Builder::from_random_bytes(bytes).into_uuid())
}

fn node_id() -> impl Strategy<Value = NodeUuid> {
    uuid().prop_map(|id| id.to_string().parse().unwrap())
}

fn work_id() -> impl Strategy<Value = WorkUuid> {
    uuid().prop_map(|id| id.to_string().parse().unwrap())
}

pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Only fractions with few digits: parsing others may change their last bit.
        any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(text(), inner, 0..4).prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

fn map() -> impl Strategy<Value = Map<String, Value>> {
    btree_map(text(), json(), 0..4).prop_map(Map::from_iter)
}

fn state() -> impl Strategy<Value = State> {
    select(&State::ALL[..])
}

fn power() -> impl Strategy<Value = PowerState> {
    select(vec![PowerState::On, PowerState::Off])
}

fn step_name() -> impl Strategy<Value = StepName> {
    let interface = select(&Interface::ALL[..]);
    (interface, text()).prop_map(|(interface, step)| StepName { interface, step })
}

fn firmware_component() -> impl Strategy<Value = FirmwareComponent> {
    let versions = (text(), text(), text(), option::of(text()));
    (versions, moment(), option::of(moment())).prop_map(|(versions, created_at, updated_at)| {
        let (component, initial_version, current_version, last_version_flashed) = versions;
        FirmwareComponent {
            component,
            initial_version,
            current_version,
            last_version_flashed,
            created_at,
            updated_at,
        }
    })
}

fn update_stage() -> impl Strategy<Value = Option<UpdateStage>> {
    let text = || option::of(select(vec!["1.0".to_owned(), "/t/7".to_owned()]));
    let accepted = (text(), text(), moment(), any::<bool>());
    let accepted = accepted.prop_map(|(task, version, at, restarted)| {
        UpdateStage::Accepted(AcceptedUpdate { task, version, at, restarted })
    });
    let asking = (option::of(vec("[a-z/]{1,9}", 0..3)), text(), moment());
    let asking = asking.prop_map(|(known, version, at)| UpdateStage::Asking { known, version, at });
    option::of(prop_oneof![Just(UpdateStage::Ready), asking, accepted])
}

fn volume_change() -> impl Strategy<Value = VolumeChange> {
    let applies = || select(vec![ApplyTime::Untold, ApplyTime::Immediate, ApplyTime::OnReset]);
    let delete = (text(), text(), text(), applies());
    let delete = delete.prop_map(|(storage, volume, label, applies)| VolumeChange::Delete {
        storage,
        volume,
        label,
        applies,
    });
    let level = select(RaidLevel::ALL.to_vec());
    let size = option::of(0..u64::from(u32::MAX));
    let names = (text(), text(), vec(text(), 0..3));
    let create = (names, level, size, any::<bool>(), applies());
    let create = create.prop_map(|(names, level, size_bytes, is_root, applies)| {
        let (storage, name, drives) = names;
        let name_is_optional = is_root;
        let volume =
            NewVolume { storage, level, drives, size_bytes, name, name_is_optional, applies };
        VolumeChange::Create { volume, is_root }
    });
    prop_oneof![delete, create]
}

fn raid_task() -> impl Strategy<Value = Task> {
    let accepted = (option::of(text()), vec(text(), 0..3), moment(), option::of(moment()));
    let accepted =
        (accepted, any::<bool>()).prop_map(|((task, volumes, at, ended_at), restarted)| {
            RaidStage::Accepted(AcceptedRaidChange { task, volumes, at, ended_at, restarted })
        });
    let asking = (option::of(vec(text(), 0..3)), vec(text(), 0..3), moment());
    let asking = asking.prop_map(|(tasks, volumes, at)| RaidStage::Asking { tasks, volumes, at });
    let stage = option::of(prop_oneof![Just(RaidStage::Ready), asking, accepted]);
    let step = (map(), moment(), option::of(text()));
    (step, volume_change(), stage).prop_map(|((args, started_at, root), change, stage)| {
        let name = StepName { interface: Interface::Raid, step: "create_configuration".to_owned() };
        let (kind, runner) = (StepKind::Clean, StepRunner::Conductor);
        let step = Step { kind, runner, name, args, priority: 0, reboots: false, children: None };
        match stage {
            None => Task::ReadRaid { step, started_at, root },
            Some(stage) => Task::ChangeRaid(Box::new(RaidChange { step, change, stage })),
        }
    })
}

fn work() -> impl Strategy<Value = Work> {
    let task = prop_oneof![
        select(vec![Task::TryBmc, Task::AskBmcForInventory, Task::BootRamdisk, Task::BootDisk]),
        select(vec![Task::AwaitInventory, Task::AwaitAgent, Task::ReadBios]),
        select(vec![Task::DetachVifs, Task::BootOwnImage]),
        select(vec![Task::ReleaseVifs, Task::Connect(ServiceNetwork::Cleaning), Task::Disconnect])
            .boxed(),
        select(vec![
            Task::Agent(AgentCommand::ListSteps(StepKind::Deploy)),
            Task::Agent(AgentCommand::WriteImage),
            Task::Agent(AgentCommand::ListPartitions),
            Task::Wait { seconds: 7 },
            Task::Hold,
        ]),
        power().prop_map(Task::Power),
        (step_name(), map(), 0..200_u32, any::<bool>()).prop_map(
            |(name, args, priority, reboots)| {
                let (kind, runner) = (StepKind::Service, StepRunner::Conductor);
                Task::Step(Step { kind, runner, name, args, priority, reboots, children: None })
            }
        ),
        (step_name(), map(), moment())
            .prop_map(|(name, args, started_at)| {
                let (kind, runner) = (StepKind::Clean, StepRunner::Conductor);
                let step =
                    Step { kind, runner, name, args, priority: 0, reboots: false, children: None };
                Task::ConfirmBios { step, started_at }
            })
            .boxed(),
        (map(), moment(), update_stage()).prop_map(|(args, started_at, stage)| {
            let name = StepName { interface: Interface::Firmware, step: "update".to_owned() };
            let (kind, runner) = (StepKind::Service, StepRunner::Conductor);
            let step =
                Step { kind, runner, name, args, priority: 0, reboots: false, children: None };
            match stage {
                None => Task::ReadFirmware { step, started_at },
                Some(stage) => {
                    Task::UpdateFirmware(Box::new(UpdateInProgress { step, number: 1, stage }))
                }
            }
        }),
        prop_oneof![raid_task(), child_step()].boxed(),
    ];
    let steps = wanted_steps();
    let begun = (work_id(), vec(task, 0..6), moment(), moment());
    let so_far = (0..6usize, option::of(0..9usize), option::of(moment()), any::<bool>());
    let boots = (option::of(moment()), 0..3u32);
    (begun, so_far, boots, steps).prop_map(|(begun, so_far, boots, steps)| {
        let (id, tasks, started_at, task_started_at) = begun;
        let (cursor, intent, asked_at, by_hand) = so_far;
        let (switched_on_at, repeated_boots) = boots;
        let begun = Work { id, by_hand, steps, ..Work::new(id, tasks, started_at) };
        let begun = Work { task_started_at, cursor, intent, asked_at, ..begun };
        Work { switched_on_at, repeated_boots, ..begun }
    })
}

fn child_nodes() -> impl Strategy<Value = ChildNodes> {
    let named = vec(node_id(), 0..3);
    prop_oneof![Just(ChildNodes::All), named.prop_map(ChildNodes::Named)]
}

/// A step on child nodes, before and after it began.
fn child_step() -> impl Strategy<Value = Task> {
    (child_nodes(), any::<bool>()).prop_map(|(children, has_begun)| {
        let name = StepName { interface: Interface::Power, step: "power_on".to_owned() };
        let (kind, runner, args) = (StepKind::Clean, StepRunner::Conductor, Map::new());
        let children = Some(children);
        let step = Step { kind, runner, name, args, priority: 0, reboots: false, children };
        let asked = has_begun.then(|| vec![NodeUuid::nil()]);
        Task::StepOnChildren(Box::new(ChildStep { step, asked }))
    })
}

fn wanted_steps() -> impl Strategy<Value = WantedSteps> {
    let requested = || {
        (step_name(), map(), option::of(child_nodes()))
            .prop_map(|(name, args, children)| RequestedStep { name, args, children })
    };
    prop_oneof![
        any::<bool>().prop_map(|erases_disks| WantedSteps::Automated { erases_disks }),
        vec(requested(), 0..3).prop_map(WantedSteps::Requested),
        vec(requested(), 0..3).prop_map(WantedSteps::Service),
        vec((requested(), 0..200_u32), 0..3).prop_map(|steps| {
            let step = |(step, priority)| DeployStep { step, priority };
            WantedSteps::Deployment(steps.into_iter().map(step).collect())
        }),
    ]
}

fn power_request() -> impl Strategy<Value = PowerRequest> {
    let changes = vec![
        PowerChange::On,
        PowerChange::ForceOff,
        PowerChange::SoftOff,
        PowerChange::SoftRestart,
    ];
    (vec(select(changes), 0..3), option::of(moment()), moment())
        .prop_map(|(remaining, asked_at, deadline)| PowerRequest { remaining, asked_at, deadline })
}

fn network_changes() -> impl Strategy<Value = NetworkChanges> {
    let connected = option::of(select(&ServiceNetwork::ALL[..]));
    (connected, any::<bool>(), vec(text(), 0..3))
        .prop_map(|(connected, binds, releases)| NetworkChanges { connected, binds, releases })
}

fn boot_setting_request() -> impl Strategy<Value = BootSettingRequest> {
    let wanted = select(vec![BootSetting::Mode(BootMode::Uefi), BootSetting::SecureBoot(false)]);
    let stage = prop_oneof![
        select(vec![BootSettingStage::Asking, BootSettingStage::Accepted]),
        power().prop_map(|before| BootSettingStage::Restarted { before }),
    ];
    (wanted, stage, moment()).prop_map(|(wanted, stage, since)| BootSettingRequest {
        wanted,
        stage,
        since,
    })
}

fn password_rotation() -> impl Strategy<Value = PasswordRotation> {
    let stages = vec![
        RotationStage::Requested,
        RotationStage::Made,
        RotationStage::Asked { times: 2 },
        RotationStage::Unknown,
    ];
    let wanted = text().prop_map(|it| Map::from_iter([("redfish_password".to_owned(), it.into())]));
    (wanted, select(stages), moment()).prop_map(|(wanted, stage, since)| PasswordRotation {
        wanted,
        stage,
        since,
    })
}

fn failure() -> impl Strategy<Value = Failure> {
    (select(vec![Reason::BmcUnreachable, Reason::StepFailed, Reason::Aborted]), text())
        .prop_map(|(reason, cause)| Failure::new(reason, cause))
}

fn place() -> impl Strategy<Value = RackLocation> {
    (text(), any::<u32>(), option::of(text()), option::of(text()))
        .prop_map(|(rack, position, group, role)| RackLocation { rack, position, group, role })
}

fn maintenance() -> impl Strategy<Value = Maintenance> {
    let fault = option::of(select(Fault::ALL.to_vec()));
    (option::of(text()), fault).prop_map(|(reason, fault)| Maintenance { reason, fault })
}

fn hypervisor() -> impl Strategy<Value = Hypervisor> {
    let states = vec![JoinState::Installing, JoinState::AwaitingService, JoinState::Joined];
    let before = prop_oneof![
        Just(EarlierReport::Unknown),
        Just(EarlierReport::None),
        moment().prop_map(EarlierReport::At),
    ];
    // Host names are unique among nodes.
    let host = uuid().prop_map(|id| id.to_string());
    let named = (text(), host, option::of(text()), option::of(text()), option::of(text()));
    (named, select(states), moment(), before).prop_map(|(named, state, since, before)| {
        let (profile, host, availability_zone, aggregate, id) = named;
        let limits = JoinLimits::default();
        Hypervisor { profile, host, availability_zone, aggregate, limits, state, since, before, id }
    })
}

fn leaving() -> impl Strategy<Value = DrainRequest> {
    let change = PowerChange::SoftRestart;
    let power = AfterDrain::Power { change, timeout: Duration::from_millis(1500) };
    let then =
        select(vec![AfterDrain::Maintenance, AfterDrain::Undeploy, AfterDrain::Service, power]);
    let stages = vec![
        DrainStage::Wanted,
        DrainStage::Waiting(DrainOwner::Operator),
        DrainStage::Asking(DrainOwner::Request),
    ];
    let asked = (vec(text(), 0..3), option::of(text()), moment(), option::of(wanted_steps()));
    (text(), then, asked, select(stages)).prop_map(|(host, then, asked, stage)| {
        let (forced, asked_by, asked_at, steps) = asked;
        let project = asked_by.clone();
        let disables_ramdisk = steps.is_some();
        DrainRequest {
            host,
            then,
            steps,
            disables_ramdisk,
            forced,
            asked_by,
            project,
            asked_at,
            stage,
        }
    })
}

fn lending() -> impl Strategy<Value = NodeLease> {
    let length = (1_u64..1_000_000).prop_map(|seconds| Length::from_secs(seconds).unwrap());
    let notify = option::of("[a-z]{1,9}@[a-z]{1,9}".prop_map(|raw| raw.parse().unwrap()));
    let drain = text().prop_map(|host| LeaseDrain { host, owner: DrainOwner::Request });
    (moment(), length, text(), notify, any::<bool>(), option::of(drain)).prop_map(|it| {
        let (at, length, by, notify, reserved, drain) = it;
        let warned = lease::LeaseStage::Warn { ends_at: at };
        let lease = Lease::new(at, length).with_stage_taken(&warned, at);
        NodeLease { lease, by, notify, reserved, drain }
    })
}

/// Any node, with version 1.
pub(crate) fn node() -> impl Strategy<Value = Node> {
    let name = option::of("[A-Za-z0-9._~-]{1,30}".prop_map(|raw| NodeName::try_from(raw).unwrap()));
    let chosen = btree_map(select(&Interface::ALL[..]), select(&Driver::ALL[..]), 0..4);
    let interfaces = chosen.prop_map(|chosen| {
        let mut interfaces = Interfaces::default();
        for (interface, driver) in chosen {
            assert!(interfaces.choose(interface, driver.default(interface)));
        }
        interfaces
    });
    let written = (node_id(), moment(), option::of(moment()), select(&Driver::ALL[..]));
    let documents = (map(), interfaces, map(), map(), map(), btree_set(text(), 0..3));
    let said = (name, option::of(text()), option::of(text()), text(), option::of(text()));
    let tenants =
        (option::of(text()), option::of(text()), option::of(lending()), option::of(text()));
    let allocation = option::of(uuid().prop_map(|id| id.to_string().parse().unwrap()));
    let relations = (option::of(uuid()), option::of(node_id()), option::of(uuid()), allocation);
    let guards = (
        option::of(any::<bool>()),
        option::of(text()),
        option::of(text()),
        any::<bool>(),
        option::of(maintenance()),
        option::of(place()),
        (option::of(hypervisor()), option::of(leaving())),
        any::<bool>(),
    );
    let life = (state(), option::of(state()), option::of(moment()), option::of(power()));
    let doing = (
        option::of(power_request()).boxed(),
        option::of(work()).boxed(),
        option::of(failure()),
        (
            option::of(select(vec![BootMode::Bios, BootMode::Uefi])),
            option::of(any::<bool>()),
            option::of(select(vec![Health::Ok, Health::Critical])),
            vec(firmware_component(), 0..3),
        ),
        (option::of(boot_setting_request()), option::of(password_rotation()), network_changes())
            .boxed(),
        option::of(moment()),
        option::of(moment()),
        [map(), map(), map()],
    );
    (written, documents, said, tenants, relations, guards, life, doing).prop_map(
        |(written, documents, said, tenants, relations, guards, life, doing)| {
            let (id, created_at, updated_at, driver) = written;
            let (driver_info, interfaces, properties, extra, instance_info, traits) = documents;
            let (name, description, resource_class, conductor_group, shard) = said;
            let (owner, lessee, lending, instance_name) = tenants;
            let (instance_uuid, parent_node, chassis, allocation) = relations;
            let (
                automated_clean,
                protected,
                retired,
                disable_power_off,
                maintenance,
                place,
                (hypervisor, leaving),
                console_enabled,
            ) = guards;
            let (provision_state, target_provision_state, provision_updated_at, power_state) = life;
            let (power_request, work, failure, settings, setting, begun, finished, maps) = doing;
            let (boot_mode, secure_boot, health, firmware) = settings;
            let (boot_setting_request, password_rotation, network_changes) = setting;
            let [network_data, target_raid_config, raid_config] = maps;
            Node {
                id,
                version: 1,
                created_at,
                updated_at,
                name,
                description,
                driver,
                driver_info,
                interfaces,
                properties,
                extra,
                instance_info,
                instance_uuid,
                instance_name,
                allocation,
                resource_class,
                traits,
                conductor_group,
                owner,
                lessee,
                lending,
                shard,
                parent_node,
                chassis,
                automated_clean,
                protected,
                retired,
                disable_power_off,
                maintenance,
                console_enabled,
                place,
                hypervisor,
                leaving,
                provision_state,
                target_provision_state,
                provision_updated_at,
                power_state,
                power_request,
                boot_setting_request,
                password_rotation,
                network_changes,
                work,
                // The store writes the trace of work in progress itself.
                trace: None,
                failure,
                boot_mode,
                secure_boot,
                health,
                firmware,
                network_data,
                target_raid_config,
                raid_config,
                inspection_started_at: begun,
                inspection_finished_at: finished,
            }
        },
    )
}

/// Any port of `node`, with version 1.
pub(crate) fn port(node: NodeUuid) -> impl Strategy<Value = Port> {
    let written = (uuid(), moment(), option::of(moment()), any::<[u8; 6]>());
    let said = (
        option::of("[a-z0-9._~-]{1,12}"),
        option::of(text()),
        option::of(text()),
        option::of(uuid()),
        option::of(text()),
        option::of(text()),
        option::of(text()),
    );
    (written, said, map(), map(), any::<[bool; 3]>()).prop_map(
        move |(written, said, local_link_connection, extra, flags)| {
            let [pxe_enabled, is_smartnic, available_for_dynamic_portgroup] = flags;
            let (id, created_at, updated_at, octets) = written;
            let (name, description, physical_network, portgroup, vendor, category, vif) = said;
            let id: PortUuid = id.to_string().parse().unwrap();
            let address = MacAddress::new(octets);
            Port {
                id,
                version: 1,
                created_at,
                updated_at,
                node,
                address,
                name,
                description,
                pxe_enabled,
                local_link_connection,
                physical_network,
                portgroup,
                is_smartnic,
                available_for_dynamic_portgroup,
                vendor,
                category,
                vif,
                extra,
            }
        },
    )
}

pub(crate) fn runbook() -> impl Strategy<Value = Runbook> {
    let step = (step_name(), map(), any::<u32>()).prop_map(|(name, args, order)| RunbookStep {
        step: RequestedStep { name, args, children: None },
        order,
    });
    let owned = (option::of(text()), any::<bool>(), any::<bool>());
    let traits = btree_set(text(), 0..3);
    (text(), option::of(text()), vec(step, 0..3), owned, traits, map()).prop_map(
        |(name, description, steps, (owner, is_public, disable_ramdisk), traits, extra)| Runbook {
            name,
            description,
            steps,
            disable_ramdisk,
            owner,
            is_public,
            traits,
            extra,
        },
    )
}

/// The arguments of a condition or an action: an object that has secrets, or a list.
fn arguments() -> impl Strategy<Value = Value> {
    let secret = (map(), json()).prop_map(|(mut args, secret)| {
        args.insert("a_password".to_owned(), secret);
        Value::Object(args)
    });
    prop_oneof![secret, vec(json(), 0..3).prop_map(Value::from)]
}

/// A loop with items, or none.
fn items() -> impl Strategy<Value = Value> {
    let list = vec(json(), 1..3).prop_map(Value::from);
    let object = map().prop_map(|mut item| {
        item.insert("a_token".to_owned(), "t".into());
        Value::Object(item)
    });
    prop_oneof![Just(Value::Null), list, object]
}

fn condition() -> impl Strategy<Value = Condition> {
    let operator = (select(Operator::ALL), any::<bool>())
        .prop_map(|(operator, is_inverted)| ConditionOperator { operator, is_inverted });
    let multiple = vec![Multiple::Any, Multiple::All, Multiple::First, Multiple::Last];
    (operator, arguments(), items(), option::of(select(multiple)))
        .prop_map(|(op, args, items, multiple)| Condition { op, args, items, multiple })
}

pub(crate) fn inspection_rule() -> impl Strategy<Value = InspectionRule> {
    let action = (select(ActionOperator::ALL), arguments(), items())
        .prop_map(|(op, args, items)| RuleAction { op, args, items });
    let operations = (vec(condition(), 0..3), vec(action, 0..3));
    (option::of(text()), any::<u16>(), any::<bool>(), operations).prop_map(
        |(description, priority, sensitive, (conditions, actions))| InspectionRule {
            description,
            priority,
            sensitive,
            conditions,
            actions,
            sealed: None,
        },
    )
}
