//! Describes a route in the OpenAPI document.

use std::collections::BTreeSet;

use http::StatusCode;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, Ref, RefOr, Required, Response as DocResponse, ResponseBuilder,
    Schema,
};

use super::route::{AnswerBody, Route};
use crate::JsonShape;

/// The name of the schema of refusals in the OpenAPI document; each API supplies the schema.
pub const REFUSAL: &str = "Refusal";

/// The description of a route without a declared answer; a test refuses such routes.
const UNSAID: &str = "Undescribed.";

/// The refusals of any route: because of the URL, the version, the headers, or a request from another website.
const ANY: [StatusCode; 5] = [
    StatusCode::BAD_REQUEST,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::URI_TOO_LONG,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
];
/// Further refusals of a route with a caller.
const OF_CALLERS: [StatusCode; 3] =
    [StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
/// Further refusals of a route that reads a body.
const OF_BODIES: [StatusCode; 3] = [
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
];

pub(super) fn describe<S>(tag: &str, path: &str, handle: &Route<S>) -> Operation {
    let mut operation = OperationBuilder::new()
        .tag(tag)
        .summary(Some(handle.summary))
        .response(handle.status.to_string(), success(handle));
    if let Some(came) = handle.since {
        operation = operation.description(Some(format!("Since API version {came}.")));
    }
    let text = || RefOr::<Schema>::from(JsonShape::text());
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    for name in parts {
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
        let parameter = parameter.required(Required::True).schema(Some(text()));
        operation = operation.parameter(parameter.build());
    }
    for name in &handle.asks {
        let parameter = ParameterBuilder::new().name(*name).parameter_in(ParameterIn::Query);
        operation = operation.parameter(parameter.schema(Some(text())).build());
    }
    if handle.streams.is_some() {
        let last = ParameterBuilder::new().name("Last-Event-ID").parameter_in(ParameterIn::Header);
        let last = last.description(Some("Id of the last event that the client received."));
        operation = operation.parameter(last.schema(Some(text())).build());
    }
    if let Some((body, required)) = &handle.body {
        let content = ContentBuilder::new().schema(Some(body.clone())).build();
        let body = RequestBodyBuilder::new().content("application/json", content);
        operation = operation.request_body(Some(body.required(Some(required.clone())).build()));
    }
    for status in &handle.empty_answers {
        let answer = ResponseBuilder::new().description("Success.").build();
        operation = operation.response(status.as_str(), answer);
    }
    for status in refusals(path, handle) {
        let shared = Ref::from_response_name(refusal_name(status));
        operation = operation.response(status.as_str(), shared);
    }
    if handle.rule.is_none() {
        operation = operation.securities(Some([SecurityRequirement::default()]));
    }
    operation.build()
}

fn success<S>(handle: &Route<S>) -> DocResponse {
    let said = match &handle.answer_body {
        AnswerBody::Undeclared if handle.status == StatusCode::NO_CONTENT.as_u16() => "Success.",
        AnswerBody::Undeclared => UNSAID,
        AnswerBody::Nothing | AnswerBody::Json(_) | AnswerBody::Text(_) => "Success.",
    };
    let mut answer = ResponseBuilder::new().description(said);
    let content = |shape: JsonShape| ContentBuilder::new().schema(Some(shape)).build();
    match &handle.answer_body {
        AnswerBody::Undeclared | AnswerBody::Nothing => {}
        AnswerBody::Json(shape) => {
            answer = answer.content("application/json", content(JsonShape::clone(shape)));
        }
        AnswerBody::Text(kind) => answer = answer.content(*kind, content(JsonShape::anything())),
    }
    if let Some(what) = handle.streams {
        let events = ObjectBuilder::new().description(Some(what));
        answer = answer.content("text/event-stream", content(events.into()));
    }
    answer.build()
}

/// The statuses with which the route may refuse a request.
pub(super) fn refusals<S>(path: &str, handle: &Route<S>) -> BTreeSet<StatusCode> {
    let mut all = BTreeSet::from(ANY);
    if handle.rule.is_some() {
        all.extend(OF_CALLERS);
    }
    if path.contains('{') || handle.since.is_some() {
        all.insert(StatusCode::NOT_FOUND);
    }
    if handle.body.is_some() {
        all.extend(OF_BODIES);
    }
    if !matches!(handle.method, HttpMethod::Get | HttpMethod::Head) {
        all.insert(StatusCode::CONFLICT);
    }
    all.extend(&handle.refusals);
    all
}

/// The name under which the OpenAPI document has the refusal with this status. All routes share the refusal.
pub(crate) fn refusal_name(status: StatusCode) -> String {
    format!("{REFUSAL}{}", status.as_str())
}

pub(crate) fn refusal(status: StatusCode) -> DocResponse {
    let refusal = ContentBuilder::new().schema(Some(JsonShape::called(REFUSAL))).build();
    let said = status.canonical_reason().unwrap_or("Refused");
    ResponseBuilder::new().description(said).content("application/json", refusal).build()
}
