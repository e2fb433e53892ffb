//! Records that belong to one node: its ports, its boot, its inventory and its history.

use std::collections::HashMap;

use baremetal_core::{
    Boot, HistoryEntry, HistoryUuid, InspectionReport, NodeUuid, Page, Port, PortFilter, PortSort,
    PortUuid,
};
use database::table::{PagePart, PageRows};
use database::{Result, reading, writing};
use hardware::MacAddress;
use uuid::Uuid;

use jiff::Timestamp;

use crate::Store;
use crate::table::resource::check_group;
use crate::table::{boot, history, inspection, lease, node, port};
use database::WriteKind::{AnyStatementCanFail, OneStatement, OnlyFirstStatementCanFail};

impl Store {
    /// Adds a port to a node.
    ///
    /// # Errors
    ///
    /// `LimitReached` if the node has too many ports.
    pub async fn insert_port(&self, port: &Port) -> Result<()> {
        self.admit_port(port).await?;
        let port = port.clone();
        let notifier = self.notifier();
        let extent = match port.portgroup {
            Some(_) => AnyStatementCanFail,
            None => notifier.extent(OneStatement),
        };
        writing!(self.database, extent, |c| {
            port::check_count(c, port.node).await?;
            if port.portgroup.is_some() {
                // The new row would lock the node after the port group.
                node::lock(c, port.node).await?;
                check_group(c, &port).await?;
            }
            notifier.insert_port(c, &port).await
        })
    }

    /// Returns the port with this id.
    pub async fn find_port(&self, id: PortUuid) -> Result<Option<Port>> {
        reading!(self.database, |c| port::find(c, id).await)
    }

    /// Returns the port with this name.
    pub async fn find_port_by_name(&self, name: &str) -> Result<Option<Port>> {
        let name = name.to_owned();
        reading!(self.database, |c| port::find_by_name(c, &name).await)
    }

    /// Returns the port with this address.
    pub async fn find_port_by_address(&self, address: MacAddress) -> Result<Option<Port>> {
        reading!(self.database, |c| port::find_by_address(c, address).await)
    }

    /// Returns one page of the ports that match `filter`.
    pub async fn list_ports(
        &self,
        filter: &PortFilter,
        page: &Page<PortSort>,
    ) -> Result<Vec<Port>> {
        let (filter, page) = (filter.clone(), page.clone());
        reading!(self.database, |c| port::list(c, &filter, &page, None).await)
            .map(|listed| listed.found)
    }

    /// Returns a part of a page of the ports that match `filter`.
    pub async fn list_ports_part(
        &self,
        filter: &PortFilter,
        page: &Page<PortSort>,
        part: PagePart,
    ) -> Result<PageRows<Port>> {
        let (filter, page) = (filter.clone(), page.clone());
        reading!(self.database, |c| port::list(c, &filter, &page, Some(&part)).await)
    }

    /// Returns the ports of a port group.
    pub async fn ports_of_group(&self, group: Uuid) -> Result<Vec<Port>> {
        reading!(self.database, |c| port::of_group(c, group).await)
    }

    /// Returns all ports of a node, sorted by address.
    pub async fn ports_of(&self, node: NodeUuid) -> Result<Vec<Port>> {
        reading!(self.database, |c| port::of(c, node).await)
    }

    /// Returns the number of ports of each of `nodes` that has any.
    pub async fn count_ports(&self, nodes: &[NodeUuid]) -> Result<HashMap<NodeUuid, usize>> {
        let nodes = nodes.to_vec();
        reading!(self.database, |c| port::counts(c, &nodes).await)
    }

