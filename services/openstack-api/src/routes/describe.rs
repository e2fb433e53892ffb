//! What a route says of itself in the OpenAPI document.

use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, Required, Response as DocResponse, ResponseBuilder, Schema,
};

use super::Handle;

pub(super) fn describe<S>(tag: &str, path: &str, handle: &Handle<S>) -> PathItem {
    let mut operation = OperationBuilder::new()
        .tag(tag)
        .summary(Some(handle.summary))
        .response(handle.status.to_string(), described(handle.streams));
    if let Some(came) = handle.since {
        operation = operation.description(Some(format!("Came with version {came}.")));
    }
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    for name in parts {
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
        operation = operation.parameter(parameter.required(Required::True).build());
    }
    if handle.streams.is_some() {
        let last = ParameterBuilder::new().name("Last-Event-ID").parameter_in(ParameterIn::Header);
        let last = last.description(Some("The id of the last event that the client has."));
        operation = operation.parameter(last.build());
        operation = operation.response("503", DocResponse::new("Too many streams are open."));
    }
    if let Some(body) = &handle.body {
        let content = ContentBuilder::new().schema(Some(body.clone())).build();
        let body = RequestBodyBuilder::new().content("application/json", content);
        operation = operation.request_body(Some(body.build()));
    }
    if handle.rule.is_none() {
        operation = operation.securities(Some([SecurityRequirement::default()]));
    }
    PathItem::new(handle.method.clone(), operation)
}

/// What success looks like.
fn described(streams: Option<&str>) -> DocResponse {
    let mut answer = ResponseBuilder::new().description("As asked.");
    if let Some(what) = streams {
        let events = Schema::from(ObjectBuilder::new().description(Some(what)).build());
        answer = answer
            .content("application/json", ContentBuilder::new().build())
            .content("text/event-stream", ContentBuilder::new().schema(Some(events)).build());
    }
    answer.build()
}
