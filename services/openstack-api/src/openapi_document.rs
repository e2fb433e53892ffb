//! The frame of `/openapi.json`, around the paths of an API.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Paths};

use crate::{JsonShape, Microversion, REFUSAL};

/// The parts of an OpenAPI document that differ between the APIs, besides the paths.
pub struct ApiDescription {
    pub title: &'static str,
    pub version: Microversion,
    pub description: &'static str,
    pub refusal: JsonShape,
}

impl ApiDescription {
    /// Makes the document of these paths.
    pub fn document(self, paths: Paths) -> OpenApi {
        let basic = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Basic).build());
        let info = InfoBuilder::new().title(self.title).version(self.version.to_string());
        let components = ComponentsBuilder::new().schema(REFUSAL, self.refusal);
        let components = components.security_scheme("basic", basic);
        OpenApiBuilder::new()
            .info(info.description(Some(self.description)).build())
            .paths(paths)
            .components(Some(components.build()))
            .security(Some([SecurityRequirement::new("basic", [""; 0])]))
            .build()
    }
}
