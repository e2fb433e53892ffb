//! Maps errors to HTTP statuses and to Magnum's error envelope.

use axum::response::{IntoResponse, Response};
use cluster_conductor::{
    DrainError, ExternalObjectError, HostError, KeysError, MemberConfigError, OwnConfigError,
    SizesUnknown, TenancyError, VmError,
};
use cluster_core::{
    InvalidName, LabelsError, LeaseChangeRefused, QuotaRefused, Refusal, VmRefusal,
};
use cluster_store::{QuotaWriteError, StoreError};
use http::StatusCode;
use lease::ExtendError;
use openstack_api::{ApiError, JsonShape, RequestId, chain, key_file};
use sealing::{KeyFileError, RetireError};
use serde_json::json;
use tracing::{error, warn};

/// A result whose error is an [`Error`], unless it says otherwise.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request was refused or failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Labels(#[from] LabelsError),
    #[error(transparent)]
    Machines(#[from] MemberConfigError),
    #[error("name: {0}")]
    Name(#[from] InvalidName),
    #[error(transparent)]
    Borrow(#[from] ExternalObjectError),
    #[error(transparent)]
    Tenancy(#[from] TenancyError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("{0}")]
    Denied(QuotaRefused, Option<SizesUnknown>),
    #[error(transparent)]
    Lend(#[from] LeaseChangeRefused),
    #[error(transparent)]
    OwnConfig(#[from] OwnConfigError),
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    #[error(transparent)]
    Retire(#[from] RetireError<StoreError>),
    #[error(transparent)]
    Vm(#[from] VmRefusal),
    #[error(transparent)]
    Order(#[from] VmError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Drain(#[from] DrainError),
}

impl From<QuotaWriteError> for Error {
    fn from(error: QuotaWriteError) -> Self {
        Error::unmeasured(error, None)
    }
}

impl Error {
    /// Makes the error of a record that was not written; `why` says why the sizes of its flavors are unknown.
    pub(crate) fn unmeasured(error: QuotaWriteError, why: Option<SizesUnknown>) -> Self {
        match error {
            QuotaWriteError::Refused(denial) => Error::Denied(denial, why),
            QuotaWriteError::Store(error) => Error::Store(error),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Api(refusal) => return refusal.clone(),
            Error::Store(why) | Error::Retire(RetireError::Store(why)) => return store(why),
            Error::KeyFile(why) | Error::Retire(RetireError::File(why)) => return key_file(why),
            Error::Retire(RetireError::Unknown { .. }) => StatusCode::NOT_FOUND,
            Error::Retire(RetireError::Needed { .. }) => StatusCode::CONFLICT,
            Error::Denied(denial, why) => return quota(denial, why.as_ref()),
            Error::Keys(why)
            | Error::OwnConfig(OwnConfigError::Keys(why))
            | Error::Machines(MemberConfigError::Keys(why)) => return keys(why),
            Error::Machines(MemberConfigError::Store(why)) => return store(why),
            Error::Host(why) | Error::Drain(DrainError::Host(why)) => return host(why),
            Error::Drain(DrainError::Store(why)) => return store(why),
            Error::Drain(DrainError::Refused(_)) => StatusCode::CONFLICT,
            Error::Vm(why) => vm(why),
            Error::Order(VmError::Store(why)) => return store(why),
            Error::Order(why) if why.is_caller_error() => StatusCode::BAD_REQUEST,
            Error::Order(VmError::Closed(why)) => tenancy_status(why),
            Error::Order(VmError::NoServer) => StatusCode::CONFLICT,
            Error::Order(VmError::Cloud(why)) if why.is_conflict() => StatusCode::CONFLICT,
            Error::Order(why) => {
                error!("cannot ask the cloud about a VM: {}", chain(why));
                StatusCode::SERVICE_UNAVAILABLE
            }
            Error::OwnConfig(OwnConfigError::Document(_)) => StatusCode::BAD_REQUEST,
            Error::Borrow(
                ExternalObjectError::NotAllowed { .. }
                | ExternalObjectError::NoSshKey { .. }
                | ExternalObjectError::SharedNetworkWithRoutes,
            ) => StatusCode::BAD_REQUEST,
            // As in Magnum: the other objects that a body names are 400 there.
            Error::Borrow(ExternalObjectError::NoKeypair { .. }) => StatusCode::NOT_FOUND,
            Error::Borrow(why @ ExternalObjectError::Unchecked { .. }) => {
                error!("cannot look up the owner of a cloud object: {}", chain(why));
                StatusCode::SERVICE_UNAVAILABLE
            }
            Error::Tenancy(why) | Error::Borrow(ExternalObjectError::Closed(why)) => {
                tenancy_status(why)
            }
            Error::Refused(
                Refusal::Field { .. }
                | Refusal::Labels(_)
                | Refusal::Name(_)
                | Refusal::DefaultGroup { .. },
            )
            | Error::Labels(_)
            | Error::Machines(_)
            | Error::Name(_) => StatusCode::BAD_REQUEST,
            Error::Lend(why) => lease(why),
            Error::Refused(Refusal::Deleting { .. } | Refusal::Busy { .. }) => StatusCode::CONFLICT,
        };
        ApiError::new(status, error.to_string())
    }
}

/// The response to a request that exceeds a limit: 403, as in Magnum, or 503 if the sizes of the flavors are unknown.
fn quota(denial: &QuotaRefused, unmeasured: Option<&SizesUnknown>) -> ApiError {
    match (denial, unmeasured) {
        (QuotaRefused::Exceeded(_) | QuotaRefused::Lease { .. }, _) => {
            ApiError::new(StatusCode::FORBIDDEN, denial.to_string())
        }
        (QuotaRefused::Unmeasured { .. }, Some(SizesUnknown { why, is_asked_wrong: true })) => {
            ApiError::bad_request(why)
        }
        (QuotaRefused::Unmeasured { .. }, why) => {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let said = format!("{denial}{why}; try again later");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, said)
        }
    }
}

/// The status of a refused change of a lease: 400 if the caller has to ask for another end, 409 if the lease cannot be changed now.
fn lease(why: &LeaseChangeRefused) -> StatusCode {
    match why {
        LeaseChangeRefused::Extend(
            ExtendError::InThePast { .. }
            | ExtendError::TooLong { .. }
            | ExtendError::TooShort { .. },
        ) => StatusCode::BAD_REQUEST,
        LeaseChangeRefused::NotLent { .. }
        | LeaseChangeRefused::Going { .. }
        | LeaseChangeRefused::Extend(ExtendError::TooLate)
        | LeaseChangeRefused::Undo(_) => StatusCode::CONFLICT,
    }
}

/// The status of a refused change: 400 if the caller has to change the request, 409 if the same request may succeed later.
fn vm(why: &VmRefusal) -> StatusCode {
    match why {
        VmRefusal::TooSmall(_) | VmRefusal::Shrinks { .. } => StatusCode::BAD_REQUEST,
        VmRefusal::Volume
        | VmRefusal::Deleting
        | VmRefusal::Expired
        | VmRefusal::Busy(_)
        | VmRefusal::State(_) => StatusCode::CONFLICT,
    }
}

/// 403 means that clusterd's user may not act in the caller's project.
fn tenancy_status(why: &TenancyError) -> StatusCode {
    match why {
        TenancyError::Roleless { .. } | TenancyError::Bound { .. } | TenancyError::Nowhere => {
            StatusCode::FORBIDDEN
        }
        TenancyError::KeystoneFailed(_) => {
            error!("cannot get a token in a tenant's project: {}", chain(why));
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

/// The response if the compute hosts cannot be listed, or clusterd's user may not list them.
fn host(why: &HostError) -> ApiError {
    let status = match why {
        HostError::Store(why) => return store(why),
        HostError::NoHost(_) => StatusCode::NOT_FOUND,
        HostError::NoCloud => StatusCode::CONFLICT,
        HostError::NotAdmin(_) | HostError::Cloud(_) => {
            error!("cannot ask the cloud about its hosts: {}", chain(why));
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    ApiError::new(status, why.to_string())
}

fn keys(why: &KeysError) -> ApiError {
    match why {
        KeysError::Store(why) => store(why),
        KeysError::Sign(_) => ApiError::bad_request(why.to_string()),
        KeysError::Seal(_) | KeysError::Malformed(_) | KeysError::Make(_) => {
            error!("cannot use a cluster's keys: {}", chain(why));
            ApiError::broken("cannot use the cluster's keys; see the log of clusterd")
        }
    }
}

fn store(why: &StoreError) -> ApiError {
    match why {
        StoreError::Duplicate { field, value } => {
            ApiError::conflict(format!("{field}: {value:?} is already in use"))
        }
        StoreError::LimitReached { .. } => ApiError::new(StatusCode::FORBIDDEN, why.to_string()),
        StoreError::TooLarge { .. } => ApiError::bad_request(why.to_string()),
        StoreError::Stale => {
            ApiError::conflict("other requests are changing this resource; try again")
        }
        StoreError::InUse { .. } => ApiError::bad_request(why.to_string()),
        StoreError::NoMarker(_) => ApiError::bad_request(format!("marker: {why}")),
        StoreError::NoOwner { .. } => ApiError::bad_request(why.to_string()),
        StoreError::Unrecorded { source } => ApiError::unrecorded(source.as_ref()),
        StoreError::Closing => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
        StoreError::Unavailable { .. } if why.is_transient() => {
            warn!("the database does not answer: {}", chain(why));
            let said = "the database does not answer; try again later";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, said)
        }
        StoreError::Unconfirmed { .. } => {
            warn!("the database did not confirm a change: {}", chain(why));
            let said = "the database did not confirm the change, which may have been made: read the resource before you repeat the request";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, said)
        }
        StoreError::Corrupt { .. }
        | StoreError::NewerSchema { .. }
        | StoreError::OlderProgram { .. }
        | StoreError::BadUrl
        | StoreError::NoThread(_)
        | StoreError::CannotCreate { .. }
        | StoreError::Damaged { .. }
        | StoreError::Unavailable { .. } => {
            error!("the database failed: {}", chain(why));
            ApiError::broken("the database failed; see the log of clusterd")
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        ApiError::from(self).into_response()
    }
}

/// The response schema of a refusal.
pub(crate) fn refused() -> JsonShape {
    let error = JsonShape::object([
        ("request_id", JsonShape::text()),
        ("code", JsonShape::enumeration(["client", "server"])),
        ("status", JsonShape::integer()),
        ("title", JsonShape::text()),
        ("detail", JsonShape::text()),
        ("links", JsonShape::list(JsonShape::anything())),
    ]);
    JsonShape::object([("errors", JsonShape::list(error))])
}

/// Magnum's error envelope: a list with one error.
pub(crate) fn envelope(refusal: &ApiError, request: RequestId) -> String {
    let side = if refusal.status.is_server_error() { "server" } else { "client" };
    let error = json!({
        "request_id": request.to_string(),
        "code": side,
        "status": refusal.status.as_u16(),
        "title": refusal.message,
        "detail": refusal.message,
        "links": [],
    });
    json!({"errors": [error]}).to_string()
}
