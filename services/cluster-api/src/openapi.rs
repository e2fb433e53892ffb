//! `/openapi.json`: the API description, made from the routes themselves.

use openstack_api::{ApiDescription, JsonShape, Operation};
use utoipa::openapi::{RefOr, Schema};

use crate::error::refused;
use crate::microversion;

/// The description of this API.
pub(crate) fn description() -> ApiDescription {
    ApiDescription {
        title: "Bedplate Container Infra API",
        version: microversion::MAXIMUM,
        description: "The OpenStack Container Infra API v1, and Bedplate's own routes under /bedplate/v1. Every \
                       request may carry OpenStack-API-Version: container-infra 1.N. A refusal is {\"errors\": \
                       [{\"detail\": \"...\"}]}.",
        refusal: refused(),
    }
}

/// The body schema of every request that reads a JSON patch.
pub(crate) fn patch_body() -> RefOr<Schema> {
    JsonShape::list(Operation::shape()).into()
}
