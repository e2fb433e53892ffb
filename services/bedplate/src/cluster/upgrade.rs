//! `bedplate cluster upgrade`: shows the plan of an upgrade, starts it after a confirmation, pauses, resumes and rolls it back.

use api_client::WithJson;
use api_client::clusterd::{ClusterUpgrade, CreatedCluster, UpgradePlan, UpgradeStep};
use clap::Args;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::confirmation::Confirmation;
use crate::output::{Answer, Format, counted, draw_table, line, plain};
use crate::wait_options::WaitOptions;

/// The options of `bedplate cluster upgrade`.
#[derive(Args)]
pub(crate) struct Upgrade {
    /// Name or id of the cluster.
    pub(super) cluster: String,
    /// Name or id of the template to upgrade to.
    #[arg(required_unless_present_any = ["pause", "resume", "rollback"], conflicts_with_all = ["pause", "resume", "rollback"])]
    template: Option<String>,
    /// Node group; default: the control plane, then all groups of workers.
    #[arg(long, requires = "template")]
    nodegroup: Option<String>,
    /// How many workers of a group are replaced at once, each by a new member that is ready before.
    #[arg(long, value_name = "NUMBER", requires = "template")]
    max_batch_size: Option<u32>,
    /// How many workers of a group may be missing besides: so many are removed before their replacements are ready.
    #[arg(long, value_name = "NUMBER", requires = "template")]
    max_unavailable: Option<u32>,
    /// Only show the plan.
    #[arg(long, requires = "template")]
    plan: bool,
    /// Pause the upgrade: no further member is replaced.
    #[arg(long, conflicts_with_all = ["resume", "rollback"])]
    pause: bool,
    /// Resume a paused upgrade.
    #[arg(long, conflicts_with = "rollback")]
    resume: bool,
    /// Roll the upgrade back; possible until a new control-plane member may have joined.
    #[arg(long)]
    rollback: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    pub(super) patience: WaitOptions,
}

/// The requests about an upgrade in progress, each with a sentence about it.
const VERBS: [(&str, &str); 3] = [
    ("pause", "upgrade paused: the member in progress is finished, and no other is replaced"),
    ("resume", "upgrade resumed"),
    ("rollback", "upgrade rolled back"),
];

/// Carries the command out. Returns whether the caller has to wait until the cluster has settled.
pub(super) async fn run(asked: &Upgrade, api: &Api, format: Format) -> anyhow::Result<bool> {
    let path = format!("/bedplate/v1/clusters/{}/upgrade", asked.cluster);
    let chosen = [asked.pause, asked.resume, asked.rollback];
    let verb = VERBS.iter().zip(chosen).find(|(_, is_chosen)| *is_chosen);
    if let Some(((verb, said), _)) = verb {
        let answer: WithJson<CreatedCluster> =
            api.post(&format!("{path}/{verb}"), &json!({})).await?;
        return report(asked, answer, said, format);
    }
    let body = asked.body();
    let plan: WithJson<UpgradePlan> = api.post(&format!("{path}/plan"), &body).await?;
    let shown = describe(&plan, &asked.cluster);
    if asked.plan {
        Answer::sentence(plan.json, shown).write(format)?;
        return Ok(false);
    }
    if format.is_for_people() {
        line(&shown)?;
    }
    if !plan.steps.is_empty() {
        let members = plan.steps.iter().map(|step| step.members as usize).sum();
        let members = counted(members, "member");
        let what = format!("the upgrade of cluster {} replaces {members}", asked.cluster);
        asked.confirmation.to(&what, &asked.cluster)?;
    }
    let answer: WithJson<CreatedCluster> = api.post(&path, &body).await?;
    report(asked, answer, "upgrade requested", format)
}

/// Reports an accepted request, unless the caller waits for its end.
fn report(
    asked: &Upgrade,
    answer: WithJson<CreatedCluster>,
    said: &str,
    format: Format,
) -> anyhow::Result<bool> {
    if !asked.patience.wait {
        let said = plain(&format!("cluster {}: {said}", asked.cluster));
        Answer::sentence(answer.json, said).write(format)?;
    }
    Ok(asked.patience.wait)
}

impl Upgrade {
    fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            body.extend(value.map(|value| (name.to_owned(), value)));
        };
        put("cluster_template", self.template.clone().map(Value::from));
        put("nodegroup", self.nodegroup.clone().map(Value::from));
        put("max_batch_size", self.max_batch_size.map(Value::from));
        put("max_unavailable", self.max_unavailable.map(Value::from));
        body
    }
}

