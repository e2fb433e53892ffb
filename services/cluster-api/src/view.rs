//! Serializes a resource for clients, field by field.

use axum::response::Response;
use http::StatusCode;
use openstack_api::json;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::field::{DetailLevel, Resource};
use crate::shown::Context;

/// A resource in the form that clients see.
pub(crate) struct View<'a, R: Resource> {
    pub(crate) it: R::Record<'a>,
    pub(crate) level: DetailLevel,
    pub(crate) context: &'a Context,
}

impl<R: Resource> Serialize for View<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        let shown = R::FIELDS.iter().filter(|it| it.is_shown(self.level, self.context.asked));
        for (name, answer) in shown.filter_map(|it| Some((it.name, it.answer.as_ref()?))) {
            object.serialize_entry(name, &(answer.read)(self.it, self.context))?;
        }
        object.end()
    }
}

pub(crate) fn answer<'a, R: Resource>(
    status: StatusCode,
    it: R::Record<'a>,
    context: &'a Context,
) -> Response {
    json(status, &View::<R> { it, level: DetailLevel::Detail, context })
}
