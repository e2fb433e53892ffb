//! Checks a new owner and lessee of a node: they are existing projects, since after a typing error nobody could access the node.

use baremetal_core::Node;
use baremetal_store::Store;
use openstack_api::{ApiError, Auth, Caller};

use crate::error::Result;

/// Refuses a new owner or lessee in `after` that does not exist. Values that `before` has already are not checked again.
pub(crate) async fn check(
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

/// Refuses to change the owner of a node whose allocation belongs to a project.
pub(super) async fn check_allocation(store: &Store, before: &Node, after: &Node) -> Result<()> {
    let Some(id) = before.allocation.filter(|_| before.owner != after.owner) else { return Ok(()) };
    let allocation = store.find_allocation(id).await?;
    match allocation.and_then(|allocation| allocation.owner) {
        Some(_) => {
            let why = format!("owner: node {} is allocated to a project", before.label());
            Err(ApiError::conflict(why).into())
        }
        None => Ok(()),
    }
}
