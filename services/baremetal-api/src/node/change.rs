//! Enrolls and changes nodes: gathers the facts that the rules of `baremetal-core` need, and records what they accept.

use baremetal_core::{
    CREDENTIALS, Driver, Interface, Node, NodeChange, NodeIdent, NodeUuid, Passwords,
    RequestRefused, State as Stage, check_conductor_group, check_new_node, ended_allocation,
    glance_image, settle_password,
};
use openstack_api::{ApiError, Caller, Microversion, Op, Operation, Query, Relation, flag};
use serde_json::{Map, Value};

use super::owner_and_lessee;
use crate::app::App;
use crate::error::Error;
use crate::field::{Access, Field};
use crate::request::{Request, check_name, forced, relation, visible_project};
use crate::write::{create, patched};
use crate::{microversion, rule, secret};

/// Enrolls the node that `body` describes.
pub(super) async fn enroll(request: &Request, mut body: Map<String, Value>) -> Result<Node, Error> {
    if let Some(parent) = body.get_mut("parent_node") {
        name_to_uuid(request, parent).await?;
    }
    let mut node = Node::new(NodeUuid::new_v4(), Driver::FakeHardware, (request.app.clock)());
    if !request.asked.has(microversion::ENROLL) {
        // Before the state `enroll` existed, a new node could be deployed at once.
        node.provision_state = Stage::Available;
    }
    request.app.conductor.groups()[0].clone_into(&mut node.conductor_group);
    create(&mut node, body, request.asked)?;
    if let Some(name) = &node.name {
        check_name(request.asked, name)?;
    }
    check_group(&request.app, &node)?;
    check_new_node(&node, parent(&request.app, &node).await?.as_ref())?;
    request.app.conductor.check_hosts(None, &node)?;
    check_glance_access(request, None, &node).await?;
    owner_and_lessee::check(&request.app.auth, &request.caller, None, &node).await?;
    let written = request.app.store.insert_node(&node).await;
    request.name_holder(written.map_err(Error::from)).await?;
    Ok(node)
}

/// Checks that a caller who names an image in Glance may use the image, which the conductor later reads as an administrator. Callers who
/// see every node may name any image.
pub(crate) async fn check_glance_access(
    request: &Request,
    before: Option<&Node>,
    after: &Node,
) -> Result<(), Error> {
    let Some(project) = visible_project(&request.caller) else { return Ok(()) };
    if before.and_then(glance_image) == glance_image(after) {
        return Ok(());
    }
    Ok(request.app.conductor.check_glance_access(after, &project).await?)
}

pub(super) struct NodePatch {
    ident: String,
    operations: Vec<Operation>,
    /// Whether a new driver chooses every interface that the patch does not change.
    reset_interfaces: bool,
    /// The clusters, or the host, that the change may disrupt.
    forced: Vec<String>,
}

impl NodePatch {
    pub(super) fn parse(
        ident: String,
        operations: Vec<Operation>,
        mut query: Query,
        asked: Microversion,
    ) -> Result<Self, ApiError> {
        let reset_interfaces = match query.take("reset_interfaces") {
            None => false,
            Some(raw) => {
                asked.need(microversion::RESET_INTERFACES, "reset_interfaces")?;
                flag("reset_interfaces", &raw)?
            }
        };
        if reset_interfaces && !operations.iter().any(sets_driver) {
            let problem = "can only be used together with a change of driver";
            return Err(ApiError::bad_field("reset_interfaces", problem));
        }
        let forced = forced(&mut query);
        query.finish()?;
        Ok(NodePatch { ident, operations, reset_interfaces, forced })
    }

    /// Replaces the name of a parent by its UUID.
    pub(super) async fn find_parent(mut self, request: &Request) -> Result<Self, Error> {
        let parents = self.operations.iter_mut().filter(|change| change.path == "/parent_node");
        for parent in parents.filter_map(|change| change.value.as_mut()) {
            name_to_uuid(request, parent).await?;
        }
        Ok(self)
    }

    /// Changes the node once, unless another writer changes the node meanwhile.
    pub(super) async fn record(&self, request: &Request) -> Result<Node, Error> {
        let before = &request.node(&self.ident).await?;
        self.check_access(&request.caller, before)?;
        let after = self.applied_to(before, request.asked)?;
        if let Some(name) = after.name.as_ref().filter(|_| before.name != after.name) {
            check_name(request.asked, name)?;
        }
        let parent = parent(&request.app, &after).await?;
        let given = self.passwords();
        let passwords = match relation(&request.caller, before) {
            Some(Relation::Cloud) => Passwords::Trusted,
            Some(Relation::Owner | Relation::Lessee) | None => Passwords::Given(&given),
        };
        let change = NodeChange { before, after: &after, passwords, parent: parent.as_ref() };
        change.check()?;
        if before.conductor_group != after.conductor_group {
            check_group(&request.app, &after)?;
        }
        request.app.conductor.check_hosts(Some(before), &after)?;
        check_glance_access(request, Some(before), &after).await?;
        owner_and_lessee::check(&request.app.auth, &request.caller, Some(before), &after).await?;
        owner_and_lessee::check_allocation(&request.app.store, before, &after).await?;
        if change.begins_maintenance() {
            request.check_quorum(before, &self.forced).await?;
        }
        let mut after = request.with_maintenance_effects(before, after, &self.forced);
        settle_password(before, &mut after);
        name_instance(before, &mut after);
        after.updated_at = Some((request.app.clock)());
        let store = &request.app.store;
        let written = match ended_allocation(before, &after) {
            Some(ended) => store.update_node_and_end(&after, &[], ended).await,
            None => store.update_node(&after, &[]).await,
        };
        request.name_holder(written.map_err(Error::from)).await
    }

