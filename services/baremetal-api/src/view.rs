//! Serializes a resource for clients, field by field.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::field::{FieldSet, Resource};
use crate::shown::Context;

/// A resource in the form that clients see.
pub(crate) struct View<'a, R> {
    pub(crate) it: &'a R,
    pub(crate) shown: FieldSet<R>,
    pub(crate) context: Context<'a>,
}

impl<R: Resource> Serialize for View<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        for field in self.shown.fields() {
            object.serialize_entry(field.name, &field.show(self.it, &self.context))?;
        }
        object.end()
    }
}
