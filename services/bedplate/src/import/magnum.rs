//! `bedplate import magnum`: takes over the templates of a Magnum, and creates clusters like those of Magnum beside them.

use anyhow::Context;
use api_client::baremetald::ImportAnswer;
use api_client::{Client, Listed, Pages, Service};
use clap::Args;
use serde_json::Value;
use url::Url;

use super::mapping::{Replacement, replace};
use crate::api::{Api, nearby};
use crate::connection::Connection;
use crate::exit::{Exit, Failure};
use crate::ironic::{Object, is_set, lists, word};
use crate::move_report::{MoveLine, MoveReport, MoveResult};
use crate::output::Format;

/// The options of `bedplate import magnum`.
#[derive(Args)]
pub(crate) struct Options {
    /// URL of Magnum; default: the catalogue of the cloud that --os-cloud selects.
    #[arg(long, value_name = "URL", env = "BEDPLATE_MAGNUM_URL")]
    magnum_url: Option<Url>,
    /// Cloud of clouds.yaml with the credentials for clusterd; default: --user, or the cloud of Magnum.
    #[arg(long, value_name = "NAME")]
    bedplate_cloud: Option<String>,
    /// Import only this template, by name or id. Repeatable; default: all templates.
    #[arg(long, value_name = "TEMPLATE")]
    template: Vec<String>,
    /// Create a cluster like this one of Magnum, by name or id, in your project: with its name, template, sizes, labels and networks.
    /// Magnum's cluster stays as it is. Repeatable; default: none.
    #[arg(long, value_name = "CLUSTER")]
    cluster: Vec<String>,
    /// Replace a value that clusterd does not have, for example `network_driver:calico=flannel`. Repeatable.
    #[arg(long, value_name = "FIELD:OLD=NEW", value_parser = Replacement::of_template)]
    replace: Vec<Replacement>,
    /// Leave out this label, for example one that clusterd refuses. Repeatable.
    #[arg(long, value_name = "LABEL")]
    drop_label: Vec<String>,
    /// Print the report, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

lists! {
    Templates "clustertemplates"
    Clusters "clusters"
    NodeGroups "nodegroups"
}

/// The fields of a cluster that a request for a new one may have. The number of workers comes from their node group.
const CLUSTER_FIELDS: [&str; 13] = [
    "name",
    "cluster_template_id",
    "keypair",
    "docker_volume_size",
    "labels",
    "master_count",
    "flavor_id",
    "master_flavor_id",
    "create_timeout",
    "fixed_network",
    "fixed_subnet",
    "floating_ip_enabled",
    "master_lb_enabled",
];

pub(super) async fn run(
    options: &Options,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    let import = Import::connect(options, connection).await?;
    let mut report = MoveReport::default();
    let all = import.all::<Templates>("/v1/clustertemplates/detail").await?;
    for template in selected(all, &options.template, "template")? {
        report.add(import.template(&template).await?);
    }
    if !options.cluster.is_empty() {
        let all = import.all::<Clusters>("/v1/clusters/detail").await?;
        for cluster in selected(all, &options.cluster, "cluster")? {
            report.add(import.cluster(&cluster).await?);
        }
    }
    report.write(format)
}

struct Import<'a> {
    options: &'a Options,
    magnum: Client,
    ours: Api,
}

