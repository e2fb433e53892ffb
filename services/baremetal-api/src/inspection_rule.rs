//! `/v1/inspection_rules`: rules that change a node after its inspection, if the inventory meets their conditions.

use std::cmp::Ordering;

use axum::response::Response;
use baremetal_core::{Condition, InspectionRule, MAX_INSPECTION_RULES, RuleAction, Stored};
use baremetal_store::StoreError;
use http::StatusCode;
use openstack_api::{
    ApiError, Direction, Hidden, JsonPatch, JsonShape, ListPart, ListRequest, Microversion, Origin,
    Paging, PartRequest, PathParam, Route, Routes, Rule, StrictJson, json,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Result;
use crate::field::{DetailLevel, Field, FieldSet, Kind, Read};
use crate::filter::Filter;
use crate::listing::parts_of;
use crate::request::{Request, retry_if_stale};
use crate::rule::{ADMINISTER, READ_SHARED};
use crate::secret::restore_masked;
use crate::shown::Shown;
use crate::stored::{
    self, Paths, Purpose, Served, StoredList, created_field, links_field, updated_field,
    uuid_field, view_of,
};
use crate::value::{boolean, integer, list, text};
use crate::write::{patched, put};
use crate::{list_query, microversion as since, openapi};

/// The most conditions of a rule, and the most actions.
const MAX_OPERATIONS: usize = 100;
/// The highest priority.
const MAX_PRIORITY: u16 = 9999;
/// The phase of all rules: rules run once the inventory has arrived.
const PHASE: &str = "main";

impl Served for InspectionRule {
    const NAME: &'static str = "an inspection rule";
    const COLLECTION: &'static str = "inspection_rules";
    const FIELDS: &'static [Field<Stored<InspectionRule>>] = FIELDS;
    const FILTERS: &'static [Filter<StoredList>] = &[];
    const PATHS: Paths = Paths {
        all: "/v1/inspection_rules",
        detail: None,
        one: "/v1/inspection_rules/{rule}",
        of_node: None,
        detail_of_node: None,
    };
    const SINCE: Microversion = since::INSPECTION_RULES;
    const CHANGES_HIDDEN: Hidden = Hidden::MethodOfHandler;
    const RULES: [Rule; 4] = [READ_SHARED, ADMINISTER, ADMINISTER, ADMINISTER];
    const SUMMARIES: [&'static str; 5] =
        stored::summaries!("an inspection rule", "inspection rules");
    // Ironic's links name a path that does not exist.
    const LINKS: &'static str = "inspection";
}

const fn field(
    name: &'static str,
    kind: Kind,
    read: Read<Stored<InspectionRule>>,
) -> Field<Stored<InspectionRule>> {
    Field::new(name, 96, kind, read)
}

#[rustfmt::skip]
const FIELDS: &[Field<Stored<InspectionRule>>] = &[
    uuid_field(96),
    field("description", Kind::Text, |it, _| (&it.content.description).into())
        .change(ADMINISTER, |it, name, new| put(&mut it.content.description, text(name, new, 255)))
        .brief(),
    field("priority", Kind::Integer, |it, _| Shown::Integer(it.content.priority.into()))
        .change(ADMINISTER, |it, name, new| put(&mut it.content.priority, priority(name, &new)))
        .brief(),
    field("phase", Kind::Text, |_, _| PHASE.into())
        .change(ADMINISTER, |_, name, new| phase(name, new))
        .brief(),
    // A sensitive rule hides its conditions and actions, so this comes first.
    field("sensitive", Kind::Boolean, |it, _| it.content.sensitive.into())
        .change(ADMINISTER, |it, name, new| {
            let wanted = boolean(name, new)?.unwrap_or(false);
            if it.content.sensitive && !wanted {
                return Err(ApiError::bad_field(name, "a sensitive rule stays sensitive"));
            }
            it.content.sensitive = wanted;
            Ok(())
        }),
    field("conditions", Kind::Operations, |it, _| conditions_shown(&it.content))
        .change_list(ADMINISTER, |it| as_json(&it.content.conditions), |it, name, new| {
            let before = as_json(&it.content.conditions);
            put(&mut it.content.conditions, operations(name, new, &before, |it: &Condition| it.check_form()))
        }),
    field("actions", Kind::Operations, |it, _| actions_shown(&it.content))
        .change_list(ADMINISTER, |it| as_json(&it.content.actions), |it, name, new| {
            let before = as_json(&it.content.actions);
            let actions = operations(name, new, &before, |it: &RuleAction| it.check_form())?;
            if actions.is_empty() {
                return Err(ApiError::bad_field(name, "at least one action is required"));
            }
            it.content.actions = actions;
            Ok(())
        })
        .required(),
    created_field(96),
    updated_field(96),
    links_field(96),
];

/// Returns the conditions in the form of Ironic, which shows `multiple` with every loop.
fn conditions_shown(rule: &InspectionRule) -> Shown<'static> {
    let mut shown = as_json(&rule.conditions);
    for condition in shown.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if condition.contains_key("loop") {
            condition.entry("multiple").or_insert_with(|| "any".into());
        } else {
            condition.remove("multiple");
        }
    }
    hidden_if_sensitive(rule, shown)
}

