//! `/v1/volume`: the identities of nodes towards storage systems, and their remote volumes.

use axum::response::Response;
use baremetal_core::{
    Node, NodeUuid, Stored, VolumeConnector, VolumeTarget, check_volume_change,
    check_volume_deletion,
};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    Hidden, JsonShape, Microversion, Origin, PathParam, Route, Routes, Rule, json,
};
use serde_json::{Value, json as value};

use crate::app::App;
use crate::error::Result;
use crate::field::{Field, Kind, Read};
use crate::filter::Filter;
use crate::microversion as since;
use crate::request::Request;
use crate::rule::{INSTALL, READ, SET_VOLUMES};
use crate::shown::Shown;
use crate::stored::{
    self, Paths, Served, StoredList, created_field, links_field, updated_field, uuid_field,
};
use crate::value::{integer, required_text, uuid};
use crate::write::put;

impl Served for VolumeConnector {
    const NAME: &'static str = "a volume connector";
    const COLLECTION: &'static str = "connectors";
    const LINKS: &'static str = "volume/connectors";
    const FIELDS: &'static [Field<Connector>] = CONNECTOR_FIELDS;
    const FILTERS: &'static [Filter<StoredList>] = FILTERS;
    const PATHS: Paths = Paths {
        all: "/v1/volume/connectors",
        detail: None,
        one: "/v1/volume/connectors/{connector}",
        of_node: Some(("/v1/nodes/{node}/volume/connectors", since::VOLUME)),
        detail_of_node: None,
    };
    const SINCE: Microversion = since::VOLUME;
    const DETAIL_QUERY: Microversion = since::VOLUME;
    const HIDDEN: Hidden = Hidden::Path;
    const RULES: [Rule; 4] = [READ, SET_VOLUMES, INSTALL, SET_VOLUMES];
    const SUMMARIES: [&'static str; 5] =
        stored::summaries!("a volume connector", "volume connectors");

    fn check_change(node: &Node, is_deletion: bool) -> Result<()> {
        check_change::<Self>(node, is_deletion)
    }
}

impl Served for VolumeTarget {
    const NAME: &'static str = "a volume target";
    const COLLECTION: &'static str = "targets";
    const LINKS: &'static str = "volume/targets";
    const FIELDS: &'static [Field<Target>] = TARGET_FIELDS;
    const FILTERS: &'static [Filter<StoredList>] = FILTERS;
    const PATHS: Paths = Paths {
        all: "/v1/volume/targets",
        detail: None,
        one: "/v1/volume/targets/{target}",
        of_node: Some(("/v1/nodes/{node}/volume/targets", since::VOLUME)),
        detail_of_node: None,
    };
    const SINCE: Microversion = since::VOLUME;
    const DETAIL_QUERY: Microversion = since::VOLUME;
    const HIDDEN: Hidden = Hidden::Path;
    const RULES: [Rule; 4] = [READ, SET_VOLUMES, INSTALL, SET_VOLUMES];
    const SUMMARIES: [&'static str; 5] = stored::summaries!("a volume target", "volume targets");

    fn check_change(node: &Node, is_deletion: bool) -> Result<()> {
        check_change::<Self>(node, is_deletion)
    }
}

type Connector = Stored<VolumeConnector>;
type Target = Stored<VolumeTarget>;

use Kind::{Integer, Object, Text};

const fn connector(name: &'static str, kind: Kind, read: Read<Connector>) -> Field<Connector> {
    Field::new(name, 32, kind, read)
}

const fn target(name: &'static str, kind: Kind, read: Read<Target>) -> Field<Target> {
    Field::new(name, 32, kind, read)
}

#[rustfmt::skip]
const CONNECTOR_FIELDS: &[Field<Connector>] = &[
    uuid_field(32),
    connector("node_uuid", Text, |it, _| it.content.node.into())
        .create(|it, name, new| put(&mut it.content.node, node(name, new)))
        .required()
        .brief(),
    connector("type", Text, |it, _| (&it.content.kind).into())
        .change(INSTALL, |it, name, new| put(&mut it.content.kind, required_text(name, new)))
        .required()
        .brief(),
    connector("connector_id", Text, |it, _| (&it.content.connector_id).into())
        .change(INSTALL, |it, name, new| put(&mut it.content.connector_id, required_text(name, new)))
        .required()
        .brief(),
    connector("extra", Object, |it, _| (&it.content.extra).into())
        .change_object(INSTALL, |it| &mut it.content.extra),
    created_field(32),
    updated_field(32),
    links_field(32),
];

#[rustfmt::skip]
const TARGET_FIELDS: &[Field<Target>] = &[
    uuid_field(32),
    target("node_uuid", Text, |it, _| it.content.node.into())
        .create(|it, name, new| put(&mut it.content.node, node(name, new)))
        .required()
        .brief(),
    target("volume_type", Text, |it, _| (&it.content.volume_type).into())
        .change(INSTALL, |it, name, new| put(&mut it.content.volume_type, required_text(name, new)))
        .required()
        .brief(),
    target("volume_id", Text, |it, _| (&it.content.volume_id).into())
        .change(INSTALL, |it, name, new| put(&mut it.content.volume_id, required_text(name, new)))
        .required()
        .brief(),
    target("boot_index", Integer, |it, _| Shown::Integer(it.content.boot_index))
        .change(INSTALL, |it, name, new| put(&mut it.content.boot_index, integer(name, &new)))
        .required()
        .brief(),
    target("properties", Object, |it, _| Shown::masked(&it.content.properties))
        .change_secrets(INSTALL, |it| &mut it.content.properties),
    target("extra", Object, |it, _| (&it.content.extra).into())
        .change_object(INSTALL, |it| &mut it.content.extra),
    created_field(32),
    updated_field(32),
    links_field(32),
];

const FILTERS: &[Filter<StoredList>] = &[Filter {
    name: "node",
    since: since::VOLUME,
    narrow: |list, by| put(&mut list.node, Ok(by.text())),
}];

fn node(name: &str, new: Value) -> Result<NodeUuid, openstack_api::ApiError> {
    Ok(uuid(name, new)?.map_or(NodeUuid::nil(), NodeUuid::from_untyped_uuid))
}

fn check_change<V: Served>(node: &Node, is_deletion: bool) -> Result<()> {
    let resource = V::NAME.trim_start_matches("a ");
    match is_deletion {
        true => Ok(check_volume_deletion(node, resource)?),
        false => Ok(check_volume_change(node, resource)?),
    }
}

/// The routes of volume connectors and targets.
pub(crate) fn routes() -> Routes<App> {
    let described = |route: Route<App>| {
        let links = JsonShape::links;
        route.since(since::VOLUME).with_rule(READ).returns(JsonShape::object([
            ("connectors", links()),
            ("targets", links()),
            ("links", links()),
        ]))
    };
    stored::routes::<VolumeConnector>()
        .merge(stored::routes::<VolumeTarget>())
        .at("/v1/volume", [described(Route::get("Show the links to all volumes", show))])
        .at(
            "/v1/nodes/{node}/volume",
            [described(Route::get("Show the links to a node's volumes", show_of_node))],
        )
}

/// `GET /v1/volume`: shows the links to the lists of volume connectors and targets.
async fn show(_request: Request, origin: Origin) -> Result<Response> {
    Ok(json(StatusCode::OK, &links(&origin, "volume")))
}

/// `GET /v1/nodes/{node}/volume`: shows the links to the node's lists of volume connectors and targets.
async fn show_of_node(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
) -> Result<Response> {
    let node = request.node(&ident).await?;
    Ok(json(StatusCode::OK, &links(&origin, &format!("nodes/{}/volume", node.id))))
}

fn links(origin: &Origin, path: &str) -> Value {
    let of = |part: &str| {
        value!([
            {"href": format!("{origin}/v1/{path}{part}"), "rel": "self"},
            {"href": format!("{origin}/{path}{part}"), "rel": "bookmark"},
        ])
    };
    value!({"connectors": of("/connectors"), "targets": of("/targets"), "links": of("/")})
}