impl<'a> Import<'a> {
    async fn connect(options: &'a Options, connection: &Connection) -> anyhow::Result<Import<'a>> {
        let magnum = magnum(options, connection).await?;
        let mut beside = connection.of_bedplate(options.bedplate_cloud.as_deref());
        if beside.clusters_url.is_none() && options.bedplate_cloud.is_none() {
            // The catalogue of Magnum's cloud names Magnum.
            beside.clusters_url = Some(nearby(Service::Clusterd)?);
        }
        let ours = Api::of_clusters(&beside).await?.with_microversion("container-infra latest");
        if magnum.url("")? == ours.url("")? {
            let sentence = format!(
                "Magnum and clusterd are the same service at {}. Hint: set the URL of Magnum with --magnum-url, and the URL of clusterd with --clusters-url",
                ours.base()
            );
            return Err(Failure::usage(sentence).into());
        }
        Ok(Import { options, magnum, ours })
    }

    /// Reads all pages of a list of Magnum.
    async fn all<T: Listed + Into<Object>>(&self, path: &str) -> anyhow::Result<Vec<Object>> {
        let all = Pages::<T>::of(&self.magnum, path).all().await;
        let all = all.with_context(|| format!("Magnum at {}: {path}", self.magnum.base()))?;
        Ok(all.into_iter().map(Into::into).collect())
    }

    async fn template(&self, found: &Object) -> anyhow::Result<MoveLine> {
        let (body, losses) = moved(found, self.options);
        let dry_run = if self.options.dry_run { "?dry_run=true" } else { "" };
        let id = word(found, "uuid");
        let path = format!("/bedplate/v1/import/clustertemplates/{id}{dry_run}");
        let result = match self.ours.put::<ImportAnswer>(&path, &body).await {
            Ok(answer) if answer.result == "present" => MoveResult::Present,
            Ok(_) => self.done(),
            Err(why) => MoveResult::refused(reason(why)?),
        };
        Ok(MoveLine::new("template", found, result, losses))
    }

    async fn cluster(&self, found: &Object) -> anyhow::Result<MoveLine> {
        let path = format!("/v1/clusters/{}/nodegroups", word(found, "uuid"));
        let groups = self.all::<NodeGroups>(&path).await?;
        let (body, losses) = request_like(found, &groups, self.options);
        let result = self.create(&body).await?;
        Ok(MoveLine::new("cluster", found, result, losses))
    }

    async fn create(&self, body: &Object) -> anyhow::Result<MoveResult> {
        let own = format!("/v1/clusters/{}", word(body, "name"));
        if self.ours.find::<Object>(&own).await?.is_some() {
            return Ok(MoveResult::Present);
        }
        let plan = match self.ours.post::<Object>("/bedplate/v1/plan", body).await {
            Ok(plan) => plan,
            Err(why) => return Ok(MoveResult::refused(reason(why)?)),
        };
        if plan.get("fits") == Some(&Value::Bool(false)) {
            return Ok(MoveResult::refused(word(&plan, "fits_reason")));
        }
        if !self.options.dry_run
            && let Err(why) = self.ours.post::<Object>("/v1/clusters", body).await
        {
            return Ok(MoveResult::refused(reason(why)?));
        }
        Ok(self.done())
    }

    fn done(&self) -> MoveResult {
        match self.options.dry_run {
            true => MoveResult::WouldBeTaken,
            false => MoveResult::Taken,
        }
    }
}

async fn magnum(options: &Options, connection: &Connection) -> anyhow::Result<Client> {
    match (connection.session()?, &options.magnum_url) {
        (Some(session), url) => {
            let client = Client::by_keystone(session, Service::Clusterd, url.clone()).await;
            client.context("cannot find Magnum in the cloud of --os-cloud")
        }
        (None, Some(url)) => {
            let http = api_client::http_client(connection.authorities())?.build();
            let http = http.context("cannot set up an HTTP client")?;
            Ok(Client::new(http, Service::Clusterd, url.clone(), connection.caller()?))
        }
        (None, None) => {
            let sentence = "no Magnum is selected. Hint: set --os-cloud or OS_CLOUD to the cloud of Magnum, or --magnum-url";
            Err(Failure::usage(sentence).into())
        }
    }
}

/// The reason of a refusal that concerns one resource only; an error of any other kind ends the command. The body of a request may name an
/// object that does not exist, such as a keypair.
fn reason(why: anyhow::Error) -> anyhow::Result<String> {
    match why.downcast_ref::<Failure>() {
        Some(failure) if matches!(failure.exit, Exit::Failed | Exit::NotFound) => {
            Ok(failure.to_string())
        }
        Some(_) | None => Err(why),
    }
}

/// The resources with these ids or names; all if there are none.
fn selected(all: Vec<Object>, wanted: &[String], kind: &str) -> anyhow::Result<Vec<Object>> {
    if wanted.is_empty() {
        return Ok(all);
    }
    let is_named = |it: &Object, name: &str| [word(it, "uuid"), word(it, "name")].contains(&name);
    if let Some(missing) = wanted.iter().find(|name| !all.iter().any(|it| is_named(it, name))) {
        let sentence = format!("Magnum has no {kind} {missing:?}");
        return Err(Failure::new(Exit::NotFound, sentence).into());
    }
    Ok(all.into_iter().filter(|it| wanted.iter().any(|name| is_named(it, name))).collect())
}

/// Makes the body of an import of a template, and returns what differs from Magnum's template.
fn moved(found: &Object, options: &Options) -> (Object, Vec<String>) {
    let mut body = found.clone();
    // The name of a driver of Magnum means nothing to clusterd.
    body.remove("driver");
    let mut losses = replace(&mut body, &options.replace);
    losses.extend(without_labels(&mut body, &options.drop_label));
    (body, losses)
}

/// Makes a request for a cluster like one of Magnum with these node groups, and returns what the new cluster lacks.
fn request_like(found: &Object, groups: &[Object], options: &Options) -> (Object, Vec<String>) {
    let mut body = found.clone();
    body.retain(|field, _| CLUSTER_FIELDS.contains(&field.as_str()));
    let mut losses = replace(&mut body, &options.replace);
    losses.extend(without_labels(&mut body, &options.drop_label));
    for group in groups.iter().filter(|group| word(group, "role") != "master") {
        match is_set(group, "is_default") {
            true => {
                let count = group.get("node_count").cloned().unwrap_or_default();
                body.insert("node_count".to_owned(), count);
            }
            false => losses.push(format!("node group {}", word(group, "name"))),
        }
    }
    (body, losses)
}

fn without_labels(body: &mut Object, names: &[String]) -> Vec<String> {
    let Some(Value::Object(labels)) = body.get_mut("labels") else { return Vec::new() };
    let removed = names.iter().filter_map(|name| Some((name, labels.remove(name)?)));
    removed.map(|(name, value)| format!("labels/{name}: {value}")).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn options(arguments: &[&str]) -> Options {
        Command::parse_from(["x"].iter().chain(arguments)).options
    }

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_template_is_moved_with_the_replacements_that_were_asked_for() {
        let found = object(json!({
            "uuid": "t", "name": "n", "driver": "k8s_fedora_coreos_v1", "network_driver": "calico",
            "labels": {"kube_tag": "v1.32.1", "calico_tag": "v3.21.2"},
        }));
        let asked =
            options(&["--replace", "network_driver:calico=flannel", "--drop-label", "calico_tag"]);
        let (body, losses) = moved(&found, &asked);
        let want = json!({
            "uuid": "t", "name": "n", "network_driver": "flannel", "labels": {"kube_tag": "v1.32.1"},
        });
        assert_eq!(Value::Object(body), want);
        let replaced = "network_driver: calico is replaced by flannel";
        assert_eq!(losses, [replaced, "labels/calico_tag: \"v3.21.2\""]);
    }

    #[test]
    fn a_new_cluster_has_the_workers_of_the_default_group() {
        let found = object(json!({
            "uuid": "c", "name": "blue", "cluster_template_id": "t", "node_count": 5, "master_count": 3,
            "status": "CREATE_COMPLETE", "stack_id": "s", "labels": {"a": "b"}, "api_address": "https://192.0.2.1:6443",
        }));
        let groups = [
            json!({"name": "default-master", "role": "master", "is_default": true, "node_count": 3}),
            json!({"name": "default-worker", "role": "worker", "is_default": true, "node_count": 2}),
            json!({"name": "gpu", "role": "worker", "is_default": false, "node_count": 3}),
        ];
        let (body, losses) = request_like(&found, &groups.map(object), &options(&[]));
        let want = json!({
            "name": "blue", "cluster_template_id": "t", "labels": {"a": "b"}, "master_count": 3, "node_count": 2,
        });
        assert_eq!((Value::Object(body), losses), (want, vec!["node group gpu".to_owned()]));
    }

    #[test]
    fn resources_are_selected_by_id_or_name() {
        let all = || ["a", "b"].map(|id| object(json!({"uuid": id, "name": format!("n-{id}")})));
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|it| (*it).to_owned()).collect();
            let found = selected(all().to_vec(), &wanted, "template");
            found.map(|found| found.len()).map_err(|why| why.to_string())
        };
        assert_eq!((names(&[]), names(&["b", "n-a"])), (Ok(2), Ok(2)));
        assert_eq!(names(&["c"]), Err("Magnum has no template \"c\"".to_owned()));
    }
}
