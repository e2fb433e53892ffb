//! `/openapi.json`: the description of every route, made of the routes themselves.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use openstack_api::{Operation, json};
use utoipa::PartialSchema;
use utoipa::openapi::path::{HttpMethod, OperationBuilder};
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, Paths, RefOr,
    Response as DocResponse, Schema,
};

/// Serves the description of `paths`.
pub(crate) fn serve<S: Clone + Send + Sync + 'static>(mut paths: Paths) -> Router<S> {
    let own = OperationBuilder::new()
        .tag("versions")
        .summary(Some("Describe every route"))
        .securities(Some([SecurityRequirement::default()]))
        .response("200", DocResponse::new("An OpenAPI document."));
    paths.paths.insert("/openapi.json".to_owned(), PathItem::new(HttpMethod::Get, own));
    let document = Arc::new(document(paths));
    Router::new()
        .route("/openapi.json", get(move || async move { json(StatusCode::OK, &*document) }))
}

fn document(paths: Paths) -> OpenApi {
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
