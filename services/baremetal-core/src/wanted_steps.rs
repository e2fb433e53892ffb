//! The steps that a work runs: which of the offered steps, and in which order.
//!
//! The agent and the conductor offer steps. Automated cleaning and deployment run the offered steps with a priority above 0; manual cleaning
//! and service run the requested steps in their order. The rules are those of `ironic/conductor/steps.py`.

use std::borrow::Cow;
use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::step::{general_step, step_on_children};
use crate::{
    DeployStep, Interface, OfferedStep, RequestedStep, Step, StepKind, StepName, StepRefused,
};

/// The priority of the step that erases the disks completely, for a machine that somebody else used.
const ERASE_PRIORITY: u32 = 10;

/// The steps that a work runs once it knows the offered ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WantedSteps {
    /// Every offered step with a priority above 0.
    Automated {
        /// Whether the disks have to be erased completely, because somebody else used the machine.
        erases_disks: bool,
    },
    /// These clean steps, in their order.
    Requested(Vec<RequestedStep>),
    /// These service steps, in their order.
    Service(Vec<RequestedStep>),
    /// Every offered deploy step with a priority above 0, but these steps with their own priority and arguments; priority 0 leaves a step out.
    Deployment(Vec<DeployStep>),
}

impl Default for WantedSteps {
    /// The steps that leave no data behind.
    fn default() -> Self {
        WantedSteps::Automated { erases_disks: true }
    }
}

impl WantedSteps {
    /// Plans the steps, given the offered ones.
    ///
    /// # Errors
    ///
    /// Fails if a wanted step is not offered, if its arguments are wrong, or if it needs the ramdisk and `has_ramdisk` is false.
    pub fn plan(
        &self,
        offered: &[OfferedStep],
        has_ramdisk: bool,
    ) -> Result<Vec<Step>, StepRefused> {
        match self {
            WantedSteps::Automated { erases_disks } => automated(offered, *erases_disks),
            WantedSteps::Requested(wanted) => {
                requested(StepKind::Clean, offered, wanted, has_ramdisk)
            }
            WantedSteps::Service(wanted) => {
                requested(StepKind::Service, offered, wanted, has_ramdisk)
            }
            WantedSteps::Deployment(wanted) => deployment(offered, wanted),
        }
    }

    /// Returns the kind of work that the steps belong to.
    pub(crate) const fn kind(&self) -> StepKind {
        match self {
            WantedSteps::Automated { .. } | WantedSteps::Requested(_) => StepKind::Clean,
            WantedSteps::Service(_) => StepKind::Service,
            WantedSteps::Deployment(_) => StepKind::Deploy,
        }
    }

    pub(crate) fn args(&self) -> impl Iterator<Item = &Map<String, Value>> {
        let (plain, deploy) = match self {
            WantedSteps::Automated { .. } => (&[][..], &[][..]),
            WantedSteps::Requested(steps) | WantedSteps::Service(steps) => (&steps[..], &[][..]),
            WantedSteps::Deployment(deploy) => (&[][..], &deploy[..]),
        };
        plain.iter().chain(deploy.iter().map(|it| &it.step)).map(|step| &step.args)
    }

    /// Like [`WantedSteps::args`], to seal and to open the secrets.
    pub(crate) fn args_mut(&mut self) -> impl Iterator<Item = &mut Map<String, Value>> {
        let (plain, deploy) = match self {
            WantedSteps::Automated { .. } => (&mut [][..], &mut [][..]),
            WantedSteps::Requested(steps) | WantedSteps::Service(steps) => {
                (&mut steps[..], &mut [][..])
            }
            WantedSteps::Deployment(deploy) => (&mut [][..], &mut deploy[..]),
        };
        let deploy = deploy.iter_mut().map(|it| &mut it.step);
        plain.iter_mut().chain(deploy).map(|step| &mut step.args)
    }

    /// Returns whether a request named steps.
    pub(crate) fn are_named(&self) -> bool {
        match self {
            WantedSteps::Automated { .. } => false,
            WantedSteps::Requested(_) | WantedSteps::Service(_) => true,
            WantedSteps::Deployment(wanted) => !wanted.is_empty(),
        }
    }
}

fn automated(offered: &[OfferedStep], erases_disks: bool) -> Result<Vec<Step>, StepRefused> {
    let erase = StepName::erase_devices();
    if erases_disks {
        // A machine that cannot erase its disks must not reach the next lessee with the data of the last.
        find(offered, &erase)?;
    }
    let priority = |step: &OfferedStep| match erases_disks && step.name == erase {
        true => step.priority.max(ERASE_PRIORITY),
        false => step.priority,
    };
    let enabled = offered.iter().map(|step| (step, priority(step))).filter(|(_, at)| *at > 0);
    let steps = enabled.map(|(step, at)| step.planned(StepKind::Clean, Map::new(), at));
    Ok(sorted(steps.collect()))
}

