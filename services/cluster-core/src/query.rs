//! Pages of lists.

use uuid::Uuid;

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<S> {
    /// At most so many.
    pub limit: u32,
    /// Begin after this one.
    pub marker: Option<Uuid>,
    /// By what to sort.
    pub sort: S,
    /// Greatest first.
    pub descending: bool,
}

/// By what clusters are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterSort {
    /// By when they were asked for.
    CreatedAt,
    /// By id.
    Id,
    /// By name.
    Name,
}

/// By what machines of people, and their snapshots, are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmSort {
    /// By when they were asked for.
    CreatedAt,
    /// By id.
    Id,
    /// By name.
    Name,
}

/// By what templates are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateSort {
    /// By when they were made.
    CreatedAt,
    /// By id.
    Id,
    /// By name.
    Name,
}
