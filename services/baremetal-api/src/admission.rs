//! Admits the caller of a request, and hides resources from callers who do not see them.
//!
//! As in Ironic, a caller with a role in a project gets 404 for a node of another project, and 403 only for a node that the caller sees
//! (`check_node_policy_and_retrieve` of `ironic/api/controllers/v1/utils.py`). The same holds for ports, port groups, volumes,
//! allocations and runbooks.

use axum::extract::{FromRequestParts, RawPathParams};
use baremetal_core::{PortGroup, Runbook, VolumeConnector, VolumeTarget};
use http::request::Parts;
use openstack_api::{AccessScope, AdmissionRefused, ApiError, Microversion, admit};

use crate::app::App;
use crate::error::{Error, Result};
use crate::request::Request;
use crate::stored::{Purpose, find};
use crate::{allocation, port};

impl FromRequestParts<App> for Request {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let admitted = admit(parts, app).await;
        let asked = Microversion::from_request_parts(parts, app).await?;
        let (caller, why) = match admitted {
            Ok(caller) => return Ok(Request { app: app.clone(), caller, asked }),
            Err(AdmissionRefused::ByRule { caller, why }) => (caller, why),
            Err(AdmissionRefused::Otherwise(why)) => return Err(why.into()),
        };
        let is_in_project = matches!(caller.access_scope(), AccessScope::Project(_));
        if is_in_project && caller.role().is_some() {
            let path = RawPathParams::from_request_parts(parts, app).await;
            let path = path.map_err(|why| ApiError::bad_request(why.to_string()))?;
            check_visible(&Request { app: app.clone(), caller, asked }, &path).await?;
        }
        Err(why.into())
    }
}

/// Fails with 404 if the path names a resource that the caller does not see.
async fn check_visible(request: &Request, path: &RawPathParams) -> Result<()> {
    for (name, ident) in path {
        match name {
            "node" => drop(request.node(ident).await?),
            "port" => drop(port::find(request, ident).await?),
            "portgroup" => drop(find::<PortGroup>(request, ident, Purpose::Change).await?),
            "connector" => drop(find::<VolumeConnector>(request, ident, Purpose::Change).await?),
            "target" => drop(find::<VolumeTarget>(request, ident, Purpose::Change).await?),
            "runbook" => drop(find::<Runbook>(request, ident, Purpose::Change).await?),
            "allocation" => drop(allocation::find(request, ident).await?),
            _ => {}
        }
    }
    Ok(())
}