fn requested(
    kind: StepKind,
    offered: &[OfferedStep],
    wanted: &[RequestedStep],
    has_ramdisk: bool,
) -> Result<Vec<Step>, StepRefused> {
    let plan = wanted.iter().map(|wanted| {
        let step = find_wanted(offered, wanted)?;
        if step.needs_ramdisk && !has_ramdisk {
            return Err(StepRefused::NeedsRamdisk { name: wanted.name.clone() });
        }
        step.check(&wanted.args)?;
        Ok(step.requested(kind, wanted, step.priority))
    });
    plan.collect()
}

fn deployment(offered: &[OfferedStep], wanted: &[DeployStep]) -> Result<Vec<Step>, StepRefused> {
    let kind = StepKind::Deploy;
    let is_kept = |step: &&OfferedStep| {
        let name = &step.name;
        step.priority > 0 && !name.is_core() && wanted.iter().all(|it| it.step.name != *name)
    };
    let kept = offered.iter().filter(is_kept);
    let mut steps: Vec<Step> =
        kept.map(|step| step.planned(kind, Map::new(), step.priority)).collect();
    for DeployStep { step: wanted, priority } in wanted {
        if wanted.name.is_core() {
            return Err(StepRefused::Core { name: wanted.name.clone() });
        }
        let step = find_wanted(offered, wanted)?;
        if *priority > 0 {
            step.check(&wanted.args)?;
            steps.push(step.requested(kind, wanted, *priority));
        }
    }
    Ok(sorted(steps))
}

/// Sorts steps by priority, and those of the same priority by their interface.
fn sorted(mut steps: Vec<Step>) -> Vec<Step> {
    steps.sort_by_key(|step| Reverse((step.priority, rank(step.name.interface))));
    steps
}

/// Returns the step that a request names. Child nodes run general steps only, whatever the node itself offers.
fn find_wanted<'a>(
    offered: &'a [OfferedStep],
    wanted: &RequestedStep,
) -> Result<Cow<'a, OfferedStep>, StepRefused> {
    match wanted.children {
        Some(_) => step_on_children(&wanted.name).map(Cow::Owned),
        None => find(offered, &wanted.name),
    }
}

/// Returns the offered step, or the general step that each interface has under this name.
fn find<'a>(
    offered: &'a [OfferedStep],
    name: &StepName,
) -> Result<Cow<'a, OfferedStep>, StepRefused> {
    let offered = offered.iter().find(|step| step.name == *name).map(Cow::Borrowed);
    let found = offered.or_else(|| general_step(name).map(Cow::Owned));
    found.ok_or_else(|| StepRefused::Unknown { name: name.clone() })
}

