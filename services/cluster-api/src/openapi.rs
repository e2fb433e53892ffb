//! `/openapi.json`: the description of every route, made of the routes themselves.

use openstack_api::Operation;
use utoipa::PartialSchema;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Paths, RefOr, Schema,
};

/// Describes `paths`.
pub(crate) fn document(paths: Paths) -> OpenApi {
    let basic = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Basic).build());
    let description = "The OpenStack Container Infra API v1, and what Bedplate has beside it. Every request may carry \
                       OpenStack-API-Version: container-infra 1.N. A refusal is {\"errors\": [{\"detail\": \"...\"}]}.";
    let info = InfoBuilder::new().title("Bedplate Container Infra API").version("1.14");
    OpenApiBuilder::new()
        .info(info.description(Some(description)).build())
        .paths(paths)
        .components(Some(ComponentsBuilder::new().security_scheme("basic", basic).build()))
        .security(Some([SecurityRequirement::new("basic", [""; 0])]))
        .build()
}

/// What every PATCH reads that reads a JSON patch.
pub(crate) fn patch_body() -> RefOr<Schema> {
    Schema::from(ArrayBuilder::new().items(Operation::schema()).build()).into()
}
