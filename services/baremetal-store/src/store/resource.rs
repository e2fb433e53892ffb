//! Resources that are stored as one document.

use baremetal_core::{
    Content, Node, NodeUuid, Notified, Page, Port, PortGroup, RecordChange, Stored, StoredFilter,
    StoredSort,
};
use database::WriteKind::{AnyStatementCanFail, OneStatement};
use database::table::{PagePart, PageRows};
use database::{FieldSizes, Result, StoreError, reading, writing};
use sealing::SealingKeys;
use serde_json::Value;
use uuid::Uuid;

use crate::table::{node, port, resource};
use crate::{Store, secrets};

impl Store {
    /// Adds a resource.
    ///
    /// # Errors
    ///
    /// `LimitReached` if the project or the node of the resource has too many of its kind.
    pub async fn insert_resource<C: Notified>(&self, it: &Stored<C>) -> Result<()> {
        self.admit_resource(it).await?;
        let (it, document) = (it.clone(), self.sealed_resource(it).await?);
        let notifier = self.notifier();
        writing!(self.database, notifier.extent(OneStatement), |c| {
            resource::check_count(c, &it).await?;
            resource::insert(c, &it, &document).await?;
            notifier.tell_resource(c, RecordChange::Create, &it).await
        })
    }

    /// Checks the size of a new resource and the number of its kind as [`Store::insert_resource`] does, and writes nothing.
    ///
    /// # Errors
    ///
    /// `TooLarge`, or `LimitReached`.
    pub async fn check_resource<C: Content>(&self, it: &Stored<C>) -> Result<()> {
        self.admit_resource(it).await?;
        let it = it.clone();
        reading!(self.database, |c| resource::check_count(c, &it).await)
    }

    /// Returns the resource with this id.
    pub async fn find_resource<C: Content>(&self, id: Uuid) -> Result<Option<Stored<C>>> {
        reading!(self.database, |c| resource::find(c, id).await)
    }

    /// Returns the resource with this name.
    pub async fn find_resource_by_name<C: Content>(&self, name: &str) -> Result<Option<Stored<C>>> {
        let name = name.to_owned();
        reading!(self.database, |c| resource::find_by_name(c, &name).await)
    }

    /// Returns the resources with any of these names, in the order of the names.
    pub async fn find_resources_by_names<C: Content>(
        &self,
        names: &[String],
    ) -> Result<Vec<Stored<C>>> {
        let names = names.to_vec();
        reading!(self.database, |c| resource::find_by_names(c, &names).await)
    }

    /// Returns a part of a page of the resources that match `filter`.
    pub async fn list_resources_part<C: Content>(
        &self,
        filter: &StoredFilter,
        page: &Page<StoredSort>,
        part: PagePart,
    ) -> Result<PageRows<Stored<C>>> {
        let (filter, page) = (filter.clone(), page.clone());
        reading!(self.database, |c| resource::list(c, &filter, &page, Some(&part)).await)
    }

    /// Returns the first `limit` resources of the kind, in the order of their creation.
    pub async fn first_resources<C: Content>(&self, limit: u32) -> Result<Vec<Stored<C>>> {
        let page = Page { limit, marker: None, sort: StoredSort::Creation, descending: false };
        let part = PagePart::whole();
        let any = StoredFilter::default();
        Ok(self.list_resources_part(&any, &page, part).await?.found)
    }

    /// Deletes all resources of the kind, which no other resource may refer to.
    pub async fn delete_resources<C: Notified>(&self) -> Result<()> {
        let notifier = self.notifier();
        writing!(self.database, notifier.extent(OneStatement), |c| {
            let gone =
                if notifier.is_on() { resource::all_of_kind::<C>(c).await? } else { Vec::new() };
            resource::delete_all::<C>(c).await?;
            for gone in &gone {
                notifier.tell_resource(c, RecordChange::Delete, gone).await?;
            }
            Ok(())
        })
    }

