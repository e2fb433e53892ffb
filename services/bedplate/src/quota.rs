//! `bedplate quota`: usage and limits of a project, and of a user in the project.

use api_client::WithJson;
use api_client::clusterd::{Quotas, ResourceQuota};
use clap::{Args, Subcommand};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};
use url::form_urlencoded::Serializer;

use crate::api::Api;
use crate::output::{Answer, Format, text};
use crate::values::mib;
use crate::watch::Watch;

const QUOTAS: &str = "/bedplate/v1/quotas";

/// The subcommands of `bedplate quota`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show usage and limits of a project and a user; default: the caller's. Administrators may select others.
    Show {
        #[command(flatten)]
        whose: QuotaOwner,
        #[command(flatten)]
        watch: Watch,
    },
    /// Set limits of a project or of a user in it; limits that are not named stay unchanged.
    Set(Limits),
}

/// The project and user whose quota is shown.
#[derive(Args)]
pub(crate) struct QuotaOwner {
    /// Id of the project.
    #[arg(long)]
    project: Option<String>,
    /// Id of the user.
    #[arg(long)]
    user: Option<String>,
}

/// The limits to set.
#[derive(Args)]
pub(crate) struct Limits {
    /// Id of the project.
    project: String,
    /// Set limits of this user in the project, by id; default: limits of the whole project.
    #[arg(long)]
    user: Option<String>,
    /// Limits, for example vms=5, vcpus=40 or lease_seconds=604800; -1 is no limit, `default` is the configured limit.
    #[arg(value_name = "NAME=LIMIT", value_parser = limit, required = true)]
    limits: Vec<(String, Option<i64>)>,
}

/// Parses `NAME=LIMIT`. Only the API knows the names.
fn limit(given: &str) -> Result<(String, Option<i64>), String> {
    let (name, limit) = given.split_once('=').ok_or("must be NAME=LIMIT")?;
    let limit = match limit {
        "default" => None,
        number => Some(
            number
                .parse()
                .map_err(|_| format!("{number:?} is neither an integer nor `default`"))?,
        ),
    };
    Ok((name.to_owned(), limit))
}

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::Show { whose, watch } => {
            let path = whose.path();
            watch.show(format, async || Ok(shown(api.get(&path).await?))).await
        }
        Command::Set(limits) => {
            shown(api.patch(&limits.path()?, &limits.body()).await?).write(format)
        }
    }
}

impl QuotaOwner {
    fn path(&self) -> String {
        let mut query = Serializer::new(String::new());
        let given = [("project_id", &self.project), ("user_id", &self.user)];
        query.extend_pairs(given.into_iter().filter_map(|(key, it)| Some((key, it.as_ref()?))));
        format!("{QUOTAS}?{}", query.finish())
    }
}

impl Limits {
    fn path(&self) -> anyhow::Result<String> {
        let mut url = url::Url::parse("http://service/")?;
        let segments = ["bedplate", "v1", "quotas", &self.project];
        let user = self.user.iter().flat_map(|user| ["users", user]);
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{:?} cannot be part of a path", self.project))?
            .clear()
            .extend(segments.into_iter().chain(user));
        Ok(url.path().to_owned())
    }

    fn body(&self) -> Value {
        Value::Object(Map::from_iter(
            self.limits.iter().map(|(name, number)| (name.clone(), json!(number))),
        ))
    }
}

/// A row for each resource: usage and limit of the project and of the user.
fn shown(answer: WithJson<Quotas>) -> Answer {
    let named = |id: Option<&str>, what: &str| match text(id) {
        id if id.is_empty() => format!("Used by {what}"),
        id => format!("Used by {what} {id}"),
    };
    let project = named(Some(&answer.project_id), "project");
    let user = named(answer.user_id.as_deref(), "user");
    let header = ["Resource", &project, "Limit", &user, "Limit"];
    let row = |(name, project): (&String, &ResourceQuota)| {
        let columns = [Some(project), answer.user.get(name)]
            .map(|quota| [used(name, quota), limit_of(name, quota)]);
        [name.clone()].into_iter().chain(columns.into_iter().flatten()).collect()
    };
    let rows: Vec<_> = answer.project.iter().map(row).collect();
    Answer::table(answer.json, &header, rows)
}

/// The used amount of a resource; a dash if the resource is only limited and not counted.
fn used(name: &str, quota: Option<&ResourceQuota>) -> String {
    let used = quota.and_then(|quota| quota.used);
    used.map_or_else(|| "-".to_owned(), |used| amount(name, used))
}

fn limit_of(name: &str, quota: Option<&ResourceQuota>) -> String {
    match quota.map(|quota| quota.limit) {
        Some(-1) => "unlimited".to_owned(),
        Some(limit) => {
            u64::try_from(limit).map_or_else(|_| limit.to_string(), |it| amount(name, it))
        }
        None => String::new(),
    }
}

/// A number in the unit of the resource's name, as `quota set` expects it, and in a unit that people read.
fn amount(name: &str, number: u64) -> String {
    match name {
        "lease_seconds" => {
            let length = SignedDuration::from_secs(i64::try_from(number).unwrap_or(i64::MAX));
            format!("{number} ({})", readable::duration(length))
        }
        "ram_mib" => format!("{number} ({})", mib(number)),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_and_limit_are_columns() {
        let of = json!({
            "vms": {"used": 1, "limit": 5}, "lease_seconds": {"limit": 604800},
            "ram_mib": {"used": 2048, "limit": -1},
        });
        let answer = json!({"project_id": "lab", "project": of, "user_id": "mia", "user": of});
        let shown = shown(serde_json::from_value(answer).unwrap()).format(Format::Table).unwrap();
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect())
            .collect();
        assert_eq!(
            lines,
            [
                vec!["Resource", "Used by project lab", "Limit", "Used by user mia", "Limit"],
                vec!["lease_seconds", "-", "604800 (7 d)", "-", "604800 (7 d)"],
                vec!["ram_mib", "2048 (2 GiB)", "unlimited", "2048 (2 GiB)", "unlimited"],
                vec!["vms", "1", "5", "1", "5"]
            ]
        );
    }

    #[test]
    fn a_name_is_one_segment_of_the_path() {
        let limits = |user: Option<&str>| Limits {
            project: "a/b".to_owned(),
            user: user.map(str::to_owned),
            limits: vec![("vms".to_owned(), Some(5)), ("gpus".to_owned(), None)],
        };
        assert_eq!(limits(None).path().unwrap(), "/bedplate/v1/quotas/a%2Fb");
        assert_eq!(limits(Some("mia")).path().unwrap(), "/bedplate/v1/quotas/a%2Fb/users/mia");
        assert_eq!(limits(None).body(), json!({"vms": 5, "gpus": null}));
    }

    #[test]
    fn a_limit_is_a_name_and_a_number() {
        assert_eq!(limit("vms=-1"), Ok(("vms".to_owned(), Some(-1))));
        assert_eq!(limit("vms=default"), Ok(("vms".to_owned(), None)));
        assert!(limit("vms").is_err());
        assert!(limit("vms=many").is_err());
    }
}
