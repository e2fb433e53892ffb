//! Resources that are stored as one document.

use baremetal_core::{Chassis, Content, Page, Stored, StoredFilter, StoredSort};
use database::WriteKind::{AnyStatementCanFail, OneStatement};
use database::table::{PagePart, PageRows};
use database::{FieldSizes, StoreError, reading, writing};
use uuid::Uuid;

use crate::Store;
use crate::table::{node, resource};

impl Store {
    /// Adds a resource.
    pub async fn insert_resource<C: Content>(&self, it: &Stored<C>) -> Result<(), StoreError> {
        self.admit_resource(it).await?;
        let it = it.clone();
        writing!(self.database, OneStatement, |c| resource::insert(c, &it).await)
    }

    /// Returns the resource with this id.
    pub async fn find_resource<C: Content>(
        &self,
        id: Uuid,
    ) -> Result<Option<Stored<C>>, StoreError> {
        reading!(self.database, |c| resource::find(c, id).await)
    }

    /// Returns the resource with this name.
    pub async fn find_resource_by_name<C: Content>(
        &self,
        name: &str,
    ) -> Result<Option<Stored<C>>, StoreError> {
        let name = name.to_owned();
        reading!(self.database, |c| resource::find_by_name(c, &name).await)
    }

    /// Returns a part of a page of the resources that match `filter`.
    pub async fn list_resources_part<C: Content>(
        &self,
        filter: &StoredFilter,
        page: &Page<StoredSort>,
        part: PagePart,
    ) -> Result<PageRows<Stored<C>>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        reading!(self.database, |c| resource::list(c, &filter, &page, Some(&part)).await)
    }

    /// Writes the whole resource, if its version has not changed since it was read, and returns it with its new version.
    pub async fn update_resource<C: Content>(
        &self,
        it: &Stored<C>,
    ) -> Result<Stored<C>, StoreError> {
        self.admit_resource(it).await?;
        let it = it.clone();
        writing!(self.database, OneStatement, |c| resource::update(c, &it).await)
    }

    /// Deletes a resource, if its version has not changed since it was read.
    pub async fn delete_resource<C: Content>(&self, it: &Stored<C>) -> Result<(), StoreError> {
        let (id, version) = (it.id, it.version);
        writing!(self.database, OneStatement, |c| resource::delete(c, id, version).await)
    }

    /// Deletes a chassis, if its version has not changed since it was read. Returns `false` and changes nothing if a node is in it.
    pub async fn delete_chassis(&self, it: &Stored<Chassis>) -> Result<bool, StoreError> {
        let (id, version) = (it.id, it.version);
        writing!(self.database, AnyStatementCanFail, |c| {
            let is_empty = !node::is_in_chassis(c, id).await?;
            if is_empty {
                resource::delete(c, id, version).await?;
            }
            Ok(is_empty)
        })
    }

    async fn admit_resource<C: Content>(&self, it: &Stored<C>) -> Result<(), StoreError> {
        let of = |content: &C| FieldSizes::default().and(C::KIND, content);
        let stored = async || {
            let found = self.find_resource::<C>(it.id).await?;
            Ok(found.as_ref().map(|it| of(&it.content)))
        };
        self.bound.admit(|| of(&it.content), stored).await
    }
}
