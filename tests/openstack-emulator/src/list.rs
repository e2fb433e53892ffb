//! Lists of all services: which objects a caller gets, in which order, and in which envelope.

use serde_json::{Value, json};

use crate::index;
use crate::object::Object;
use crate::page::{self, Page};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::resource::ResourceType;
use crate::store::Condition;
use crate::world::World;

/// The conventions of a service for its lists.
pub(crate) struct Lists {
    /// The keys of a query that are no filters.
    pub(crate) controls: &'static str,
    /// Whether a key of a query is a filter. False ignores the key.
    pub(crate) is_filter: fn(&ApiRequest, &ResourceType, &str) -> ApiResult<bool>,
    /// Whether an object passes a filter with one or more values.
    pub(crate) passes: fn(&Object, &str, &[&str]) -> bool,
    /// The index entries for a filter.
    pub(crate) index: for<'a> fn(&'a str, &[&'a str]) -> Vec<Condition<'a>>,
    /// Whether the list shows an object to the caller.
    pub(crate) sees: fn(&World, &ApiRequest, &ResourceType, &Object) -> bool,
    /// The index entry for the objects that the caller sees. `None` if that may be any object.
    pub(crate) scope: for<'a> fn(&'a World, &'a ApiRequest, &ResourceType) -> Option<Condition<'a>>,
    pub(crate) order: Order,
    /// The fields by which the request sorts, each with whether the order is descending.
    pub(crate) sort: fn(&ApiRequest) -> Vec<(String, bool)>,
    /// The text of an object that markers contain.
    pub(crate) marker: fn(&Object) -> &str,
    /// The first microversion that filters by tags, if `controls` has `tags`.
    pub(crate) tags_since: u32,
    /// The most entries of a page.
    pub(crate) most: fn(&World, &ApiRequest) -> usize,
    pub(crate) links: Links,
}

/// The order of a list whose request names none.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Id,
    Oldest,
    Newest,
}

/// The way in which a list tells the URL of its next page.
#[derive(Clone, Copy)]
pub(crate) enum Links {
    /// The answer does not tell it.
    Never,
    /// A list `…_links`, except on the last page.
    UnlessLast,
    /// A list `…_links`, empty on the last page.
    Always,
    /// Keystone's `links`.
    Keystone,
    /// Designate's `links` and `metadata`.
    Designate,
    /// Glance's `next`, a relative URL.
    Glance,
}

/// A list of all objects, in which every field is a filter.
pub(crate) const PLAIN: Lists = Lists {
    controls: "limit marker sort_key sort_dir",
    is_filter: |_, _, _| Ok(true),
    passes: |one, key, values| values.iter().all(|it| page::equals(one.body.get(key), it)),
    index: |key, values| values.iter().filter_map(|it| page::said(key, &[it])).collect(),
    sees: |_, _, _, _| true,
    scope: |_, _, _| None,
    order: Order::Oldest,
    sort: page::order,
    marker: |one| &one.id,
    tags_since: 0,
    most: |world, _| world.settings.page_limit,
    links: Links::UnlessLast,
};

/// The requested page of a list. `within` narrows the list to the objects that meet the condition.
pub(crate) fn page<'w>(
    world: &'w World,
    asked: &ApiRequest,
    of: &ResourceType,
    lists: &Lists,
    within: Option<(&str, &str)>,
) -> ApiResult<(Page<'w>, usize)> {
    let has = |control: &str| lists.controls.split(' ').any(|known| known == control);
    let mut filters: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, value) in &asked.query {
        if has(key) || !(lists.is_filter)(asked, of, key)? {
            continue;
        }
        match filters.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(value),
            None => filters.push((key, vec![value])),
        }
    }
    let by_tags = has("tags") && asked.since(lists.tags_since);
    let mut wanted = if by_tags { page::said_tags(asked) } else { Vec::new() };
    wanted.extend(filters.iter().flat_map(|(key, values)| (lists.index)(key, values)));
    wanted.extend((lists.scope)(world, asked, of));
    wanted.extend(within.map(|within| vec![within]));
    let mut objects = world.store.narrowed(of.kind, &wanted);
    objects.retain(|one| {
        (lists.sees)(world, asked, of, one)
            && world.listed(of.kind, one)
            && within.is_none_or(|(field, text)| index::says(one, field, text))
            && filters.iter().all(|(key, values)| (lists.passes)(one, key, values))
            && (!by_tags || page::tagged(asked, one.list("tags")))
    });
    match lists.order {
        Order::Id => objects.sort_by(|left, right| left.id.cmp(&right.id)),
        Order::Newest => objects.reverse(),
        Order::Oldest => {}
    }
    page::sort(&mut objects, &(lists.sort)(asked));
    if has("page_reverse") && asked.flag("page_reverse") {
        objects.reverse();
    }
    let total = objects.len();
    let page = page::cut(asked, objects, (lists.most)(world, asked), lists.marker);
    let kind = if matches!(lists.links, Links::Designate) { "marker_not_found" } else { "" };
    let page = page.map_err(|problem| ApiError { kind: kind.into(), ..problem });
    Ok((page?, total))
}

/// The answer with a page of a list.
pub(crate) fn answer(
    asked: &ApiRequest,
    of: &ResourceType,
    links: Links,
    (page, total): (Page<'_>, usize),
    shown: impl Fn(&Object) -> Value,
) -> ApiAnswer {
    let rows = page.objects.iter().map(|one| page::pick(asked, shown(one)));
    let mut body = json!({of.plural: rows.collect::<Vec<_>>()});
    let own = format!("{}{}", asked.base, asked.path);
    match (links, page.next) {
        (Links::Never, _) | (Links::UnlessLast, None) => {}
        (Links::UnlessLast | Links::Always, next) => {
            let links = page::links(next.as_deref()).unwrap_or_else(|| json!([]));
            body[format!("{}_links", of.plural)] = links;
        }
        (Links::Keystone, _) => {
            body["links"] = json!({"self": own, "previous": null, "next": null});
        }
        (Links::Glance, next) => {
            body["schema"] = json!("/v2/schemas/images");
            body["first"] = json!("/v2/images");
            if let Some(next) = next {
                body["next"] = json!(next.split_once("/image").map_or(next.as_str(), |it| it.1));
            }
        }
        (Links::Designate, next) => {
            body["links"] = json!({"self": own});
            if let Some(next) = next {
                body["links"]["next"] = json!(next);
            }
            body["metadata"] = json!({"total_count": total});
        }
    }
    Ok(Answer::ok(body))
}