/// The order of steps with the same priority: the step of the interface with the higher rank is first.
const fn rank(interface: Interface) -> u8 {
    match interface {
        Interface::Network => 8,
        Interface::Vendor => 7,
        Interface::Power => 6,
        Interface::Management => 5,
        Interface::Firmware => 4,
        Interface::Deploy => 3,
        Interface::Bios => 2,
        Interface::Raid => 1,
        Interface::Boot
        | Interface::Console
        | Interface::Inspect
        | Interface::Rescue
        | Interface::Storage => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{ChildNodes, StepArgument, StepRunner};

    fn name(text: &str) -> StepName {
        let (interface, step) = text.split_once('.').unwrap();
        let interface = Interface::ALL.into_iter().find(|it| it.as_str() == interface).unwrap();
        StepName { interface, step: step.to_owned() }
    }

    fn offered(text: &str, priority: u32) -> OfferedStep {
        let (runner, name) = (StepRunner::Agent, name(text));
        OfferedStep {
            runner,
            name,
            priority,
            args: BTreeMap::new(),
            reboots: false,
            needs_ramdisk: true,
        }
    }

    /// A step with a required and an optional argument, after which the machine restarts.
    fn with_args(text: &str) -> OfferedStep {
        let argument =
            |is_required| StepArgument { description: "the settings".into(), is_required };
        let args = [("settings".to_owned(), argument(true)), ("force".to_owned(), argument(false))];
        OfferedStep { args: args.into(), reboots: true, ..offered(text, 0) }
    }

    fn wanted(text: &str, args: Value) -> RequestedStep {
        let Value::Object(args) = args else { panic!("{args}") };
        RequestedStep { name: name(text), args, children: None }
    }

    #[track_caller]
    fn check(wanted: WantedSteps, offered: &[OfferedStep], want: Result<&[&str], &str>) {
        let shown = |step: Step| format!("{} {}", step.name, step.priority);
        let plan = wanted.plan(offered, true);
        let plan = plan.map(|steps| steps.into_iter().map(shown).collect::<Vec<_>>());
        match (plan, want) {
            (Ok(plan), Ok(want)) => assert_eq!(plan, want),
            (Err(why), Err(want)) => assert_eq!(why.to_string(), want),
            (got, want) => panic!("{got:?}, not {want:?}"),
        }
    }

    #[test]
    fn automated_cleaning_runs_enabled_steps_by_priority_and_then_by_interface() {
        let all = [
            offered("deploy.erase_devices", 0),
            offered("raid.delete_configuration", 10),
            offered("deploy.erase_devices_metadata", 99),
            offered("bios.factory_reset", 10),
            offered("management.clear_job_queue", 10),
        ];
        let automated = |erases_disks| WantedSteps::Automated { erases_disks };
        let want = [
            "deploy.erase_devices_metadata 99",
            "management.clear_job_queue 10",
            "bios.factory_reset 10",
            "raid.delete_configuration 10",
        ];
        check(automated(false), &all, Ok(&want));
        let want = [
            "deploy.erase_devices_metadata 99",
            "management.clear_job_queue 10",
            "deploy.erase_devices 10",
            "bios.factory_reset 10",
            "raid.delete_configuration 10",
        ];
        check(automated(true), &all, Ok(&want));
        check(
            automated(true),
            &[offered("deploy.erase_devices", 50)],
            Ok(&["deploy.erase_devices 50"]),
        );
        check(automated(false), &all[..1], Ok(&[]));
        let none = "the machine does not offer the step deploy.erase_devices";
        check(automated(true), &all[1..], Err(none));
    }

    #[test]
    fn requested_steps_run_in_their_order_with_their_arguments() {
        let all = [offered("deploy.erase_devices", 0), with_args("bios.apply_configuration")];
        let apply = |args| wanted("bios.apply_configuration", args);
        let erase = wanted("deploy.erase_devices", json!({}));
        let both = WantedSteps::Requested(vec![apply(json!({"settings": []})), erase.clone()]);
        let want = ["bios.apply_configuration 0", "deploy.erase_devices 0"];
        check(both.clone(), &all, Ok(&want));
        let kept = both.plan(&all, true).unwrap();
        assert_eq!(kept[0].args["settings"], json!([]));
        assert_eq!((kept[0].reboots, kept[1].reboots), (true, false));

        let only = |step| WantedSteps::Requested(vec![step]);
        let missing =
            "the step bios.apply_configuration needs the argument \"settings\": the settings";
        check(only(apply(json!({"force": true}))), &all, Err(missing));
        let unknown = "the step bios.apply_configuration has no argument \"x\"";
        check(only(apply(json!({"settings": [], "x": 1}))), &all, Err(unknown));
        let absent = only(wanted("raid.create_configuration", json!({})));
        check(absent, &all, Err("the machine does not offer the step raid.create_configuration"));
    }

    #[test]
    fn a_step_on_child_nodes_needs_neither_the_ramdisk_nor_an_offer_of_the_node() {
        let on_children = |text| {
            let children = Some(ChildNodes::All);
            WantedSteps::Service(vec![RequestedStep { children, ..wanted(text, json!({})) }])
        };
        let own = [offered("power.power_off", 7)];
        for has_ramdisk in [false, true] {
            let plan = on_children("power.power_off").plan(&own, has_ramdisk).unwrap();
            assert_eq!((plan[0].priority, plan[0].runner), (0, StepRunner::Conductor));
            assert_eq!(plan[0].children, Some(ChildNodes::All));
        }
        let refused = "the step deploy.erase_devices cannot run on child nodes, only the steps power_on, power_off and reboot can";
        check(
            on_children("deploy.erase_devices"),
            &[offered("deploy.erase_devices", 0)],
            Err(refused),
        );
    }

    #[test]
    fn a_deployment_merges_offered_and_requested_steps() {
        let all = [
            offered("deploy.write_image", 80),
            offered("deploy.inject_files", 50),
            with_args("raid.apply_configuration"),
        ];
        let step = |text, args, priority| DeployStep { step: wanted(text, args), priority };
        let raid = |priority| step("raid.apply_configuration", json!({"settings": []}), priority);
        let deployment = |steps: &[DeployStep]| WantedSteps::Deployment(steps.to_vec());
        check(deployment(&[]), &all, Ok(&["deploy.inject_files 50"]));
        let want = ["raid.apply_configuration 90", "deploy.inject_files 50"];
        check(deployment(&[raid(90)]), &all, Ok(&want));
        let want = ["deploy.inject_files 70", "raid.apply_configuration 60"];
        let moved = step("deploy.inject_files", json!({}), 70);
        check(deployment(&[raid(60), moved]), &all, Ok(&want));
        // Priority 0 leaves a step out, and then its arguments do not matter.
        let none = step("deploy.inject_files", json!({"x": 1}), 0);
        check(deployment(&[none]), &all, Ok(&[]));
        let core = step("deploy.write_image", json!({}), 90);
        let refused =
            "the step deploy.write_image is a part of every deployment and cannot be requested";
        check(deployment(&[core]), &all, Err(refused));
        let absent = "the machine does not offer the step raid.apply_configuration";
        check(deployment(&[raid(90)]), &all[..2], Err(absent));
        let plan = deployment(&[raid(90)]).plan(&all, true).unwrap();
        assert!(plan.iter().all(|step| step.kind == StepKind::Deploy));
    }

    #[test]
    fn every_interface_with_steps_has_its_own_rank() {
        let mut ranks: Vec<u8> =
            Interface::ALL.map(rank).into_iter().filter(|at| *at > 0).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
