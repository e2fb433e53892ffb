//! Classifies answers whose status is not a success: each service has its own error format.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;

use crate::error::{CloudError, Refusal};
use crate::service::Service;

/// The longest message of a service that is kept, in characters.
const LONGEST_SENTENCE: usize = 400;

/// Makes the error for an answer whose status is not a success.
pub(crate) fn error(
    mut refusal: Refusal,
    body: &[u8],
    retry_after: Option<Duration>,
) -> CloudError {
    let reported = ErrorBody::read(body);
    refusal.message = reported.sentence;
    let answer = Box::new(refusal);
    let quota = is_about_quota(&reported.kind, &answer.message);
    match answer.status {
        // Old Nova answered 413 to too many requests (API guide, "Rate limits"), and Cinder still does.
        StatusCode::PAYLOAD_TOO_LARGE
            if retry_after.is_some_and(|wait| !wait.is_zero()) && !quota =>
        {
            CloudError::Busy { answer, retry_after }
        }
        StatusCode::FORBIDDEN | StatusCode::CONFLICT | StatusCode::PAYLOAD_TOO_LARGE if quota => {
            CloudError::QuotaExceeded(answer)
        }
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT => CloudError::Busy { answer, retry_after },
        StatusCode::UNAUTHORIZED => CloudError::Unauthorized(answer),
        StatusCode::FORBIDDEN => CloudError::Forbidden(answer),
        StatusCode::NOT_FOUND | StatusCode::GONE => CloudError::NotFound(answer),
        StatusCode::CONFLICT if is_being_changed(answer.service, &answer.message) => {
            CloudError::Busy { answer, retry_after }
        }
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => CloudError::Conflict(answer),
        status if status.is_server_error() => CloudError::Failed(answer),
        _ => CloudError::Refused(answer),
    }
}

/// Whether Octavia refuses because it is changing the load balancer: that is transient.
fn is_being_changed(service: Service, message: &str) -> bool {
    let reported = ["is immutable and cannot be updated", "Invalid state PENDING_"];
    service == Service::LoadBalancer && reported.iter().any(|it| message.contains(it))
}

/// Whether the error is about a quota: Neutron's `OverQuota`, Designate's `over_quota`, or messages such as "Quota exceeded for instances"
/// (Nova, Cinder), "Quota has been met for resources" (Octavia), "maximum of 10 already exceeded" (Keystone).
fn is_about_quota(kind: &str, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let reported = message.contains("quota") || message.contains("already exceeded");
    matches!(kind, "OverQuota" | "over_quota") || reported || message.contains("limit exceeded")
}

/// Error type and message in the body of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
struct ErrorBody {
    kind: String,
    sentence: String,
}

impl ErrorBody {
    fn read(body: &[u8]) -> ErrorBody {
        match serde_json::from_slice(body) {
            Ok(Value::Object(object)) => ErrorBody::of(&object),
            Ok(Value::String(text)) => ErrorBody { kind: String::new(), sentence: plain(&text) },
            Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                ErrorBody::default()
            }
            // Glance and proxies answer in HTML.
            Err(_) => {
                let sentence = plain(&without_tags(&String::from_utf8_lossy(body)));
                ErrorBody { kind: String::new(), sentence }
            }
        }
    }

    fn of(object: &serde_json::Map<String, Value>) -> ErrorBody {
        let own = Value::Object(object.clone());
        // Placement lists errors (API SIG, "Errors"). Other services wrap the error in an object with a key of their own: error,
        // NeutronError, badRequest, forbidden. Octavia and Designate do not wrap it.
        let listed = object.get("errors").and_then(Value::as_array).and_then(|all| all.first());
        let wrapped = object.values().find(|value| value.get("message").is_some());
        let said = listed.or(wrapped).unwrap_or(&own);
        let text = |key: &str| match said.get(key) {
            Some(Value::String(text)) => Some(text.as_str()),
            // Old versions of Neutron, and Nova for some faults, have a string instead of an object.
            Some(
                Value::Object(_)
                | Value::Array(_)
                | Value::Null
                | Value::Bool(_)
                | Value::Number(_),
            )
            | None => None,
        };
        let keys = ["message", "faultstring", "detail", "description", "NeutronError", "title"];
        let sentence = keys.iter().find_map(|key| text(key).filter(|it| !it.trim().is_empty()));
        ErrorBody {
            kind: text("type").unwrap_or_default().to_owned(),
            sentence: plain(&without_tags(sentence.unwrap_or_default())),
        }
    }
}

