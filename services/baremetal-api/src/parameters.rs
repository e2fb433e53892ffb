//! Parameters that a request gives in its body or, as the first clients of Ironic did, in its query.

use axum::extract::{FromRequest, Request};
use openstack_api::{ApiError, Query, StrictJson, flag};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::{Map, Value};

use crate::app::App;

/// The parameters of a request, which are the fields of its body.
pub(crate) trait Parameters: DeserializeOwned {
    /// The names of the parameters that may also be in the query. A secret must not be among them, because proxies log queries.
    const IN_QUERY: &'static [&'static str];

    /// Refuses what else the query contains.
    fn finish(mut query: Query) -> Result<(), ApiError> {
        for name in Self::IN_QUERY {
            query.take(name);
        }
        query.finish()
    }
}

/// Extracts the parameters of a request. A parameter that is in the body and in the query is refused.
pub(crate) struct Given<T>(pub(crate) T);

impl<T: Parameters> FromRequest<App> for Given<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let mut query = Query::parse(request.uri().query().unwrap_or_default())?;
        let names = T::IN_QUERY.iter();
        let in_query =
            names.filter_map(|name| Some((*name, query.take(name)?))).collect::<Vec<_>>();
        if in_query.is_empty() {
            return StrictJson::from_request(request, app)
                .await
                .map(|StrictJson(body)| Given(body));
        }
        let body = Option::<StrictJson<Map<String, Value>>>::from_request(request, app).await?;
        let mut given = body.map(|StrictJson(body)| body).unwrap_or_default();
        for (name, value) in in_query {
            if given.insert(name.to_owned(), value.into()).is_some() {
                return Err(given_twice(name));
            }
        }
        let read = T::deserialize(Value::Object(given));
        read.map(Given).map_err(|why| ApiError::bad_field("query", why))
    }
}

/// The refusal of a parameter that is in the body and in the query.
pub(crate) fn given_twice(name: &str) -> ApiError {
    ApiError::bad_field(name, "is given in the body and in the query")
}

/// Deserializes a boolean, or one of the texts that OpenStack accepts for it.
pub(crate) fn boolean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a boolean")]
    enum Spelling {
        Boolean(bool),
        Text(String),
    }
    match Spelling::deserialize(deserializer)? {
        Spelling::Boolean(value) => Ok(value),
        Spelling::Text(text) => {
            flag("", &text).map_err(|_| D::Error::custom("must be true or false"))
        }
    }
}
