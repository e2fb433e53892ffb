//! Classifies answers whose status is not a success.

use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;

use crate::error::{KubernetesError, Refusal};
use crate::lenient;

/// The longest message of a server that is kept, in characters.
const LONGEST_SENTENCE: usize = 400;

/// `meta/v1 Status`, the body of an API server's error; proxies in between send other bodies.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "lenient::or_default")]
    message: String,
    #[serde(deserialize_with = "lenient::or_default")]
    reason: String,
    #[serde(deserialize_with = "lenient::or_default")]
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    #[serde(rename = "retryAfterSeconds", deserialize_with = "lenient::or_default")]
    retry_after: u64,
    #[serde(deserialize_with = "lenient::or_default")]
    causes: Vec<Cause>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    #[serde(deserialize_with = "lenient::or_default")]
    reason: String,
}

/// Makes the error for an answer whose status is not a success.
pub(crate) fn error(
    mut refusal: Refusal,
    body: &[u8],
    retry_after: Option<Duration>,
) -> KubernetesError {
    let reported: Status = serde_json::from_slice(body).unwrap_or_default();
    // A message about a Secret may quote it.
    if !refusal.request.path.contains("/secrets") {
        refusal.message = lenient::plain(&reported.message, LONGEST_SENTENCE);
    }
    refusal.reason = lenient::plain(&reported.reason, 40);
    refusal.causes =
        reported.details.causes.iter().take(8).map(|it| lenient::plain(&it.reason, 40)).collect();
    let wait = Some(reported.details.retry_after).filter(|seconds| *seconds > 0);
    let retry_after = retry_after.or(wait.map(|it| Duration::from_secs(it.min(3600))));
    let answer = Box::new(refusal);
    match answer.status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT => KubernetesError::Busy { answer, retry_after },
        StatusCode::UNAUTHORIZED => KubernetesError::Unauthorized(answer),
        StatusCode::FORBIDDEN => KubernetesError::Forbidden(answer),
        StatusCode::NOT_FOUND => KubernetesError::NotFound(answer),
        StatusCode::CONFLICT if answer.reason == "AlreadyExists" => KubernetesError::Exists(answer),
        // Gone: reading a list in pages took so long that the server dropped the snapshot.
        StatusCode::CONFLICT | StatusCode::GONE => KubernetesError::Conflict(answer),
        status if status.is_server_error() => KubernetesError::Failed(answer),
        _ => KubernetesError::Refused(answer),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use reqwest::Method;

    use super::*;
    use crate::error::Request;

    fn answered(path: &str, status: u16, body: &[u8]) -> KubernetesError {
        let request = Request { method: Method::POST, path: path.to_owned() };
        let status = StatusCode::from_u16(status).unwrap();
        error(Refusal::new(request, status), body, None)
    }

    #[track_caller]
    fn check(status: u16, body: &str, want: Expect) {
        let error = answered("/api/v1/nodes", status, body.as_bytes());
        let debug = format!("{error:?}");
        let variant = debug.split(['(', ' ', '{']).next().unwrap();
        want.assert_eq(&format!("{variant}, transient {}: {error}", error.is_transient()));
    }

    #[test]
    fn an_error_is_classified_by_status_and_reason() {
        check(
            409,
            r#"{"kind":"Status","status":"Failure","message":"nodes \"n\" already exists","reason":"AlreadyExists","details":{"name":"n","kind":"nodes"},"code":409}"#,
            expect![[
                r#"Exists, transient false: the API server answered 409 Conflict to POST /api/v1/nodes: nodes "n" already exists"#
            ]],
        );
        check(
            409,
            r#"{"message":"Operation cannot be fulfilled on nodes \"n\": the object has been modified","reason":"Conflict","code":409}"#,
            expect![[
                r#"Conflict, transient true: the API server answered 409 Conflict to POST /api/v1/nodes: Operation cannot be fulfilled on nodes "n": the object has been modified"#
            ]],
        );
        check(
            500,
            r#"{"message":"etcdserver: leader changed","code":500}"#,
            expect![
                "Failed, transient true: the API server answered 500 Internal Server Error to POST /api/v1/nodes: etcdserver: leader changed"
            ],
        );
        check(
            422,
            r#"{"message":"Node \"n\" is invalid","reason":"Invalid"}"#,
            expect![[
                r#"Refused, transient false: the API server answered 422 Unprocessable Entity to POST /api/v1/nodes: Node "n" is invalid"#
            ]],
        );
        check(
            503,
            "<html>no server is available</html>",
            expect![
                "Busy, transient true: the API server answered 503 Service Unavailable to POST /api/v1/nodes"
            ],
        );
    }

    #[test]
    fn retry_after_of_a_busy_server_is_read() {
        let body = br#"{"message":"slow down","reason":"TooManyRequests","details":{"retryAfterSeconds":7}}"#;
        let error = answered("/api/v1/nodes", 429, body);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_message_about_a_secret_is_dropped() {
        let body = br#"{"message":"Secret in version v1 cannot be handled: hunter2","reason":"BadRequest"}"#;
        let error = answered("/api/v1/namespaces/kube-system/secrets/s", 400, body);
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn no_body_panics_or_grows(status in 300u16..600, body: Vec<u8>) {
            let error = answered("/x", status, &body);
            prop_assert!(error.refusal().unwrap().message.chars().count() <= LONGEST_SENTENCE + 1);
        }
    }
}
