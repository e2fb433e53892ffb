//! Converts errors to statuses, and writes them in Ironic's error envelope.

use axum::response::{IntoResponse, Response};
use baremetal_conductor::{
    ConsoleError, GlanceError, OciImageError, VendorCallError, VifLookupError,
};
use baremetal_core::{
    BackfillMismatch, ChangeRefused, GroupRefused, ImportRefused, IndicatorRefused,
    LocalLinkRefused, NoConsole, NodeRefused, RackMistakes, RaidRefused, RequestRefused,
    TakeOutRefused, UnreadableRack, UnsupportedInterface, VendorRefused, VifRefused, VolumeInUse,
};
use baremetal_store::{BMC_FIELD, StoreError};
use bmc::BmcError;
use http::StatusCode;
use openstack_api::{ApiError, JsonShape, Kind, RequestId, chain, key_file};
use sealing::{KeyFileError, RetireError};
use serde_json::json;
use tracing::{error, warn};

/// A result whose error is an [`Error`], unless it says otherwise.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Refused(#[from] RequestRefused),
    #[error(transparent)]
    Frozen(#[from] ChangeRefused),
    #[error(transparent)]
    Glance(#[from] GlanceError),
    #[error(transparent)]
    Oci(#[from] OciImageError),
    #[error(transparent)]
    Group(#[from] GroupRefused),
    #[error(transparent)]
    Import(#[from] ImportRefused),
    #[error(transparent)]
    Indicator(#[from] IndicatorRefused),
    #[error(transparent)]
    LocalLink(#[from] LocalLinkRefused),
    #[error(transparent)]
    Raid(RaidRefused),
    #[error(transparent)]
    Vendor(VendorRefused),
    #[error(transparent)]
    Vif(#[from] VifRefused),
    #[error(transparent)]
    VifLookup(#[from] VifLookupError),
    #[error(transparent)]
    Volume(#[from] VolumeInUse),
    #[error(transparent)]
    Mismatch(#[from] BackfillMismatch),
    #[error(transparent)]
    Interface(#[from] UnsupportedInterface),
    #[error(transparent)]
    Rack(#[from] UnreadableRack),
    #[error(transparent)]
    Mistakes(#[from] RackMistakes),
    #[error(transparent)]
    Bmc(#[from] BmcError),
    #[error(transparent)]
    NoConsole(#[from] NoConsole),
    #[error(transparent)]
    Console(#[from] ConsoleError),
    #[error(transparent)]
    Stays(#[from] TakeOutRefused),
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    #[error(transparent)]
    Retire(#[from] RetireError<StoreError>),
}

impl From<NodeRefused> for Error {
    fn from(why: NodeRefused) -> Self {
        match why {
            NodeRefused::Interface(why) => Error::Interface(why),
            NodeRefused::Request(why) => Error::Refused(why),
            NodeRefused::Change(why) => Error::Frozen(why),
        }
    }
}

impl From<VendorRefused> for Error {
    fn from(why: VendorRefused) -> Self {
        match why {
            VendorRefused::Busy(why) => Error::Frozen(why),
            VendorRefused::Unnamed
            | VendorRefused::Unknown { .. }
            | VendorRefused::HttpMethod { .. }
            | VendorRefused::Field { .. }
            | VendorRefused::EventType { .. } => Error::Vendor(why),
            VendorRefused::NoSubscription { .. } => ApiError::not_found(why.to_string()).into(),
        }
    }
}

impl From<VendorCallError> for Error {
    fn from(why: VendorCallError) -> Self {
        match why {
            VendorCallError::Refused(why) => why.into(),
            VendorCallError::Host(why) => why.into(),
            VendorCallError::Bmc(why) => why.into(),
        }
    }
}

impl From<RaidRefused> for Error {
    fn from(why: RaidRefused) -> Self {
        match why {
            RaidRefused::Busy(why) => Error::Frozen(why),
            RaidRefused::Unsupported { .. } | RaidRefused::Field { .. } => Error::Raid(why),
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
            Error::Refused(why) => refused_request(why),
            Error::Frozen(why) => frozen(why),
            // Ironic's refusal of an interface that a node lacks has another status for RAID than for all others.
            Error::Raid(RaidRefused::Unsupported { .. }) => StatusCode::NOT_FOUND,
            Error::Import(_)
            | Error::Indicator(_)
            | Error::LocalLink(_)
            | Error::Raid(_)
            | Error::Vendor(_)
            | Error::Volume(_) => StatusCode::BAD_REQUEST,
            Error::Vif(why) => vif(why),
            Error::VifLookup(VifLookupError::Missing { .. })
            | Error::Glance(
                GlanceError::Missing { .. } | GlanceError::Unusable { .. } | GlanceError::Layout(_),
            ) => StatusCode::BAD_REQUEST,
            Error::VifLookup(VifLookupError::Unknown { transient, .. })
            | Error::Glance(GlanceError::Unknown { transient, .. }) => no_answer(*transient),
            Error::Oci(why) => oci(why),
            Error::Group(why) => group(why),
            Error::Rack(why) => {
                error!("{}", chain(why));
                return ApiError::broken(why.to_string());
            }
            Error::Interface(_) | Error::Mistakes(_) => StatusCode::BAD_REQUEST,
            Error::Mismatch(_)
            | Error::Stays(TakeOutRefused::Refused { .. } | TakeOutRefused::Occupied { .. }) => {
                StatusCode::CONFLICT
            }
            Error::Stays(TakeOutRefused::Unknown { .. }) => StatusCode::SERVICE_UNAVAILABLE,
            Error::Console(why) => console(why),
            // The status of Ironic's `UnsupportedDriverExtension`.
            Error::NoConsole(_) | Error::Bmc(BmcError::Unsupported { .. }) => {
                StatusCode::BAD_REQUEST
            }
            Error::Bmc(BmcError::InUse { .. }) => StatusCode::CONFLICT,
            Error::Bmc(why) if why.is_transient() => StatusCode::SERVICE_UNAVAILABLE,
            Error::Bmc(_) => StatusCode::BAD_GATEWAY,
        };
        ApiError::new(status, error.to_string())
    }
}

/// The status of a request for a change of state that the node does not allow now.
fn refused_request(why: &RequestRefused) -> StatusCode {
    match why {
        RequestRefused::State { .. }
        | RequestRefused::Maintenance { .. }
        | RequestRefused::Field { .. }
        | RequestRefused::Retired { .. }
        | RequestRefused::LeaseEnded { .. }
        | RequestRefused::NoInspection { .. }
        | RequestRefused::NoRescue { .. } => StatusCode::BAD_REQUEST,
        RequestRefused::Protected { .. } => StatusCode::FORBIDDEN,
        RequestRefused::Locked { .. }
        | RequestRefused::PowerOffDisabled { .. }
        | RequestRefused::NotAbortable { .. }
        | RequestRefused::BootSetting { .. }
        | RequestRefused::Password { .. }
        | RequestRefused::SharedBmc { .. }
        | RequestRefused::Leaving { .. } => StatusCode::CONFLICT,
    }
}

/// The status of a change that the node does not allow now.
fn frozen(why: &ChangeRefused) -> StatusCode {
    match why {
        ChangeRefused::Busy { .. }
        | ChangeRefused::State { .. }
        | ChangeRefused::InUse { .. }
        | ChangeRefused::Allocated { .. }
        | ChangeRefused::Lent { .. }
        | ChangeRefused::Console { .. }
        | ChangeRefused::Password { .. }
        | ChangeRefused::Leaving { .. }
        | ChangeRefused::Connected { .. }
        | ChangeRefused::Delete { .. } => StatusCode::CONFLICT,
        ChangeRefused::Protected { .. } => StatusCode::FORBIDDEN,
    }
}

/// The status of a VIF that is not attached or detached.
fn vif(why: &VifRefused) -> StatusCode {
    match why {
        VifRefused::NoFreePort { .. } | VifRefused::NotAttached { .. } => StatusCode::BAD_REQUEST,
        VifRefused::Attached { .. } | VifRefused::Needed { .. } => StatusCode::CONFLICT,
    }
}

/// The status of a console that is not opened.
fn console(why: &ConsoleError) -> StatusCode {
    match why {
        ConsoleError::Disabled { .. }
        | ConsoleError::Graphical { .. }
        | ConsoleError::Serial { .. }
        | ConsoleError::Unusable { .. } => StatusCode::CONFLICT,
        ConsoleError::Crowded { .. } | ConsoleError::Exhausted { .. } | ConsoleError::Stopping => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

/// The status of an image in an OCI registry that is not installed.
fn oci(why: &OciImageError) -> StatusCode {
    if why.transient { no_answer(true) } else { StatusCode::BAD_REQUEST }
}

/// The status if a cloud or a registry could not be asked.
fn no_answer(transient: bool) -> StatusCode {
    if transient { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::BAD_GATEWAY }
}

/// The status of a port that cannot be in its group.
fn group(why: &GroupRefused) -> StatusCode {
    match why {
        GroupRefused::OtherNode { .. } => StatusCode::BAD_REQUEST,
        GroupRefused::Standalone { .. } | GroupRefused::PhysicalNetwork { .. } => {
            StatusCode::CONFLICT
        }
    }
}

fn store(why: &StoreError) -> ApiError {
    match why {
        StoreError::Duplicate { field: "connector_id", value } => {
            let what = "A volume connector with this type and connector_id";
            ApiError::conflict(format!("{what} already exists: {value}"))
        }
        StoreError::Duplicate { field: "boot_index", value } => {
            let what = "A volume target with this node and boot_index";
            ApiError::conflict(format!("{what} already exists: {value}"))
        }
        // The other node may belong to another project, so it is named only by `Request::name_holder`.
        StoreError::Duplicate { field: BMC_FIELD, .. } => {
            ApiError::conflict("driver_info: this BMC belongs to another node already")
        }
        StoreError::Duplicate { field, value } => {
            ApiError::conflict(format!("{field}: {value:?} is already in use"))
        }
        StoreError::LimitReached { .. } => ApiError::new(StatusCode::FORBIDDEN, why.to_string()),
        StoreError::TooLarge { .. } => ApiError::bad_request(why.to_string()),
        StoreError::Stale => {
            ApiError::conflict("the record is being changed by other requests: retry")
        }
        StoreError::InUse { .. } => ApiError::conflict(why.to_string()),
        StoreError::NoMarker(_) => ApiError::not_found(format!("marker: {why}")),
        StoreError::NoOwner { owner: "chassis", id } => {
            ApiError::bad_request(format!("chassis_uuid: Chassis {id} could not be found."))
        }
        StoreError::NoOwner { owner: "port group", id } => {
            ApiError::bad_request(format!("portgroup_uuid: Port group {id} could not be found."))
        }
        StoreError::NoOwner { id, .. } => {
            ApiError::bad_request(format!("node_uuid: Node {id} could not be found."))
        }
        StoreError::Unrecorded { source } => ApiError::unrecorded(source.as_ref()),
        StoreError::Closing => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
        StoreError::Unavailable { .. } if why.is_transient() => {
            warn!("the database does not answer: {}", chain(why));
            let said = "the database does not answer: retry later";
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
            ApiError::broken("the database failed; see the log of the service")
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        ApiError::from(self).into_response()
    }
}

pub(crate) fn refused() -> JsonShape {
    JsonShape::object([("error_message", JsonShape::text())])
}

/// Ironic's error envelope: JSON inside a JSON string.
pub(crate) fn envelope(refusal: &ApiError, _: RequestId) -> String {
    let message = &refusal.message;
    let inner = match refusal.kind {
        Kind::Protocol | Kind::Unrouted => json!({
            "code": refusal.status.as_u16(),
            "title": refusal.status.canonical_reason().unwrap_or_default(),
            "description": message,
        }),
        Kind::Resource => {
            let server = refusal.status.is_server_error();
            let faultcode = if server { "Server" } else { "Client" };
            json!({"faultcode": faultcode, "faultstring": message, "debuginfo": null})
        }
    };
    json!({"error_message": inner.to_string()}).to_string()
}
