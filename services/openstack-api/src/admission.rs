//! Admits a caller to a handler: authenticates the caller, applies the limits and the rule of the route, and records the request.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;

use crate::limits::{Limiter, PermitSlot};
use crate::request_recorder::{Recorded, RequestRecorder};
use crate::{ApiError, Auth, Caller, Rule};

/// The check before a handler that has a caller.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    pub(crate) rule: Rule,
    /// `None` if requests to the route are not recorded.
    pub(crate) recorded: Option<Recorded>,
}

/// The answer to callers whom the rule of a route permits, if the requested version does not have the route.
#[derive(Clone)]
pub(crate) struct MissingAfterRule(pub(crate) ApiError);

/// Why a caller does not reach a handler.
#[derive(Debug)]
pub enum AdmissionRefused {
    /// The rule of the route refuses this caller, whatever resource the path names.
    ByRule { caller: Caller, why: ApiError },
    /// The caller is unknown, sends too many requests, or the request cannot be recorded.
    Otherwise(ApiError),
}

impl From<ApiError> for AdmissionRefused {
    fn from(why: ApiError) -> Self {
        AdmissionRefused::Otherwise(why)
    }
}

impl From<AdmissionRefused> for ApiError {
    fn from(refused: AdmissionRefused) -> Self {
        match refused {
            AdmissionRefused::ByRule { why, .. } | AdmissionRefused::Otherwise(why) => why,
        }
    }
}

/// Authenticates the caller of a request and checks that the caller may use the route.
///
/// # Errors
///
/// Separates callers that the rule of the route refuses, so that an API can hide from them that a resource exists.
pub async fn admit<S>(parts: &mut Parts, state: &S) -> Result<Caller, AdmissionRefused>
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    let limits = parts.extensions.get::<(Arc<Limiter>, PermitSlot)>().cloned();
    let limits = limits.ok_or_else(|| ApiError::broken("this route is not behind apply()"))?;
    let (limiter, seat) = limits;
    let door = limiter.door(parts);
    let caller = Auth::from_ref(state).identify(&parts.headers, &door).await?;
    // Only `Routes` turns handlers into routes, and it adds a gate to each; only `apply` serves routes.
    let gate = parts.extensions.get::<Gate>().copied();
    let gate = gate.ok_or_else(|| ApiError::broken("this route has no rule"))?;
    let watch = parts.extensions.get::<RequestRecorder>().cloned();
    let watch = watch.ok_or_else(|| ApiError::broken("requests to this route are not recorded"))?;
    watch.is_by(&caller);
    // If another extractor has already set the seat, that seat stays.
    let _ = seat.set(limiter.seat(&caller, &parts.method)?);
    let caller = caller.with_rule(gate.rule);
    if let Err(why) = gate.rule.admit(&caller) {
        return Err(AdmissionRefused::ByRule { caller, why });
    }
    if let Some(MissingAfterRule(why)) = parts.extensions.get() {
        return Err(why.clone().into());
    }
    if let Some(recorded) = gate.recorded {
        watch.ask(recorded, parts).await?;
    }
    Ok(caller)
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(admit(parts, state).await?)
    }
}
