//! The value of a field in the form that clients see.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use cluster_core::NodeTaint;
use http::request::Parts;
use jiff::Timestamp;
use newtype_uuid::{GenericUuid, TypedUuid, TypedUuidKind};
use openstack_api::{
    ApiError, JsonShape, Links, Microversion, Origin, Shaped, Time, shaped, shown_from,
};
use serde::ser::{Serialize, Serializer};
use uuid::Uuid;

use crate::app::App;

/// How the resources of one answer are shown.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) asked: Microversion,
    /// The origin under which the client reached the API.
    pub(crate) origin: Origin,
    pub(crate) now: Timestamp,
}

/// The JSON type of a field in answers.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    MaybeText,
    Integer,
    MaybeInteger,
    Boolean,
    Null,
    Texts,
    TextMap,
    Taints,
    Links,
}

/// The value of a field in the form that clients see.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(crate) enum Shown<'a> {
    Null,
    Boolean(bool),
    Integer(u32),
    Text(&'a str),
    Written(String),
    Texts(Vec<String>),
    TextMap(&'a BTreeMap<String, String>),
    WrittenMap(BTreeMap<&'a str, String>),
    Taints(Vec<ShownTaint<'a>>),
    Id(Uuid),
    Time(Time),
    Links(Links<'a, Uuid>),
    PartLinks(PartLinks<'a>),
}

shaped! {
    /// A taint of Kubernetes nodes.
    #[derive(serde::Serialize)]
    pub(crate) struct ShownTaint<'a> {
        key: &'a str,
        value: &'a str,
        effect: &'static str = JsonShape::enumeration(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
    }
}

/// The links to a node group, which is a part of its cluster.
pub(crate) struct PartLinks<'a> {
    origin: &'a Origin,
    cluster: Uuid,
    part: String,
}

impl Serialize for PartLinks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PartLinks { origin, cluster, part } = self;
        Links { origin, collection: "clusters", id: *cluster, part }.serialize(serializer)
    }
}

impl Kind {
    /// The response schema of the field.
    pub(crate) fn shape(self) -> JsonShape {
        match self {
            Kind::Text => JsonShape::text(),
            Kind::MaybeText => JsonShape::text().or_null(),
            Kind::Integer => JsonShape::integer(),
            Kind::MaybeInteger => JsonShape::integer().or_null(),
            Kind::Boolean => JsonShape::boolean(),
            Kind::Null => JsonShape::null(),
            Kind::Texts => JsonShape::list(JsonShape::text()),
            Kind::TextMap => JsonShape::map(JsonShape::text()),
            Kind::Taints => JsonShape::list(ShownTaint::shape()),
            Kind::Links => JsonShape::links(),
        }
    }
}

impl Context {
    pub(crate) fn links(&self, collection: &'static str, id: impl GenericUuid) -> Shown<'_> {
        let id = id.into_untyped_uuid();
        Shown::Links(Links { origin: &self.origin, collection, id, part: "" })
    }

    /// The links to a node group of a cluster.
    pub(crate) fn group_links(
        &self,
        cluster: impl GenericUuid,
        group: impl GenericUuid,
    ) -> Shown<'_> {
        let part = format!("/nodegroups/{}", group.into_untyped_uuid());
        let cluster = cluster.into_untyped_uuid();
        Shown::PartLinks(PartLinks { origin: &self.origin, cluster, part })
    }
}

impl FromRequestParts<App> for Context {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let asked = Microversion::from_request_parts(parts, app).await?;
        let origin = Origin::from_request_parts(parts, app).await?;
        Ok(Context { asked, origin, now: (app.clock)() })
    }
}

impl<'a> ShownTaint<'a> {
    /// A taint in the form that clients see.
    pub(crate) fn new(taint: &'a NodeTaint) -> Self {
        ShownTaint { key: &taint.key, value: &taint.value, effect: taint.effect.as_str() }
    }
}

shown_from! {
    bool => Boolean,
    u32 => Integer,
    &'a str => Text,
    &'a String => Text,
    String => Written,
    &'a BTreeMap<String, String> => TextMap,
}

impl From<u16> for Shown<'_> {
    fn from(value: u16) -> Self {
        Shown::Integer(value.into())
    }
}

impl<K: TypedUuidKind> From<TypedUuid<K>> for Shown<'_> {
    fn from(id: TypedUuid<K>) -> Self {
        Shown::Id(id.into_untyped_uuid())
    }
}

impl From<Timestamp> for Shown<'_> {
    fn from(at: Timestamp) -> Self {
        Shown::Time(Time(at))
    }
}

impl<'a, T: Into<Shown<'a>>> From<Option<T>> for Shown<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Shown::Null, Into::into)
    }
}

impl<'a> From<&'a Option<String>> for Shown<'a> {
    fn from(text: &'a Option<String>) -> Self {
        text.as_deref().into()
    }
}
