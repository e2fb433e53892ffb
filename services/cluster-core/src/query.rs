//! Paging and sorting of lists.

use uuid::Uuid;

/// The request for a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<S> {
    /// The largest number of entries.
    pub limit: u32,
    /// The page begins after the entry with this id.
    pub marker: Option<Uuid>,
    pub sort: S,
    pub descending: bool,
}

/// The sort keys of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterSort {
    CreatedAt,
    Id,
    Name,
}

/// The sort keys of VMs and their snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmSort {
    CreatedAt,
    Id,
    Name,
}

/// The sort keys of templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateSort {
    CreatedAt,
    Id,
    Name,
}
