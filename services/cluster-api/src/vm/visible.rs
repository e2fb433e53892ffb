//! The VMs that a caller may see.

use cluster_core::{Ident, Vm};
use cluster_store::{Scope, VmScope};
use openstack_api::{AccessScope, ApiError, Role};

use crate::error::Result;
use crate::request::{Request, missing};

impl Request {
    /// The VMs of `scope` that the caller may see.
    pub(super) fn vm_scope(&self, scope: Scope) -> VmScope {
        let manages = self.caller.role() >= Some(Role::Manager);
        match (scope, self.caller.access_scope()) {
            (Scope::All, _) => VmScope::All,
            (Scope::Project(project), AccessScope::Project(_)) if !manages => {
                VmScope::Person { project, user: self.user() }
            }
            (Scope::Project(project), _) => VmScope::Project(project),
        }
    }

    /// The VMs that the caller may see.
    pub(crate) fn visible_vms(&self) -> VmScope {
        self.vm_scope(self.scope())
    }

    /// The scopes in which names of VMs are looked up, in this order: the caller's own project first.
    pub(crate) fn vm_scopes(&self) -> Vec<VmScope> {
        let scopes = self.scopes().into_iter();
        scopes.map(|scope| self.vm_scope(scope)).collect()
    }

    /// Finds the VM with this id or name. A VM that the caller may not see is answered like a missing one.
    pub(crate) async fn machine(&self, ident: &str) -> Result<Vm> {
        let missing = || missing("VM", ident);
        let parsed: Ident = ident.parse().map_err(|_| missing())?;
        for scope in self.vm_scopes() {
            let mut found = self.app.store.find_vms(&parsed, &scope).await?.into_iter();
            match (found.next(), found.next()) {
                (Some(_), Some(_)) if scope == VmScope::All => {
                    let why = format!("several projects have a VM {ident}: use its id");
                    return Err(ApiError::conflict(why).into());
                }
                (Some(found), _) => return Ok(found),
                (None, _) => {}
            }
        }
        Err(missing().into())
    }
}
