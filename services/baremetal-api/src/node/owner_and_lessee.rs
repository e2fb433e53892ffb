//! Checks that owner and lessee of a node are existing projects: after a typing error nobody could access the node.

use baremetal_core::Node;
use openstack_api::{ApiError, Auth, Caller};

/// Refuses a new owner or lessee in `after` that does not exist. Values that `before` has already are not checked again.
pub(super) async fn check(
    auth: &Auth,
    caller: &Caller,
    before: Option<&Node>,
    after: &Node,
) -> Result<(), ApiError> {
    let changes = [
        ("owner", before.and_then(|node| node.owner.as_deref()), after.owner.as_deref()),
        ("lessee", before.and_then(|node| node.lessee.as_deref()), after.lessee.as_deref()),
    ];
    for (field, was, is) in changes {
        if let Some(project) = is
            && is != was
        {
            auth.check_project(caller, field, project).await?;
        }
    }
    Ok(())
}