    /// Refuses a patch of fields that the caller may not write.
    fn check_access(&self, caller: &Caller, node: &Node) -> Result<(), ApiError> {
        let relation = relation(caller, node).unwrap_or(Relation::Lessee);
        let in_use = node.provision_state == Stage::Active;
        for operation in &self.operations {
            let field = Field::<Node>::known(operation.field()?)?;
            let rule = match &field.access {
                Access::Change(_, _) if in_use && field.is_fixed_in_use => rule::ADMINISTER,
                Access::Change(rule, _) => *rule,
                // The service alone writes these fields.
                Access::Read | Access::Create(_) => rule::ADMINISTER,
            };
            rule.check(caller, relation).map_err(|why| {
                ApiError::new(why.status, format!("{}: {}", field.name, why.message))
            })?;
        }
        Ok(())
    }

    fn applied_to(&self, before: &Node, asked: Microversion) -> Result<Node, ApiError> {
        let after = patched(before, self.operations.clone(), asked)?;
        if after.driver == before.driver {
            return Ok(after);
        }
        // As in Ironic, the interfaces stay as they are, also those that are the defaults of the former driver.
        let mut after = patched(&with_chosen_interfaces(before), self.operations.clone(), asked)?;
        if self.reset_interfaces {
            // As in Ironic, an interface that the patch names with its former implementation is reset too.
            for interface in Interface::ALL {
                if after.interface(interface) == before.interface(interface) {
                    after.interfaces.reset(interface);
                }
            }
        }
        Ok(after)
    }

    /// The keys of `driver_info` for which the patch gives a password, instead of keeping the stored one. The last operation on a key
    /// decides.
    fn passwords(&self) -> Vec<&'static str> {
        let keys = CREDENTIALS.map(|credential| credential.password).into_iter();
        keys.filter(|key| gives(&self.operations, key)).collect()
    }
}

fn sets_driver(operation: &Operation) -> bool {
    operation.path == "/driver" && operation.op != Op::Remove
}

/// Returns the node with every interface chosen that is now the default of its driver.
fn with_chosen_interfaces(node: &Node) -> Node {
    let mut chosen = node.clone();
    for interface in Interface::ALL {
        let is_known = chosen.interfaces.choose(interface, node.interface(interface));
        debug_assert!(is_known, "{interface:?}");
    }
    chosen
}

/// Names the instance after the `display_name` of a new `instance_info`, as Nova writes it, if the instance has no name.
fn name_instance(before: &Node, after: &mut Node) {
    let named = after.instance_info.get("display_name").and_then(Value::as_str);
    if let Some(name) = named.filter(|name| !name.is_empty() && name.len() <= 255)
        && after.instance_name.is_none()
        && before.instance_info != after.instance_info
    {
        after.instance_name = Some(name.to_owned());
    }
}

fn gives(patch: &[Operation], key: &str) -> bool {
    let said = patch.iter().rev().find_map(|operation| match operation.path.as_str() {
        "/driver_info" => Some(operation.value.as_ref().and_then(|info| info.get(key))),
        path if path.strip_prefix("/driver_info/") == Some(key) => Some(operation.value.as_ref()),
        _ => None,
    });
    said.flatten().is_some_and(|value| !secret::is_mask(value))
}

/// Refuses a conductor group without a conductor.
pub(crate) fn check_group(app: &App, node: &Node) -> Result<(), RequestRefused> {
    check_conductor_group(&node.conductor_group, &app.conductor.served_groups())
}

/// Replaces the name of a node by its UUID. A name that no node has stays, and is refused with the field.
async fn name_to_uuid(request: &Request, value: &mut Value) -> Result<(), Error> {
    let ident = value.as_str().and_then(|name| name.parse().ok());
    if let Some(ident @ NodeIdent::Name(_)) = ident
        && let Some(node) = request.app.store.find_node(&ident).await?
    {
        *value = Value::String(node.id.to_string());
    }
    Ok(())
}

/// Finds the node that `node` names as its parent.
pub(crate) async fn parent(app: &App, node: &Node) -> Result<Option<Node>, Error> {
    match node.parent_node {
        Some(parent) => Ok(app.store.find_node(&NodeIdent::Id(parent)).await?),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(patch: Value, want: bool) {
        let patch: Vec<Operation> = serde_json::from_value(patch).unwrap();
        assert_eq!(gives(&patch, "redfish_password"), want, "{patch:?}");
    }

    fn set(path: &str, value: Value) -> Value {
        json!({"op": "replace", "path": path, "value": value})
    }

    #[test]
    fn the_last_operation_decides_whether_a_password_is_given() {
        let address = set("/driver_info/redfish_address", json!("http://evil"));
        let password = set("/driver_info/redfish_password", json!("stored"));
        let mask = set("/driver_info/redfish_password", json!("******"));
        let whole = |password: &str| {
            set("/driver_info", json!({"redfish_address": "x", "redfish_password": password}))
        };
        check(json!([address]), false);
        check(json!([address, mask]), false);
        check(json!([password, mask, address]), false);
        check(json!([whole("******")]), false);
        check(json!([password, whole("******")]), false);
        check(json!([{"op": "remove", "path": "/driver_info/redfish_address"}]), false);
        check(json!([{"op": "remove", "path": "/driver_info"}]), false);
        check(json!([address, password]), true);
        check(json!([mask, whole("new")]), true);
    }
}
