//! `/openapi.json`: the OpenAPI document, generated from the routes.

use openstack_api::{ApiDescription, JsonShape, Microversion, Operation};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use crate::error::refused;
use crate::field::Resource;
use crate::microversion;

/// The description of this API.
pub(crate) fn description() -> ApiDescription {
    ApiDescription {
        title: "Bedplate Bare Metal API",
        version: microversion::MAXIMUM,
        description: "The OpenStack Bare Metal API v1, and the additional routes of Bedplate. Every request may carry \
                       X-OpenStack-Ironic-API-Version. A refusal is {\"error_message\": \"...\"}, whose text is JSON itself.",
        refusal: refused(),
    }
}

/// The body of a POST: every field that a client may set, and the fields `besides` that the resource does not keep.
pub(crate) fn body<R: Resource>(
    besides: impl IntoIterator<Item = (&'static str, Microversion)>,
) -> RefOr<Schema> {
    let mut body =
        ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
    for field in R::FIELDS.iter().filter(|field| field.is_required) {
        body = body.required(field.name);
    }
    let settable =
        R::FIELDS.iter().filter(|field| field.access.set().is_some() && !field.is_set_later);
    let settable = settable.map(|field| (field.name, field.kind.body(), field.since));
    let besides = besides.into_iter().map(|(name, since)| (name, Type::String, since));
    for (name, kind, since) in settable.chain(besides) {
        let described = format!("Since API version {since}.");
        let property = ObjectBuilder::new().schema_type(kind).description(Some(described));
        body = body.property(name, property);
    }
    Schema::from(body.build()).into()
}

/// The JSON shape of a resource. All fields are optional, because version, request and caller decide which are shown.
pub(crate) fn shape<R: Resource>() -> JsonShape {
    let fields = R::FIELDS.iter().map(|field| (field.name, field.kind.shape()));
    fields.fold(JsonShape::object([]), |all, field| all.maybe([field]))
}

pub(crate) fn patch_body() -> RefOr<Schema> {
    JsonShape::list(Operation::shape()).into()
}