fn actions_shown(rule: &InspectionRule) -> Shown<'static> {
    hidden_if_sensitive(rule, as_json(&rule.actions))
}

fn hidden_if_sensitive(rule: &InspectionRule, shown: Value) -> Shown<'static> {
    if rule.sensitive { Shown::Null } else { Shown::Operations(shown) }
}

/// The conditions or actions as a request writes them, so that a patch can change a part of them.
fn as_json(operations: &impl Serialize) -> Value {
    serde_json::to_value(operations).unwrap_or_default()
}

fn priority(field: &str, value: &Value) -> Result<u16, ApiError> {
    let number = if value.is_null() { 0 } else { integer(field, value)? };
    let priority = u16::try_from(number).ok().filter(|it| *it <= MAX_PRIORITY);
    priority.ok_or_else(|| ApiError::bad_field(field, format!("must be 0 to {MAX_PRIORITY}")))
}

fn phase(field: &str, value: Value) -> Result<(), ApiError> {
    match text(field, value, 16)?.as_deref() {
        None | Some(PHASE) => Ok(()),
        Some(_) => Err(ApiError::bad_field(field, format!("the only phase is {PHASE}"))),
    }
}

/// Parses conditions or actions. A masked secret is replaced by the secret at the same place in `before`.
fn operations<T: DeserializeOwned>(
    field: &str,
    value: Value,
    before: &Value,
    check: impl Fn(&T) -> Result<(), baremetal_core::RuleProblem>,
) -> Result<Vec<T>, ApiError> {
    if value.is_null() {
        return Err(ApiError::bad_field(field, "must be a list, not null"));
    }
    let values = list(field, value, MAX_OPERATIONS)?;
    let parsed = values.into_iter().enumerate().map(|(at, mut value)| {
        let name = format!("{field}[{at}]");
        if let Value::Object(after) = &mut value {
            let known = before.get(at).and_then(Value::as_object);
            let known = known.filter(|it| it.get("op") == after.get("op"));
            restore_masked(&name, known.unwrap_or(&Map::new()), after)?;
        }
        let parsed = T::deserialize(value).map_err(|why| ApiError::bad_field(&name, why))?;
        check(&parsed).map_err(|why| ApiError::bad_field(&name, why))?;
        Ok(parsed)
    });
    parsed.collect()
}

/// The routes of inspection rules. A list is sorted in memory, because there are few rules.
pub(crate) fn routes() -> Routes<App> {
    let shape = openapi::shape::<Stored<InspectionRule>>;
    let [may_read, may_create, may_change, may_delete] = InspectionRule::RULES;
    let [to_list, to_create, to_show, to_change, to_delete] = InspectionRule::SUMMARIES;
    let all = [
        Route::get(to_list, list_all)
            .with_rule(may_read)
            .query_parameters(list_query::PAGING)
            .query_parameters(["detail", "phase"])
            .refuses([StatusCode::NOT_FOUND])
            .returns(JsonShape::page(InspectionRule::COLLECTION, shape())),
        Route::post(to_create, create)
            .with_rule(may_create)
            .reads(openapi::body::<Stored<InspectionRule>>([]))
            .answers(StatusCode::CREATED)
            .returns(shape()),
        Route::delete("Delete all inspection rules", delete_all)
            .with_rule(may_delete)
            .answers(StatusCode::NO_CONTENT),
    ];
    let one = [
        Route::get(to_show, stored::show::<InspectionRule>)
            .with_rule(may_read)
            .query_parameters(["fields"])
            .returns(shape()),
        Route::patch(to_change, patch)
            .with_rule(may_change)
            .reads(openapi::patch_body())
            .returns(shape()),
        Route::delete(to_delete, stored::delete::<InspectionRule>)
            .with_rule(may_delete)
            .answers(StatusCode::NO_CONTENT),
    ];
    let later = |[read, first, second]: [Route<App>; 3]| {
        let changes = [first, second]
            .map(|it| it.hidden_before(InspectionRule::SINCE, InspectionRule::CHANGES_HIDDEN));
        [read.hidden_before(InspectionRule::SINCE, InspectionRule::HIDDEN)]
            .into_iter()
            .chain(changes)
    };
    Routes::new(InspectionRule::COLLECTION)
        .at(InspectionRule::PATHS.all, later(all))
        .at(InspectionRule::PATHS.one, later(one))
}

