//! Whose a node is, and to whom it is lent: projects that there are. A slip would leave it with nobody.

use baremetal_core::Node;
use openstack_api::{ApiError, Auth, Caller};

/// Refuses an owner or a lessee of `after` that there is not, and that `before` did not have.
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
