//! `/v1/chassis`: groups of nodes.

use axum::response::Response;
use baremetal_core::{Chassis, Stored};
use http::StatusCode;
use openstack_api::{JsonShape, ListRequest, Microversion, PathParam, Route, Routes, Rule};

use crate::app::App;
use crate::error::Result;
use crate::field::{DetailLevel, Field, Kind, Read};
use crate::filter::Filter;
use crate::request::Request;
use crate::rule::{ADMINISTER, READ_SHARED, SET_OWNER};
use crate::stored::{
    self, Paths, Purpose, Served, StoredList, created_field, links_field, updated_field, uuid_field,
};
use crate::value::text;
use crate::write::put;
use crate::{list_query, microversion as since, node, openapi};

impl Served for Chassis {
    const NAME: &'static str = "a chassis";
    const COLLECTION: &'static str = "chassis";
    const FIELDS: &'static [Field<Stored<Chassis>>] = FIELDS;
    const FILTERS: &'static [Filter<StoredList>] = &[];
    const PATHS: Paths = Paths {
        all: "/v1/chassis",
        detail: Some("/v1/chassis/detail"),
        one: "/v1/chassis/{chassis}",
        of_node: None,
        detail_of_node: None,
    };
    const SINCE: Microversion = since::MINIMUM;
    const RULES: [Rule; 4] = [READ_SHARED, ADMINISTER, SET_OWNER, ADMINISTER];
    const USERS: &'static str = "nodes";
    const SUMMARIES: [&'static str; 5] = stored::summaries!("a chassis", "chassis");
}

const fn field(
    name: &'static str,
    minor: u16,
    kind: Kind,
    read: Read<Stored<Chassis>>,
) -> Field<Stored<Chassis>> {
    Field::new(name, minor, kind, read)
}

#[rustfmt::skip]
const FIELDS: &[Field<Stored<Chassis>>] = &[
    uuid_field(1),
    field("description", 1, Kind::Text, |it, _| (&it.content.description).into())
        .change(SET_OWNER, |it, name, new| put(&mut it.content.description, text(name, new, 255)))
        .brief(),
    field("extra", 1, Kind::Object, |it, _| (&it.content.extra).into())
        .change_object(SET_OWNER, |it| &mut it.content.extra),
    field("nodes", 1, Kind::LinkLists, |it, look| look.link_lists("chassis", it.id, "/nodes")),
    created_field(1),
    updated_field(1),
    links_field(1),
];

pub(crate) fn routes() -> Routes<App> {
    let nodes = Route::get("List the nodes of a chassis", list_nodes)
        .with_rule(READ_SHARED)
        .query_parameters(list_query::PAGING)
        .query_parameters(["detail"])
        .refuses([StatusCode::NOT_FOUND])
        .returns(JsonShape::page("nodes", openapi::shape::<baremetal_core::Node>()));
    let detail = Route::get("List the nodes of a chassis with all their fields", list_nodes_detail)
        .with_rule(READ_SHARED)
        .query_parameters(list_query::PAGING)
        .refuses([StatusCode::NOT_FOUND])
        .returns(JsonShape::page("nodes", openapi::shape::<baremetal_core::Node>()));
    stored::routes::<Chassis>()
        .at("/v1/chassis/{chassis}/nodes", [nodes])
        .at("/v1/chassis/{chassis}/nodes/detail", [detail])
}

/// `GET /v1/chassis/{chassis}/nodes`: lists the nodes of a chassis.
async fn list_nodes(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let chassis = stored::find::<Chassis>(&request, &ident, Purpose::See).await?.id;
    node::page(request, paging, DetailLevel::Brief, Some(chassis)).await
}

/// `GET /v1/chassis/{chassis}/nodes/detail`: lists the nodes of a chassis with all fields.
async fn list_nodes_detail(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let chassis = stored::find::<Chassis>(&request, &ident, Purpose::See).await?.id;
    node::page(request, paging, DetailLevel::Detail, Some(chassis)).await
}
