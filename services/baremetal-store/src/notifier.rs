//! Writes records together with the notifications about their changes, in one transaction. Without webhooks, only the records are written.

use baremetal_core::{
    Allocation, Node, NodeIdent, NodeUuid, Notified, Port, PortUuid, RecordChange, Stored,
    allocation_notification, node_notifications, port_notification, resource_notification,
};
use database::webhook_events::{NotificationWriter, Subscriptions};
use database::{Connection, Result, WriteKind};
use hardware::PowerState;
use jiff::Timestamp;

use crate::SharedBmcs;
use crate::table::{allocation, node, port};

/// Writes the changes of one transaction, and the notifications about them.
pub(crate) struct Notifier(NotificationWriter);

impl Notifier {
    /// Makes a notifier for the task that runs now.
    pub(crate) fn of_task(subscriptions: &Subscriptions) -> Notifier {
        Notifier(NotificationWriter::of_task(subscriptions, Timestamp::now()))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_on()
    }

    /// The kind of a write that is one statement without its notifications. No notification can be refused.
    pub(crate) fn extent(&self, alone: WriteKind) -> WriteKind {
        match alone {
            WriteKind::OneStatement if self.0.is_on() => WriteKind::OnlyFirstStatementCanFail,
            WriteKind::OneStatement
            | WriteKind::OnlyFirstStatementCanFail
            | WriteKind::AnyStatementCanFail => alone,
        }
    }

    pub(crate) async fn insert_node(&self, c: &mut Connection, new: &Node) -> Result<()> {
        node::insert(c, new).await?;
        self.tell_node(c, None, Some(new)).await
    }

    /// As [`node::update`].
    pub(crate) async fn update_node(&self, c: &mut Connection, changed: Node) -> Result<Node> {
        let before = self.node_before(c, changed.id).await?;
        let written = node::update(c, changed).await?;
        self.tell_node(c, before.as_ref(), Some(&written)).await?;
        Ok(written)
    }

    /// As [`node::update_checked`].
    pub(crate) async fn update_node_checked(
        &self,
        c: &mut Connection,
        changed: Node,
        shared: SharedBmcs,
    ) -> Result<Node> {
        let before = self.node_before(c, changed.id).await?;
        let written = node::update_checked(c, changed, shared).await?;
        self.tell_node(c, before.as_ref(), Some(&written)).await?;
        Ok(written)
    }

    pub(crate) async fn delete_node(&self, c: &mut Connection, gone: &Node) -> Result<()> {
        let before = self.node_before(c, gone.id).await?;
        node::delete(c, gone).await?;
        self.tell_node(c, before.as_ref(), None).await
    }

    /// As [`node::record_power`].
    pub(crate) async fn record_power(
        &self,
        c: &mut Connection,
        seen: &[(NodeUuid, i64)],
        power: PowerState,
        now: Timestamp,
    ) -> Result<usize> {
        let ids: Vec<NodeUuid> = seen.iter().map(|(id, _)| *id).collect();
        let before = if self.0.is_on() { node::find_by_ids(c, &ids).await? } else { Vec::new() };
        let changed = node::record_power(c, seen, power, now).await?;
        for before in before {
            if seen.contains(&(before.id, before.version)) && before.power_state != Some(power) {
                let after =
                    Node { power_state: Some(power), updated_at: Some(now), ..before.clone() };
                self.tell_node(c, Some(&before), Some(&after)).await?;
            }
        }
        Ok(changed)
    }

    pub(crate) async fn insert_port(&self, c: &mut Connection, new: &Port) -> Result<()> {
        port::insert(c, new).await?;
        self.tell_port(c, None, Some(new)).await
    }

    /// As [`port::update`]; `before` is the port before its change.
    pub(crate) async fn update_port(
        &self,
        c: &mut Connection,
        before: Option<&Port>,
        changed: &Port,
    ) -> Result<Port> {
        let written = port::update(c, changed).await?;
        self.tell_port(c, before, Some(&written)).await?;
        Ok(written)
    }

    /// As [`port::update_all`].
    pub(crate) async fn update_ports(&self, c: &mut Connection, changed: &[Port]) -> Result<()> {
        let mut before = Vec::new();
        if self.0.is_on() {
            for port in changed {
                before.extend(port::find(c, port.id).await?);
            }
        }
        port::update_all(c, changed).await?;
        for before in before {
            let after = changed.iter().find(|port| port.id == before.id);
            self.tell_port(c, Some(&before), after).await?;
        }
        Ok(())
    }

    /// As [`port::delete`].
    pub(crate) async fn delete_port(&self, c: &mut Connection, gone: &Port) -> Result<()> {
        port::delete(c, gone).await?;
        self.tell_port(c, Some(gone), None).await
    }

    /// As [`port::remove`].
    pub(crate) async fn remove_port(&self, c: &mut Connection, id: PortUuid) -> Result<()> {
        let before = if self.0.is_on() { port::find(c, id).await? } else { None };
        port::remove(c, id).await?;
        self.tell_port(c, before.as_ref(), None).await
    }

    pub(crate) async fn insert_allocation(
        &self,
        c: &mut Connection,
        new: &Allocation,
    ) -> Result<()> {
        allocation::insert(c, new).await?;
        self.tell_allocation(c, RecordChange::Create, new).await
    }

    pub(crate) async fn tell_allocation(
        &self,
        c: &mut Connection,
        change: RecordChange,
        it: &Allocation,
    ) -> Result<()> {
        self.write_if_on(c, || vec![allocation_notification(change, it)]).await
    }

    pub(crate) async fn tell_resource<C: Notified>(
        &self,
        c: &mut Connection,
        change: RecordChange,
        it: &Stored<C>,
    ) -> Result<()> {
        self.write_if_on(c, || vec![resource_notification(change, it)]).await
    }

    /// Returns the node as it is before its change, if the change is notified.
    async fn node_before(&self, c: &mut Connection, id: NodeUuid) -> Result<Option<Node>> {
        if self.0.is_on() { node::find(c, &NodeIdent::Id(id)).await } else { Ok(None) }
    }

    pub(crate) async fn tell_node(
        &self,
        c: &mut Connection,
        before: Option<&Node>,
        after: Option<&Node>,
    ) -> Result<()> {
        self.write_if_on(c, || node_notifications(before, after)).await
    }

    pub(crate) async fn tell_port(
        &self,
        c: &mut Connection,
        before: Option<&Port>,
        after: Option<&Port>,
    ) -> Result<()> {
        self.write_if_on(c, || port_notification(before, after).into_iter().collect()).await
    }

    async fn write_if_on(
        &self,
        c: &mut Connection,
        notifications: impl FnOnce() -> Vec<cloud_event::Notification>,
    ) -> Result<()> {
        if self.0.is_on() { self.0.write(c, &notifications()).await } else { Ok(()) }
    }
}
