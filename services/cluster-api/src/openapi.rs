//! `/openapi.json`: the API description, made from the routes themselves.

use openstack_api::{JsonShape, Operation, REFUSAL};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Paths, RefOr, Schema,
};

use crate::error::refused;

/// Makes the API description of `paths`.
pub(crate) fn document(paths: Paths) -> OpenApi {
    let basic = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Basic).build());
    let description = "The OpenStack Container Infra API v1, and Bedplate's own routes under /bedplate/v1. Every \
                       request may carry OpenStack-API-Version: container-infra 1.N. A refusal is {\"errors\": \
                       [{\"detail\": \"...\"}]}.";
    let info = InfoBuilder::new().title("Bedplate Container Infra API").version("1.14");
    let components = ComponentsBuilder::new().schema(REFUSAL, refused());
    let components = components.security_scheme("basic", basic);
    OpenApiBuilder::new()
        .info(info.description(Some(description)).build())
        .paths(paths)
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new("basic", [""; 0])]))
        .build()
}

/// The body schema of every request that reads a JSON patch.
pub(crate) fn patch_body() -> RefOr<Schema> {
    JsonShape::list(Operation::shape()).into()
}