/// `GET` of the collection. As in Ironic, the parameter `phase` is accepted and ignored.
async fn list_all(request: Request, paging: ListRequest) -> Result<Response> {
    let mut rest = paging.query.clone();
    let shown =
        FieldSet::<Stored<InspectionRule>>::listed(&mut rest, DetailLevel::Brief, request.asked)?;
    rest.take("phase");
    let page = Paging::take(&mut rest)?;
    rest.finish()?;
    let order = order(page.sort_key.as_deref())?;
    let mut rules = request.app.store.first_resources(MAX_INSPECTION_RULES).await?;
    rules.sort_by(order);
    if page.direction == Direction::Descending {
        rules.reverse();
    }
    if let Some(marker) = page.marker {
        let at = rules.iter().position(|rule| rule.id == marker);
        rules.drain(..=at.ok_or(StoreError::NoMarker(marker))?);
    }
    let paging = list_query::linked::<Stored<InspectionRule>>(paging, DetailLevel::Brief);
    let (app, path) = (request.app.clone(), paging.clone());
    parts_of(InspectionRule::COLLECTION, page.limit, path.of(&app), move |asked| {
        let part = part_of(&request, &rules, asked, shown, &paging.origin);
        Box::pin(std::future::ready(part))
    })
    .await
}

/// Serializes the rules of one part of the list.
fn part_of(
    request: &Request,
    rules: &[Stored<InspectionRule>],
    asked: PartRequest<usize>,
    shown: FieldSet<Stored<InspectionRule>>,
    origin: &Origin,
) -> Result<ListPart<usize>> {
    let begin = asked.after.unwrap_or(0);
    let most = usize::try_from(asked.elements).unwrap_or(usize::MAX);
    let rest = rules.get(begin..).unwrap_or_default();
    let found = rest.get(..most).unwrap_or(rest);
    let next = begin + found.len();
    // As in lists that the database sorts, a full part may be followed by an empty one.
    let more = (found.len() == most).then_some(next);
    Ok(ListPart::of(found, |it| it.id, |it| view_of(request, it, shown, origin), more)?)
}

type Order = fn(&Stored<InspectionRule>, &Stored<InspectionRule>) -> Ordering;

/// Returns the order of a sort key. Rules are read in the order of their creation, which decides between equal rules.
fn order(key: Option<&str>) -> Result<Order, ApiError> {
    Ok(match key {
        None | Some("id" | "created_at" | "phase") => |_, _| Ordering::Equal,
        Some("uuid") => |a, b| a.id.cmp(&b.id),
        Some("updated_at") => |a, b| a.updated_at.cmp(&b.updated_at),
        Some("description") => |a, b| a.content.description.cmp(&b.content.description),
        Some("priority") => |a, b| a.content.priority.cmp(&b.content.priority),
        Some("sensitive") => |a, b| a.content.sensitive.cmp(&b.content.sensitive),
        Some(other) => {
            let other: String = other.chars().take(64).collect();
            let problem = format!("inspection_rules cannot be sorted by {other:?}");
            return Err(ApiError::bad_field("sort_key", problem));
        }
    })
}

async fn create(
    request: Request,
    origin: Origin,
    body: StrictJson<Map<String, Value>>,
) -> Result<Response> {
    check_rule_count(&request.app).await?;
    stored::create::<InspectionRule>(request, origin, Some(body)).await
}

/// Refuses one more rule if there are too many.
pub(crate) async fn check_rule_count(app: &App) -> Result<()> {
    let rules = app.store.first_resources::<InspectionRule>(MAX_INSPECTION_RULES).await?;
    if u32::try_from(rules.len()).is_ok_and(|known| known < MAX_INSPECTION_RULES) {
        return Ok(());
    }
    let why = format!("there are {MAX_INSPECTION_RULES} inspection rules, and no more are allowed");
    Err(ApiError::conflict(why).into())
}

/// Changes a rule. Its conditions and actions are unsealed first, because a patch may change a part of them.
async fn patch(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    JsonPatch(patch): JsonPatch,
) -> Result<Response> {
    let app = &request.app;
    let written = retry_if_stale(|| async {
        let sealed = stored::find::<InspectionRule>(&request, &ident, Purpose::See).await?;
        let before = app.store.secrets().with_rule(&sealed).map_err(|why| {
            ApiError::broken(format!("cannot unseal the secrets of the inspection rule: {why}"))
        })?;
        let mut after = patched(&before, patch.clone(), request.asked)?;
        after.updated_at = Some((app.clock)());
        Ok(app.store.update_resource(&after).await?)
    });
    let it = written.await?;
    let view = view_of(&request, &it, FieldSet::all(request.asked), &origin);
    Ok(json(StatusCode::OK, &view))
}

async fn delete_all(request: Request) -> Result<StatusCode> {
    request.app.store.delete_resources::<InspectionRule>().await?;
    Ok(StatusCode::NO_CONTENT)
}
