//! `/v1/runbooks`: named steps that callers run on the nodes for which a runbook is approved.

mod traits;

use baremetal_core::{
    Node, RequestedStep, Runbook, RunbookApproval, RunbookStep, Stored, StoredSort, Trait,
};
use openstack_api::{ApiError, Hidden, Microversion, Op, Operation, Routes, Rule};
use serde::Deserialize;
use serde_json::Value;

use crate::app::App;
use crate::error::Result;
use crate::field::{Field, Kind, Read};
use crate::filter::Filter;
use crate::microversion as since;
use crate::request::Request;
use crate::rule::{SEE_RUNBOOK, SET_OWNER, USE_RUNBOOK};
use crate::shown::Shown;
use crate::step::{RunbookStepBody, runbook_steps};
use crate::stored::{
    self, Paths, Purpose, Served, StoredList, check_owner, created_field, links_field, lookup,
    updated_field, uuid_field,
};
use crate::traits::parse_traits;
use crate::value::{boolean, list, name, text};
use crate::write::put;

/// The maximum number of steps in a runbook.
const MAX_STEPS: usize = 100;

impl Served for Runbook {
    const NAME: &'static str = "a runbook";
    const COLLECTION: &'static str = "runbooks";
    const FIELDS: &'static [Field<Stored<Runbook>>] = FIELDS;
    const FILTERS: &'static [Filter<StoredList>] = FILTERS;
    const PATHS: Paths = Paths {
        all: "/v1/runbooks",
        detail: None,
        one: "/v1/runbooks/{runbook}",
        of_node: None,
        detail_of_node: None,
    };
    const SINCE: Microversion = since::RUNBOOKS;
    const HIDDEN: Hidden = Hidden::Path;
    const CHANGES_HIDDEN: Hidden = Hidden::Method;
    const HIDES_LATER_FIELDS: bool = true;
    const RULES: [Rule; 4] = [SEE_RUNBOOK, USE_RUNBOOK, USE_RUNBOOK, USE_RUNBOOK];
    const SUMMARIES: [&'static str; 5] = stored::summaries!("a runbook", "runbooks");
    const IS_NAMED: bool = true;
    const IS_NAME_ROUTED: bool = false;

    /// A token of a project creates runbooks of that project, which are not public, as in Ironic; a token of the system creates any.
    async fn check_new(request: &Request, new: &mut Stored<Runbook>) -> Result<()> {
        let runbook = &mut new.content;
        if !request.asked.has(since::RUNBOOK_TRAITS) {
            Trait::try_from(runbook.name.clone())
                .map_err(|why| ApiError::bad_field("name", why))?;
        }
        // The project of the token counts, also for an administrator.
        let Some(own) = request.caller.project().map(str::to_owned) else {
            return check_project(request, runbook).await;
        };
        if runbook.owner.as_ref().is_some_and(|owner| *owner != own) {
            let why =
                "only operators with a token of the system may create a runbook of another project";
            return Err(ApiError::bad_field("owner", why).into());
        }
        if runbook.is_public {
            let why = "only operators with a token of the system may create a public runbook";
            return Err(ApiError::bad_field("public", why).into());
        }
        runbook.owner = Some(own);
        Ok(())
    }

    async fn check_patch(
        request: &Request,
        after: &Stored<Runbook>,
        patch: &[Operation],
    ) -> Result<()> {
        let is_owner = |it: &Operation| it.op != Op::Remove && it.path == "/owner";
        if !patch.iter().any(is_owner) {
            return Ok(());
        }
        if after.content.is_public && after.content.owner.is_some() {
            let why = "a public runbook has no owner: set public to false first";
            return Err(ApiError::bad_field("owner", why).into());
        }
        check_project(request, &after.content).await
    }
}

/// Refuses an owner that does not exist.
async fn check_project(request: &Request, runbook: &Runbook) -> Result<()> {
    match &runbook.owner {
        Some(owner) => Ok(request.app.auth.check_project(&request.caller, "owner", owner).await?),
        None => Ok(()),
    }
}

const fn field(
    name: &'static str,
    minor: u16,
    kind: Kind,
    read: Read<Stored<Runbook>>,
) -> Field<Stored<Runbook>> {
    Field::new(name, minor, kind, read)
}

#[rustfmt::skip]
const FIELDS: &[Field<Stored<Runbook>>] = &[
    uuid_field(92),
    field("name", 92, Kind::Text, |it, _| (&it.content.name).into())
        .change(USE_RUNBOOK, |it, name, new| put(&mut it.content.name, required_name(name, new)))
        .required()
        .brief()
        .sort(StoredSort::Name),
    field("description", 112, Kind::Text, |it, _| (&it.content.description).into())
        .change(USE_RUNBOOK, |it, name, new| put(&mut it.content.description, text(name, new, 255))),
    field("steps", 92, Kind::Steps, |it, _| Shown::RunbookSteps(&it.content.steps))
        .change_list(USE_RUNBOOK, |it| as_json(&it.content.steps), |it, name, new| {
            let steps = steps(name, new, &it.content.steps)?;
            it.content.steps = steps;
            Ok(())
        })
        .required(),
    field("disable_ramdisk", 92, Kind::Boolean, |it, _| it.content.disable_ramdisk.into())
        .change(USE_RUNBOOK, |it, name, new| put(&mut it.content.disable_ramdisk, flag(name, new))),
    // As in Ironic, a runbook that becomes public or private loses its owner.
    field("public", 92, Kind::Boolean, |it, _| it.content.is_public.into())
        .change(SET_OWNER, |it, name, new| { it.content.owner = None; put(&mut it.content.is_public, flag(name, new)) })
        .sort(StoredSort::Public),
    field("owner", 92, Kind::Text, |it, _| (&it.content.owner).into())
        .change(SET_OWNER, |it, name, new| put(&mut it.content.owner, text(name, new, 255)))
        .sort(StoredSort::Owner),
    // Requests set the traits at a path of their own.
    field("traits", 112, Kind::Texts, |it, _| Shown::Texts(&it.content.traits))
        .imported(|it, name, new| put(&mut it.content.traits, parse_traits(name, new))),
    field("extra", 92, Kind::Object, |it, _| (&it.content.extra).into())
        .change_object(USE_RUNBOOK, |it| &mut it.content.extra),
    created_field(92),
    updated_field(92),
    links_field(92),
];

#[rustfmt::skip]
const FILTERS: &[Filter<StoredList>] = &[
    // In Ironic, `project=true` compares the owner with the word instead of the caller's project.
    Filter { name: "project", since: since::RUNBOOKS, narrow: |list, by| put(&mut list.is_of_project, by.flag().map(|it| it == Some(true))) },
];

fn required_name(field: &str, value: Value) -> Result<String, ApiError> {
    name(field, value)?.ok_or_else(|| ApiError::bad_field(field, "is required"))
}

/// A boolean; null is `false`.
fn flag(field: &str, value: Value) -> Result<bool, ApiError> {
    Ok(boolean(field, value)?.unwrap_or_default())
}

/// The steps as a request writes them, so that a patch can change a part of them.
fn as_json(steps: &[RunbookStep]) -> Value {
    serde_json::to_value(steps).unwrap_or_default()
}

/// The steps of a runbook; a masked secret is replaced by the one of the same step in `before`.
fn steps(field: &str, value: Value, before: &[RunbookStep]) -> Result<Vec<RunbookStep>, ApiError> {
    let values = list(field, value, MAX_STEPS)?;
    if values.is_empty() {
        return Err(ApiError::bad_field(field, "at least one step is required"));
    }
    let bodies = values.into_iter().enumerate().map(|(at, value)| {
        let name = format!("{field}[{at}]");
        RunbookStepBody::deserialize(value).map_err(|why| ApiError::bad_field(&name, why))
    });
    let bodies: Vec<RunbookStepBody> = bodies.collect::<Result<_, _>>()?;
    runbook_steps(field, &bodies, before)
}

pub(crate) fn routes() -> Routes<App> {
    stored::routes::<Runbook>().merge(traits::routes())
}

/// The work that a runbook names.
pub(crate) struct RunbookSteps {
    pub(crate) steps: Vec<RequestedStep>,
    pub(crate) disables_ramdisk: bool,
}

/// Returns the steps of the runbook, in their order and with their secrets unsealed, if the caller may use the runbook and the runbook is
/// approved for the node.
pub(crate) async fn steps_of(request: &Request, ident: &str, node: &Node) -> Result<RunbookSteps> {
    request.asked.need(since::RUNBOOKS, "runbook")?;
    let found = lookup::<Runbook>(request, ident).await?;
    check_owner(&request.caller, USE_RUNBOOK, ident, &found, Purpose::Change)?;
    let approval = match request.asked.has(since::RUNBOOK_TRAITS) {
        true => RunbookApproval::ByTraits,
        false => RunbookApproval::ByName,
    };
    let refused = |why| ApiError::bad_field("runbook", why);
    found.content.check_approval(node, approval).map_err(refused)?;
    let unsealed = request.app.store.secrets().with_runbook(&found).map_err(|why| {
        ApiError::broken(format!("cannot unseal the secrets of the runbook: {why}"))
    })?;
    let disables_ramdisk = unsealed.disable_ramdisk;
    Ok(RunbookSteps { steps: unsealed.ordered_steps(), disables_ramdisk })
}
