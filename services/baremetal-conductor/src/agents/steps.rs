//! Reads the steps that an agent lists. The machine behind an agent is not trusted.

use agent_protocol::{ArgumentInfo, ListedStep, StepList};
use baremetal_core::{CommandSeen, Interface, OfferedStep, StepArgument, StepName, StepRunner};
use serde::Deserialize;
use serde_json::Value;

/// The maximum number of steps in a list.
const MAX_STEPS: usize = 200;

/// The maximum length of the name of a step or an argument, in characters.
const MAX_NAME: usize = 255;

/// The maximum length of the description of an argument, in characters; the rest is left out.
const MAX_DESCRIPTION: usize = 500;

/// Reads the result of `get_clean_steps`, `get_deploy_steps` or `get_service_steps`.
pub(super) fn listed(result: Option<&Value>) -> CommandSeen {
    match result.ok_or_else(|| "it is empty".to_owned()).and_then(read) {
        Ok(steps) => CommandSeen::Listed(steps),
        Err(problem) => CommandSeen::Failed(format!("the list is malformed: {problem}")),
    }
}

fn read(result: &Value) -> Result<Vec<OfferedStep>, String> {
    let list = StepList::deserialize(result).map_err(|error| error.to_string())?;
    let mut steps: Vec<OfferedStep> = Vec::new();
    for listed in list.steps.into_values().flatten() {
        let step = offered(listed)?;
        // Several hardware managers may know a step; the one with the highest priority runs it.
        match steps.iter_mut().find(|known| known.name == step.name) {
            Some(known) if known.priority < step.priority => *known = step,
            Some(_) => {}
            None => steps.push(step),
        }
        if steps.len() > MAX_STEPS {
            return Err(format!("it has more than {MAX_STEPS} steps"));
        }
    }
    Ok(steps)
}

fn offered(listed: ListedStep) -> Result<OfferedStep, String> {
    let ListedStep { interface, step, priority, reboot_requested, argsinfo } = listed;
    let known = Interface::ALL.into_iter().find(|it| it.as_str() == interface);
    let interface = known.ok_or_else(|| format!("there is no interface {interface:?}"))?;
    let argsinfo = argsinfo.unwrap_or_default();
    for name in [&step].into_iter().chain(argsinfo.keys()) {
        if name.is_empty() || name.chars().count() > MAX_NAME || name.contains(char::is_control) {
            return Err(format!("a name needs 1 to {MAX_NAME} characters, none of control"));
        }
    }
    let args = argsinfo.into_iter().map(|(name, info)| (name, argument(info)));
    let name = StepName { interface, step };
    Ok(OfferedStep {
        runner: StepRunner::Agent,
        name,
        priority,
        args: args.collect(),
        reboots: reboot_requested,
        needs_ramdisk: true,
    })
}

fn argument(info: ArgumentInfo) -> StepArgument {
    let description = info.description.unwrap_or_default();
    let description = description.chars().filter(|c| !c.is_control()).take(MAX_DESCRIPTION);
    StepArgument { description: description.collect(), is_required: info.required }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(name: &str, priority: u32) -> OfferedStep {
        OfferedStep {
            runner: StepRunner::Agent,
            name: StepName { interface: Interface::Deploy, step: name.to_owned() },
            priority,
            args: [].into(),
            reboots: false,
            needs_ramdisk: true,
        }
    }

    #[test]
    fn the_list_of_ironic_python_agent_is_read() {
        let result = json!({
            "clean_steps": {
                "GenericHardwareManager": [
                    {"step": "erase_devices", "priority": 10, "interface": "deploy",
                     "reboot_requested": false, "abortable": true},
                    {"step": "create_configuration", "priority": 0, "interface": "raid",
                     "reboot_requested": true,
                     "argsinfo": {"raid_config": {"description": "the\ndisks", "required": true},
                                  "more": {}}},
                ],
                "Other": [
                    {"step": "erase_devices", "priority": 30, "interface": "deploy"},
                ],
                "Third": [
                    {"step": "erase_devices", "priority": 20, "interface": "deploy", "argsinfo": null},
                ],
            },
            "hardware_manager_version": {"GenericHardwareManager": "1.2"},
        });
        let argument = |description: &str, is_required| StepArgument {
            description: description.to_owned(),
            is_required,
        };
        let create = OfferedStep {
            runner: StepRunner::Agent,
            name: StepName { interface: Interface::Raid, step: "create_configuration".to_owned() },
            priority: 0,
            args: [
                ("raid_config".to_owned(), argument("thedisks", true)),
                ("more".to_owned(), argument("", false)),
            ]
            .into(),
            reboots: true,
            needs_ramdisk: true,
        };
        let want = CommandSeen::Listed(vec![step("erase_devices", 30), create]);
        assert_eq!(listed(Some(&result)), want);

        let write = json!({"step": "write_image", "interface": "deploy"});
        let result = json!({"deploy_steps": {"M": [write]}});
        assert_eq!(listed(Some(&result)), CommandSeen::Listed(vec![step("write_image", 0)]));
    }

    #[test]
    fn a_malformed_list_fails_the_command() {
        let steps = |step: Value| json!({"clean_steps": {"M": [step]}});
        let many: Vec<Value> =
            (0..=MAX_STEPS).map(|n| json!({"step": n.to_string(), "interface": "bios"})).collect();
        for (result, problem) in [
            (None, "it is empty"),
            (Some(json!({})), "missing field `steps`"),
            (Some(steps(json!({"step": "a"}))), "missing field `interface`"),
            (Some(steps(json!({"step": "a", "interface": "x"}))), "there is no interface \"x\""),
            (
                Some(steps(json!({"step": "", "interface": "bios"}))),
                "a name needs 1 to 255 characters, none of control",
            ),
            (
                Some(steps(json!({"step": "a", "interface": "bios", "argsinfo": {"\n": {}}}))),
                "a name needs 1 to 255 characters, none of control",
            ),
            (
                Some(steps(json!({"step": "a".repeat(256), "interface": "bios"}))),
                "a name needs 1 to 255 characters, none of control",
            ),
            (Some(json!({"clean_steps": {"M": many}})), "it has more than 200 steps"),
        ] {
            let want = CommandSeen::Failed(format!("the list is malformed: {problem}"));
            assert_eq!(listed(result.as_ref()), want);
        }
    }
}