    /// Writes the whole port, if its version has not changed since it was read, and returns the port with its new version. If the address
    /// changes, the lease of the old address is freed.
    pub async fn update_port(&self, port: &Port) -> Result<Port> {
        self.admit_port(port).await?;
        let port = port.clone();
        let extent = match port.portgroup {
            Some(_) => AnyStatementCanFail,
            None => OnlyFirstStatementCanFail,
        };
        let notifier = self.notifier();
        writing!(self.database, extent, |c| {
            let before = port::find(c, port.id).await?;
            if before.as_ref().is_none_or(|it| it.portgroup != port.portgroup) {
                check_group(c, &port).await?;
            }
            let written = notifier.update_port(c, before.as_ref(), &port).await?;
            if let Some(before) = before.filter(|it| it.address != written.address) {
                lease::free(c, before.address).await?;
            }
            Ok(written)
        })
    }

    /// Deletes a port and frees its lease, if its version has not changed since it was read.
    pub async fn delete_port(&self, port: &Port) -> Result<()> {
        let (port, notifier) = (port.clone(), self.notifier());
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            notifier.delete_port(c, &port).await?;
            lease::free(c, port.address).await
        })
    }

    /// Returns the newest boot of the node's machine into the ramdisk.
    pub async fn find_boot(&self, node: NodeUuid) -> Result<Option<Boot>> {
        reading!(self.database, |c| boot::find(c, node).await)
    }

    /// Writes a boot, replacing the node's earlier boot.
    pub async fn save_boot(&self, boot: &Boot) -> Result<()> {
        let boot = boot.clone();
        writing!(self.database, OneStatement, |c| boot::save(c, &boot).await)
    }

    /// Records that the token of this boot is handed out at `now`, and returns whether this is the first time. A boot that was replaced by a
    /// newer one is not changed.
    pub async fn claim_boot(&self, boot: &Boot, now: Timestamp) -> Result<bool> {
        let boot = boot.clone();
        writing!(self.database, OneStatement, |c| boot::claim(c, &boot, now).await)
    }

    /// Writes what the machine of this boot has reported, and returns whether it did: a boot that was replaced by a newer one is not
    /// written.
    pub async fn report_boot(&self, boot: &Boot) -> Result<bool> {
        let boot = boot.clone();
        writing!(self.database, OneStatement, |c| boot::report(c, &boot).await)
    }

    /// Writes the inventory that the machine of this boot has sent, and returns whether it did: if the boot was replaced by a newer one,
    /// neither the boot nor the inventory is written.
    pub async fn report_inventory(&self, boot: &Boot, found: &InspectionReport) -> Result<bool> {
        let (boot, found) = (boot.clone(), found.clone());
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            let is_newest = boot::report(c, &boot).await?;
            if is_newest {
                inspection::save(c, &found).await?;
            }
            Ok(is_newest)
        })
    }

    /// Writes the result of an inspection, replacing the earlier result.
    pub async fn save_inspected(&self, found: &InspectionReport) -> Result<()> {
        let found = found.clone();
        writing!(self.database, OneStatement, |c| inspection::save(c, &found).await)
    }

    /// Returns the result of the node's last inspection.
    pub async fn find_inspected(&self, node: NodeUuid) -> Result<Option<InspectionReport>> {
        reading!(self.database, |c| inspection::find(c, node).await)
    }

    /// Returns the node's history after `marker`, oldest entry first. The newest 300 entries are kept.
    pub async fn history(
        &self,
        node: NodeUuid,
        limit: u32,
        marker: Option<HistoryUuid>,
    ) -> Result<Vec<HistoryEntry>> {
        self.history_part(node, limit, marker, PagePart::whole()).await.map(|listed| listed.found)
    }

    /// Returns a part of the node's history after `marker`, oldest entry first.
    pub async fn history_part(
        &self,
        node: NodeUuid,
        limit: u32,
        marker: Option<HistoryUuid>,
        part: PagePart<i64>,
    ) -> Result<PageRows<HistoryEntry, i64>> {
        reading!(self.database, |c| history::list(c, node, limit, marker, &part).await)
    }

    /// Returns one entry of the node's history.
    pub async fn find_history(
        &self,
        node: NodeUuid,
        entry: HistoryUuid,
    ) -> Result<Option<HistoryEntry>> {
        reading!(self.database, |c| history::find(c, node, entry).await)
    }
}
