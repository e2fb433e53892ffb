//! `bedplate node plan`: shows what a change of provision state does.

use api_client::baremetald::{OfferedStep, OfferedSteps, Plan, StepArgument};
use api_client::{WithJson, element_path};
use clap::Args;
use url::form_urlencoded::Serializer;

use crate::api::Api;
use crate::output::{Answer, plain};
use crate::values::time;

/// The options of `bedplate node plan`.
#[derive(Args)]
pub(crate) struct Options {
    /// Name or id of the node.
    node: String,
    /// The target of `openstack baremetal node`: manage, inspect, provide, clean, active, rebuild, deleted, service, and others. Without
    /// it, the plan of the work in progress.
    target: Option<String>,
    /// For clean and service: name or id of the runbook.
    #[arg(long, value_name = "RUNBOOK", requires = "target")]
    runbook: Option<String>,
    /// Also list the steps that can run.
    #[arg(long)]
    steps: bool,
}

pub(crate) async fn show(options: &Options, api: &Api) -> anyhow::Result<Answer> {
    let mut query = Serializer::new(String::new());
    for (name, value) in [("target", &options.target), ("runbook", &options.runbook)] {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let path = element_path("/bedplate/v1/nodes", &options.node, "/plan")?;
    let plan: WithJson<Plan> = api.get(&format!("{path}?{}", query.finish())).await?;
    let words = described(&plan, options.steps);
    Ok(Answer::sentence(plan.json, words))
}

fn described(plan: &Plan, with_steps: bool) -> String {
    let mut lines = Vec::new();
    if let Some(host) = &plan.drains {
        lines.push(format!("First, compute host {} is drained.", plain(host)));
    }
    if plan.tasks.is_empty() {
        lines.push("No tasks.".to_owned());
    }
    for (at, task) in plan.tasks.iter().enumerate() {
        let step = task.step.as_ref().map(|step| {
            let args = step.args.keys().map(|name| plain(name)).collect::<Vec<_>>().join(", ");
            let args = if args.is_empty() { args } else { format!(", with {args}") };
            format!(" (priority {}{args})", step.priority)
        });
        let state =
            if task.state == "planned" { String::new() } else { format!(": {}", task.state) };
        let (number, what) = (at + 1, plain(&task.what));
        lines.push(format!("{number:3}. {what}{}{}", step.unwrap_or_default(), plain(&state)));
    }
    if let Some(offered) = &plan.offered {
        match (offered.complete, offered.listed_at) {
            (false, _) => {
                lines.push("The steps of the agent are unknown until it lists them.".to_owned());
            }
            (true, Some(at)) => {
                lines.push(format!("The agent listed its steps at {}.", time(Some(at))));
            }
            (true, None) => {}
        }
        if with_steps {
            lines.extend(steps(offered));
        }
    }
    if let Some(problem) = &plan.problem {
        lines.push(format!("This would fail: {}.", plain(problem)));
    }
    lines.join("\n")
}

/// The steps that can run, one on each line. A required argument is marked by an asterisk.
fn steps(offered: &OfferedSteps) -> Vec<String> {
    let argument = |argument: &StepArgument| {
        format!("{}{}", plain(&argument.name), if argument.required { "*" } else { "" })
    };
    let line = |step: &OfferedStep| {
        let args: Vec<String> = step.args.iter().map(argument).collect();
        let name = format!("{}.{}", plain(&step.interface), plain(&step.step));
        format!("{:5} {name} [{}] {}", step.priority, plain(&step.runner), args.join(" "))
    };
    offered.steps.iter().map(|step| line(step).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;

    fn words(plan: Value) -> String {
        described(&serde_json::from_value(plan).unwrap(), true)
    }

    #[test]
    fn a_plan_is_described_line_by_line() {
        let step = json!({"step": "x", "priority": 99, "args": {"level": 1}});
        let plan = json!({
            "drains": "c1",
            "tasks": [
                {"what": "switching the machine off", "state": "done", "step": null},
                {"what": "running the clean step deploy.x\u{1b}[2J", "state": "planned", "step": step},
            ],
            "problem": "the machine does not offer the step raid.y",
            "offered": {"listed_at": "2026-01-02T03:04:05Z", "complete": true, "steps": [{
                "interface": "deploy", "step": "x", "priority": 99, "runner": "agent",
                "args": [{"name": "level", "required": true}, {"name": "force", "required": false}],
            }]},
        });
        let want = expect![[r#"
            First, compute host c1 is drained.
              1. switching the machine off: done
              2. running the clean step deploy.x [2J (priority 99, with level)
            The agent listed its steps at 2026-01-02T03:04:05Z.
               99 deploy.x [agent] level* force
            This would fail: the machine does not offer the step raid.y."#]];
        want.assert_eq(&words(plan));
    }

    #[test]
    fn a_plan_without_a_list_of_steps_says_so() {
        let plan = json!({
            "drains": null, "tasks": [], "problem": null,
            "offered": {"listed_at": null, "complete": false, "steps": []},
        });
        let want = expect![[r#"
            No tasks.
            The steps of the agent are unknown until it lists them."#]];
        want.assert_eq(&words(plan));
    }
}
