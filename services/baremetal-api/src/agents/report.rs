//! Parses the reports of agents.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use openstack_api::check_unique_keys;
use serde::de::DeserializeOwned;

use super::error::ErrorAnswer;

/// A JSON body, parsed as `T`. Like the API, it refuses an object with a duplicate key.
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ErrorAnswer;

    async fn from_request(request: Request, state: &S) -> Result<Self, ErrorAnswer> {
        let json = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !json.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json")) {
            let why = "Content-Type: must be application/json".to_owned();
            return Err(ErrorAnswer::bad_request(why));
        }
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|why| ErrorAnswer::bad_request(why.body_text()))?;
        check_unique_keys(&body).map_err(|why| ErrorAnswer::bad_request(why.message))?;
        let read = Json::from_bytes(&body);
        let Json(read) =
            read.map_err(|why: JsonRejection| ErrorAnswer::bad_request(why.body_text()))?;
        Ok(JsonBody(read))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use serde_json::{Map, Value};

    use super::*;

    async fn reported(kind: &str, body: &str) -> (StatusCode, String) {
        let request =
            Request::post("/").header(CONTENT_TYPE, kind).body(Body::from(body.to_owned()));
        let read = JsonBody::<Map<String, Value>>::from_request(request.unwrap(), &()).await;
        let answer = read.map(|_| StatusCode::OK).into_response();
        let status = answer.status();
        (
            status,
            String::from_utf8(to_bytes(answer.into_body(), 4096).await.unwrap().to_vec()).unwrap(),
        )
    }

    #[tokio::test]
    async fn a_duplicate_key_in_a_report_is_refused_by_name() {
        let (status, said) = reported("application/json", r#"{"a": {"b": 1, "b": 2}}"#).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(said.contains("error_message") && said.contains("duplicate key"), "{said}");
        let (status, _) = reported("application/json; charset=utf-8", r#"{"a": {"b": 1}}"#).await;
        assert_eq!(status, StatusCode::OK);
        for (kind, body) in [("text/plain", "{}"), ("application/json", "[]"), ("", "{}")] {
            assert_eq!(reported(kind, body).await.0, StatusCode::BAD_REQUEST, "{kind} {body}");
        }
    }
}
