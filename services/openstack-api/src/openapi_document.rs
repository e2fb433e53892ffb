//! The frame of `/openapi.json`, around the routes of an API.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ComponentsBuilder, Info, InfoBuilder, OpenApiVersion};

use crate::routes::{DescribedRoutes, refusal, refusal_name};
use crate::{JsonShape, Microversion, REFUSAL};

/// The parts of an OpenAPI document that differ between the APIs, besides the routes.
pub struct ApiDescription {
    pub title: &'static str,
    pub version: Microversion,
    pub description: &'static str,
    pub refusal: JsonShape,
}

/// An OpenAPI document (OpenAPI 3.1, OpenAPI Object).
#[derive(Serialize)]
struct Document {
    openapi: OpenApiVersion,
    info: Info,
    paths: BTreeMap<&'static str, BTreeMap<String, Box<RawValue>>>,
    components: Components,
    security: [SecurityRequirement; 1],
}

impl ApiDescription {
    /// The text of the document of these routes.
    pub(crate) fn document(self, routes: DescribedRoutes) -> Vec<u8> {
        let basic = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Basic).build());
        let info = InfoBuilder::new().title(self.title).version(self.version.to_string());
        let refusals = routes.refusals.into_iter();
        let components = ComponentsBuilder::new()
            .schema(REFUSAL, self.refusal)
            .responses_from_iter(refusals.map(|status| (refusal_name(status), refusal(status))))
            .security_scheme("basic", basic);
        let document = Document {
            openapi: OpenApiVersion::Version31,
            info: info.description(Some(self.description)).build(),
            paths: routes.paths,
            components: components.build(),
            security: [SecurityRequirement::new("basic", [""; 0])],
        };
        serde_json::to_vec(&document).expect("a document has text alone for keys")
    }
}