    /// Writes the whole resource, if its version has not changed since it was read, and returns it with its new version.
    pub async fn update_resource<C: Notified>(&self, it: &Stored<C>) -> Result<Stored<C>> {
        self.admit_resource(it).await?;
        let (it, document) = (it.clone(), self.sealed_resource(it).await?);
        let notifier = self.notifier();
        writing!(self.database, notifier.extent(OneStatement), |c| {
            let written = resource::update(c, &it, &document).await?;
            notifier.tell_resource(c, RecordChange::Update, &written).await?;
            Ok(written)
        })
    }

    /// Writes a port group like [`Store::update_resource`], and moves its ports to its physical network.
    pub async fn update_port_group(&self, it: &Stored<PortGroup>) -> Result<Stored<PortGroup>> {
        self.admit_resource(it).await?;
        let (it, document) = (it.clone(), self.sealed_resource(it).await?);
        let notifier = self.notifier();
        writing!(self.database, AnyStatementCanFail, |c| {
            let written = resource::update(c, &it, &document).await?;
            notifier.tell_resource(c, RecordChange::Update, &written).await?;
            let network = &it.content.physical_network;
            let mut moved = port::of_group(c, it.id).await?;
            moved.retain(|port| port.physical_network != *network);
            moved.iter_mut().for_each(|port| port.physical_network.clone_from(network));
            notifier.update_ports(c, &moved).await?;
            Ok(written)
        })
    }

    /// Returns all port groups of a node.
    pub async fn port_groups_of(&self, node: NodeUuid) -> Result<Vec<Stored<PortGroup>>> {
        reading!(self.database, |c| resource::of_node(c, node).await)
    }

    /// Writes ports and port groups of `node` after a change of their VIFs, if neither they nor the node were written since they were read.
    /// Returns the node with its new version: the changes of a node's VIFs exclude each other.
    pub async fn update_vifs(
        &self,
        node: &Node,
        ports: &[Port],
        groups: &[Stored<PortGroup>],
    ) -> Result<Node> {
        let (node, ports) = (self.sealed(node).await?, ports.to_vec());
        let mut written = Vec::new();
        for group in groups {
            written.push((group.clone(), self.sealed_resource(group).await?));
        }
        writing!(self.database, AnyStatementCanFail, |c| {
            let touched = node::update(c, node).await?;
            for (group, document) in &written {
                resource::update(c, group, document).await?;
            }
            port::update_all(c, &ports).await?;
            Ok(touched)
        })
    }

    /// Deletes a resource, if its version has not changed since it was read. Returns `false` and changes nothing if others refer to it.
    pub async fn delete_resource<C: Notified>(&self, it: &Stored<C>) -> Result<bool> {
        let (id, version) = (it.id, it.version);
        let (gone, notifier) = (it.clone(), self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            resource::lock::<C>(c, id).await?;
            let is_free = !resource::is_in_use::<C>(c, id).await?;
            if is_free {
                resource::delete(c, id, version).await?;
                notifier.tell_resource(c, RecordChange::Delete, &gone).await?;
            }
            Ok(is_free)
        })
    }

    /// Returns the content of a resource with all secrets sealed, as it is written.
    pub(super) async fn sealed_resource<C: Content>(&self, it: &Stored<C>) -> Result<Value> {
        let id = it.id.to_string();
        let document = serde_json::to_value(&it.content)
            .map_err(|error| StoreError::corrupt("resources", &id, error))?;
        let seal = |keys: &SealingKeys, document: &mut Value| {
            secrets::seal_resource(keys, it.id, document, C::SECRETS)
                .map_err(|why| StoreError::corrupt("resources", &id, why))
        };
        self.seal(&document, seal).await
    }

    pub(super) async fn admit_resource<C: Content>(&self, it: &Stored<C>) -> Result<()> {
        let of = |content: &C| FieldSizes::default().and(C::KIND, content);
        let stored = async || {
            let found = self.find_resource::<C>(it.id).await?;
            Ok(found.as_ref().map(|it| of(&it.content)))
        };
        self.bound.admit(|| of(&it.content), stored).await
    }
}
