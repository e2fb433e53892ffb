//! The containers of Swift.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The objects of a container, by name.
pub(crate) type Objects = BTreeMap<String, Bytes>;

/// The containers of all projects, by project and name.
pub(crate) type Containers = BTreeMap<(String, String), Objects>;