/// Returns the text on one line, without control characters, cut to the longest length.
fn plain(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(LONGEST_SENTENCE).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

fn without_tags(html: &str) -> String {
    if !html.contains("</") && !html.contains("/>") && !html.contains("<br") {
        return html.to_owned();
    }
    let mut text = String::new();
    for (at, part) in html.split('<').enumerate() {
        let after = part.split_once('>').map_or("", |(_, after)| after);
        text.push_str(if at == 0 { part } else { after });
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use reqwest::Method;

    use super::*;
    use crate::error::Request;

    fn answered(
        service: Service,
        status: u16,
        body: &[u8],
        retry_after: Option<Duration>,
    ) -> CloudError {
        let request =
            Request { method: Method::POST, path: "/v2/x".to_owned(), id: "req-1".to_owned() };
        let status = StatusCode::from_u16(status).unwrap();
        error(Refusal { service, request, status, message: String::new() }, body, retry_after)
    }

    #[track_caller]
    fn check(service: Service, status: u16, body: &str, want: Expect) {
        let error = answered(service, status, body.as_bytes(), None);
        let debug = format!("{error:?}");
        let variant = debug.split(['(', ' ', '{']).next().unwrap();
        want.assert_eq(&format!("{variant}: {}", error.refusal().unwrap().message));
    }

    #[test]
    fn the_error_format_of_every_service_is_parsed() {
        check(
            Service::Compute,
            403,
            r#"{"forbidden": {"code": 403, "message": "Quota exceeded for cores: Requested 8, but already used 16 of 20 cores"}}"#,
            expect![
                "QuotaExceeded: Quota exceeded for cores: Requested 8, but already used 16 of 20 cores"
            ],
        );
        check(
            Service::Compute,
            409,
            r#"{"conflictingRequest": {"code": 409, "message": "Cannot 'stop' instance x while it is in vm_state stopped"}}"#,
            expect!["Conflict: Cannot 'stop' instance x while it is in vm_state stopped"],
        );
        check(
            Service::Network,
            409,
            r#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}"#,
            expect!["QuotaExceeded: Quota exceeded for resources: ['port']."],
        );
        check(
            Service::Network,
            409,
            r#"{"NeutronError": {"type": "NetworkInUse", "message": "There are one or more ports still in use on the network.", "detail": ""}}"#,
            expect!["Conflict: There are one or more ports still in use on the network."],
        );
        check(
            Service::LoadBalancer,
            403,
            r#"{"faultcode": "Client", "faultstring": "Quota has been met for resources: Load Balancer", "debuginfo": null}"#,
            expect!["QuotaExceeded: Quota has been met for resources: Load Balancer"],
        );
        check(
            Service::LoadBalancer,
            409,
            r#"{"faultcode": "Client", "faultstring": "Load Balancer x is immutable and cannot be updated.", "debuginfo": null}"#,
            expect!["Busy: Load Balancer x is immutable and cannot be updated."],
        );
        check(
            Service::LoadBalancer,
            409,
            r#"{"faultcode": "Client", "faultstring": "Invalid state PENDING_CREATE of loadbalancer resource x", "debuginfo": null}"#,
            expect!["Busy: Invalid state PENDING_CREATE of loadbalancer resource x"],
        );
        check(
            Service::Dns,
            413,
            r#"{"code": 413, "type": "over_quota", "message": "Quota exceeded for zones.", "request_id": "req-2"}"#,
            expect!["QuotaExceeded: Quota exceeded for zones."],
        );
        check(
            Service::Dns,
            409,
            r#"{"code": 409, "type": "duplicate_zone", "message": "Duplicate Zone", "request_id": "req-2"}"#,
            expect!["Conflict: Duplicate Zone"],
        );
        check(
            Service::Image,
            404,
            "<html>\n <head><title>404 Not Found</title></head><body><h1>404 Not Found</h1>No image found with ID x<br /><br />\n</body></html>",
            expect!["NotFound: 404 Not Found 404 Not Found No image found with ID x"],
        );
        check(
            Service::Identity,
            401,
            r#"{"error": {"code": 401, "message": "The request you have made requires authentication.", "title": "Unauthorized"}}"#,
            expect!["Unauthorized: The request you have made requires authentication."],
        );
        check(
            Service::Placement,
            409,
            r#"{"errors": [{"status": 409, "title": "Conflict", "detail": "There was a conflict.\n\n Unable to allocate  "}]}"#,
            expect!["Conflict: There was a conflict. Unable to allocate"],
        );
        check(
            Service::ObjectStore,
            404,
            "<html><h1>Not Found</h1><p>The resource could not be found.</p></html>",
            expect!["NotFound: Not Found The resource could not be found."],
        );
        check(Service::Network, 503, "", expect!["Busy: "]);
        check(Service::Network, 500, "[1]", expect!["Failed: "]);
        check(Service::Compute, 400, "\"no\"", expect!["Refused: no"]);
    }

    #[test]
    fn a_413_with_a_wait_is_a_request_to_slow_down() {
        let body = br#"{"overLimit": {"code": 413, "message": "This request was rate-limited."}}"#;
        let error = answered(Service::BlockStorage, 413, body, Some(Duration::from_secs(3)));
        assert!(error.is_transient());
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    }

    proptest! {
        #[test]
        fn no_body_panics_or_grows(status in 100u16..600, body: Vec<u8>) {
            let error = answered(Service::Image, status, &body, None);
            prop_assert!(error.refusal().unwrap().message.chars().count() <= LONGEST_SENTENCE + 1);
        }
    }
}
