//! `/v1/deploy_templates`: deploy steps that a trait of the instance adds to a deployment.

use baremetal_core::{
    DeployStep, DeployTemplate, Node, Stored, Trait, instance_traits, with_templates,
};
use openstack_api::{ApiError, Hidden, Microversion, Routes, Rule};
use serde::Deserialize;
use serde_json::Value;

use crate::app::App;
use crate::error::Result;
use crate::field::{Field, Kind, Read};
use crate::filter::Filter;
use crate::microversion as since;
use crate::request::Request;
use crate::rule::{ADMINISTER, READ_SHARED};
use crate::shown::Shown;
use crate::step::{DeployStepBody, deploy_steps};
use crate::stored::{
    self, Paths, Served, StoredList, created_field, links_field, updated_field, uuid_field,
};
use crate::value::{list, required_text, text};
use crate::write::put;

/// The maximum number of steps in a template.
const MAX_STEPS: usize = 100;

impl Served for DeployTemplate {
    const NAME: &'static str = "a deploy template";
    const COLLECTION: &'static str = "deploy_templates";
    const FIELDS: &'static [Field<Stored<DeployTemplate>>] = FIELDS;
    const FILTERS: &'static [Filter<StoredList>] = &[];
    const PATHS: Paths = Paths {
        all: "/v1/deploy_templates",
        detail: None,
        one: "/v1/deploy_templates/{template}",
        of_node: None,
        detail_of_node: None,
    };
    const SINCE: Microversion = since::DEPLOY_TEMPLATES;
    const HIDDEN: Hidden = Hidden::Path;
    const CHANGES_HIDDEN: Hidden = Hidden::Method;
    const IS_NAME_ROUTED: bool = false;
    const RULES: [Rule; 4] = [READ_SHARED, ADMINISTER, ADMINISTER, ADMINISTER];
    const SUMMARIES: [&'static str; 5] =
        stored::summaries!("a deploy template", "deploy templates");
    const IS_NAMED: bool = true;
}

const fn field(
    name: &'static str,
    minor: u16,
    kind: Kind,
    read: Read<Stored<DeployTemplate>>,
) -> Field<Stored<DeployTemplate>> {
    Field::new(name, minor, kind, read)
}

#[rustfmt::skip]
const FIELDS: &[Field<Stored<DeployTemplate>>] = &[
    uuid_field(55),
    field("name", 55, Kind::Text, |it, _| (&it.content.name).into())
        .change(ADMINISTER, |it, name, new| put(&mut it.content.name, trait_name(name, new)))
        .required()
        .brief()
        .sort(baremetal_core::StoredSort::Name),
    field("description", 55, Kind::Text, |it, _| (&it.content.description).into())
        .change(ADMINISTER, |it, name, new| put(&mut it.content.description, text(name, new, 255))),
    field("steps", 55, Kind::Steps, |it, _| Shown::DeploySteps(&it.content.steps))
        .change_list(ADMINISTER, |it| as_json(&it.content.steps), |it, name, new| {
            let steps = steps(name, new, &it.content.steps)?;
            it.content.steps = in_stored_order(&it.content.steps, steps);
            Ok(())
        })
        .required(),
    field("extra", 55, Kind::Object, |it, _| (&it.content.extra).into())
        .change_object(ADMINISTER, |it| &mut it.content.extra),
    created_field(55),
    updated_field(55),
    links_field(55),
];

/// The name of a template, which is a trait.
fn trait_name(field: &str, value: Value) -> Result<String, ApiError> {
    let name = required_text(field, value)?;
    Trait::try_from(name).map(String::from).map_err(|why| ApiError::bad_field(field, why))
}

/// The steps as a request writes them, so that a patch can change a part of them.
fn as_json(steps: &[DeployStep]) -> Value {
    serde_json::to_value(steps).unwrap_or_default()
}

/// The steps of a template; a masked secret is replaced by the one of the same step in `before`.
fn steps(field: &str, value: Value, before: &[DeployStep]) -> Result<Vec<DeployStep>, ApiError> {
    let values = list(field, value, MAX_STEPS)?;
    if values.is_empty() {
        return Err(ApiError::bad_field(field, "at least one step is required"));
    }
    let bodies = values.into_iter().enumerate().map(|(at, value)| {
        let name = format!("{field}[{at}]");
        DeployStepBody::deserialize(value).map_err(|why| ApiError::bad_field(&name, why))
    });
    let bodies: Vec<DeployStepBody> = bodies.collect::<Result<_, _>>()?;
    deploy_steps(field, &bodies, before)
}

/// Returns the steps of a template in Ironic's order: those that the template had `before` stay in front, and the new ones follow, sorted by
/// their interface, name, arguments and priority (`_update_deploy_template_steps` of `ironic/db/sqlalchemy/api.py`). Those of a new template
/// have the order of the request.
fn in_stored_order(before: &[DeployStep], mut after: Vec<DeployStep>) -> Vec<DeployStep> {
    if before.is_empty() {
        return after;
    }
    let mut steps = Vec::with_capacity(after.len());
    for had in before {
        let kept = after.iter().position(|step| step == had);
        steps.extend(kept.map(|at| after.remove(at)));
    }
    after.sort_by_cached_key(|DeployStep { step, priority }| {
        (step.name.to_string(), Value::from(step.args.clone()).to_string(), *priority)
    });
    steps.extend(after);
    steps
}

pub(crate) fn routes() -> Routes<App> {
    stored::routes::<DeployTemplate>()
}

/// Returns the deploy templates that the traits of the node's instance name, with their secrets unsealed.
pub(crate) async fn templates_of(request: &Request, node: &Node) -> Result<Vec<DeployTemplate>> {
    let names: Vec<String> = instance_traits(node).into_iter().map(str::to_owned).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let store = &request.app.store;
    let found = store.find_resources_by_names::<DeployTemplate>(&names).await?;
    let unsealed = found.iter().map(|it| store.secrets().with_template(it));
    unsealed.collect::<Result<_, _>>().map_err(|why| {
        let text = format!("cannot unseal the secrets of the deploy templates: {why}");
        ApiError::broken(text).into()
    })
}

/// Returns the steps of a deployment: the requested ones, and those of the templates.
pub(crate) fn merged(
    requested: Vec<DeployStep>,
    templates: &[DeployTemplate],
) -> Result<Vec<DeployStep>, ApiError> {
    with_templates(requested, templates)
        .map_err(|why| ApiError::bad_field("instance_info.traits", why))
}