/// Describes a plan: the steps in their order, whether they fit, and what stays behind.
fn describe(plan: &UpgradePlan, cluster: &str) -> String {
    if plan.steps.is_empty() {
        return plain(&format!("cluster {cluster} has everything that the template has"));
    }
    let mut lines = vec![plain(&format!("upgrade of cluster {cluster} to {}:", plan.kubernetes))];
    lines.push(table(&plan.steps));
    let fits = match (plan.fits, &plan.fits_reason) {
        (Some(true), _) => Some("the quota in the cloud has room for the new members".to_owned()),
        (_, reason) => reason.clone(),
    };
    let takes = plan.seconds_at_least.and_then(|seconds| i64::try_from(seconds).ok());
    let takes = takes.map(|seconds| readable::duration(SignedDuration::from_secs(seconds)));
    let takes = takes.map(|takes| format!("it takes at least {takes}, and the time of each drain"));
    lines.extend(fits.iter().chain(&takes).chain(&plan.warnings).map(|text| plain(text)));
    lines.join("\n")
}

fn table(steps: &[UpgradeStep]) -> String {
    let row = |step: &UpgradeStep| {
        let UpgradeStep { nodegroup, members, at_once, from, to, changes } = step;
        let numbers = [members.to_string(), at_once.to_string()];
        let [nodegroup, from, to] = [nodegroup, from, to].map(|text| plain(text));
        let [members, at_once] = numbers;
        vec![nodegroup, members, at_once, from, to, plain(&changes.join(", "))]
    };
    let header = ["Node group", "Members", "At once", "From", "To", "Other changes"];
    draw_table(&header, steps.iter().map(row))
}

/// Describes an upgrade in progress in a sentence.
pub(super) fn progress(upgrade: &ClusterUpgrade) -> String {
    let left: u64 = upgrade.steps.iter().map(|step| step.members).sum();
    let state = if upgrade.paused { "paused" } else { "in progress" };
    let why = upgrade.waits_for.as_ref().filter(|_| !upgrade.paused);
    let why = why.map(|why| format!("; {why}")).unwrap_or_default();
    let left = counted(left as usize, "member");
    plain(&format!("upgrade to {} {state}: {left} left{why}", upgrade.kubernetes))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn plan(raw: Value) -> UpgradePlan {
        serde_json::from_value(raw).unwrap()
    }

    #[test]
    fn a_plan_shows_the_order_and_what_stays_behind() {
        let step = |group: &str, at_once: u32, changes: Value| json!({"nodegroup": group, "members": 3, "at_once": at_once, "from": "v1.33.2", "to": "v1.34.1", "changes": changes});
        let steps = [
            step("default-master", 1, json!(["image_id: a to b"])),
            step("default-worker", 2, json!([])),
        ];
        let plan = plan(json!({
            "kubernetes": "v1.34.1", "steps": steps, "fits": true, "fits_reason": null, "seconds_at_least": 450,
            "warnings": ["node group gpu stays at v1.33.2"],
        }));
        expect![[r#"
            upgrade of cluster blue to v1.34.1:
             Node group      Members  At once  From     To       Other changes
             default-master  3        1        v1.33.2  v1.34.1  image_id: a to b
             default-worker  3        2        v1.33.2  v1.34.1
            the quota in the cloud has room for the new members
            it takes at least 7 min 30 s, and the time of each drain
            node group gpu stays at v1.33.2"#]]
        .assert_eq(&describe(&plan, "blue"));
    }

    #[test]
    fn a_plan_without_steps_says_so() {
        let raw = json!({"kubernetes": "v1.34.1", "steps": [], "fits": true, "fits_reason": null, "warnings": []});
        assert_eq!(
            describe(&plan(raw), "blue"),
            "cluster blue has everything that the template has"
        );
    }

    #[test]
    fn an_upgrade_in_progress_names_what_it_waits_for() {
        let upgrade = |paused: bool| -> ClusterUpgrade {
            let step = json!({"nodegroup": "w", "members": 2, "at_once": 1, "from": "a", "to": "b", "changes": []});
            let raw = json!({"kubernetes": "v1.34.1", "paused": paused, "waits_for": "w-1 is being removed", "steps": [step]});
            serde_json::from_value(raw).unwrap()
        };
        let running = "upgrade to v1.34.1 in progress: 2 members left; w-1 is being removed";
        assert_eq!(progress(&upgrade(false)), running);
        assert_eq!(progress(&upgrade(true)), "upgrade to v1.34.1 paused: 2 members left");
    }
}
