//! Writes a resource for clients, field by field.

use openstack_api::WriteJson;

use crate::field::{FieldSet, Resource};
use crate::shown::{Context, Shown};

/// A resource in the form that clients see.
pub(crate) struct View<'a, R> {
    pub(crate) it: &'a R,
    pub(crate) shown: FieldSet<R>,
    pub(crate) context: Context<'a>,
}

impl<R: Resource> WriteJson for View<'_, R> {
    fn write_json(&self, text: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        text.push(b'{');
        for (place, field) in self.shown.fields().enumerate() {
            if place > 0 {
                text.push(b',');
            }
            // The names of fields need no escapes.
            text.push(b'"');
            text.extend_from_slice(field.name.as_bytes());
            text.extend_from_slice(b"\":");
            let value = field.show(self.it, &self.context);
            if let Shown::Links(links) = &value {
                links.write(text);
            } else {
                value.write_json(text)?;
            }
        }
        text.push(b'}');
        Ok(())
    }
}
