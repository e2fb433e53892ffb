//! The query of a list of VMs.

use cluster_core::{Page, VmSort};
use cluster_store::{Scope, VmScope};
use http::StatusCode;
use openstack_api::{ApiError, Direction, Paging, Query};

use crate::request::{Request, may_see_project, other_project_refusal};

/// The VMs that a list contains.
pub(super) struct VmFilter {
    pub(super) scope: VmScope,
    pub(super) user: Option<String>,
}

impl VmFilter {
    /// Takes `user_id` and `project_id` out of `query`. Only managers of the project and administrators of the cloud see the VMs of others.
    pub(super) fn take(request: &Request, query: &mut Query) -> Result<VmFilter, ApiError> {
        let given = |text: &String| !text.is_empty();
        let mut scope = request.visible_vms();
        if let Some(project) = query.take("project_id").filter(given) {
            if !may_see_project(&request.caller, &project) && request.project()? != project {
                return Err(other_project_refusal("project_id"));
            }
            scope = request.vm_scope(Scope::Project(project));
        }
        let user = query.take("user_id").filter(given);
        if let (VmScope::Person { user: own, .. }, Some(user)) = (&scope, &user)
            && own != user
        {
            let why = "user_id: only managers of the project may see the VMs of other users";
            return Err(ApiError::new(StatusCode::FORBIDDEN, why));
        }
        Ok(VmFilter { scope, user })
    }
}

/// Reads the page and the order of a list.
pub(super) fn page(query: &mut Query) -> Result<Page<VmSort>, ApiError> {
    let paging = Paging::take(query)?;
    let sort = match paging.sort_key.as_deref() {
        None | Some("created_at") => VmSort::CreatedAt,
        Some("id" | "uuid") => VmSort::Id,
        Some("name") => VmSort::Name,
        Some(_) => {
            return Err(ApiError::bad_field("sort_key", "must be created_at, id or name"));
        }
    };
    let descending = paging.direction == Direction::Descending;
    Ok(Page { limit: paging.limit, marker: paging.marker, sort, descending })
}
