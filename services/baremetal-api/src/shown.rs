//! The value of a field in the form that clients see.

use std::borrow::Cow;
use std::collections::BTreeSet;

use baremetal_conductor::Conductor;
use baremetal_core::{DeployStep, Node, NodeUuid, RequestedStep, RunbookStep};
use hardware::MacAddress;
use jiff::Timestamp;
use newtype_uuid::{GenericUuid, TypedUuid, TypedUuidKind};
use openstack_api::{Links, Microversion, Origin, Time, shown_from};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::secret::{Masked, MaskedValue};

/// How the resources of one answer are shown.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) asked: Microversion,
    /// The origin under which the client reached the API.
    pub(crate) origin: &'a Origin,
    pub(crate) conductor: &'a Conductor,
    /// Whether the answer shows a node that the request has changed.
    pub(crate) is_changed: bool,
}

impl<'a> Context<'a> {
    /// The conductor that works on the node.
    pub(crate) fn conductor_of(&self, node: &Node) -> Shown<'a> {
        match self.conductor.conductor_of(node) {
            Some(Cow::Borrowed(hostname)) => Shown::Text(hostname),
            Some(Cow::Owned(hostname)) => Shown::Written(hostname),
            None => Shown::Null,
        }
    }
}

/// The value of a field in the form that clients see.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Shown<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Text(&'a str),
    Written(String),
    Texts(&'a BTreeSet<String>),
    Id(Uuid),
    Ids(&'a [NodeUuid]),
    Time(Time),
    Address(MacAddress),
    Object(&'a Map<String, Value>),
    Masked(Masked<'a>),
    Links(Links<'a, Uuid>),
    /// Links in a list of their own, as Ironic shows the links of some parts.
    LinkLists([Links<'a, Uuid>; 1]),
    /// A clean or deploy step, or another object of which nothing is known.
    Step {
        #[serde(skip_serializing_if = "Option::is_none")]
        interface: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        args: Option<Masked<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        priority: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        execute_on_child_nodes: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        limit_child_node_execution: Option<&'a [NodeUuid]>,
    },
    /// The internal information of a port or a port group.
    Internal {
        #[serde(skip_serializing_if = "Option::is_none")]
        tenant_vif_port_id: Option<&'a str>,
    },
    #[serde(serialize_with = "deploy_steps")]
    DeploySteps(&'a [DeployStep]),
    #[serde(serialize_with = "runbook_steps")]
    RunbookSteps(&'a [RunbookStep]),
    /// The conditions or actions of an inspection rule.
    #[serde(serialize_with = "masked_value")]
    Operations(Value),
}

/// Serializes a value with the secrets of its objects masked.
fn masked_value<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    MaskedValue(value).serialize(serializer)
}

/// A step of a template or a runbook, with the secrets of its arguments masked.
#[derive(Serialize)]
struct ShownStep<'a> {
    interface: &'static str,
    step: &'a str,
    args: Masked<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<u32>,
}

impl<'a> From<&'a RequestedStep> for ShownStep<'a> {
    fn from(step: &'a RequestedStep) -> Self {
        ShownStep {
            interface: step.name.interface.as_str(),
            step: &step.name.step,
            args: Masked(&step.args),
            priority: None,
            order: None,
        }
    }
}

fn deploy_steps<S: Serializer>(steps: &[DeployStep], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.iter().map(|DeployStep { step, priority }| ShownStep {
        priority: Some(*priority),
        ..step.into()
    }))
}

fn runbook_steps<S: Serializer>(steps: &[RunbookStep], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        steps
            .iter()
            .map(|RunbookStep { step, order }| ShownStep { order: Some(*order), ..step.into() }),
    )
}

impl<'a> Shown<'a> {
    /// The empty object.
    pub(crate) const EMPTY: Shown<'static> = Shown::Step {
        interface: None,
        step: None,
        args: None,
        priority: None,
        execute_on_child_nodes: None,
        limit_child_node_execution: None,
    };

    /// The internal information of a port or a port group to which `vif` is attached.
    pub(crate) fn internal(vif: &'a Option<String>) -> Self {
        Shown::Internal { tenant_vif_port_id: vif.as_deref() }
    }

    /// An object whose secrets are masked.
    pub(crate) fn masked(object: &'a Map<String, Value>) -> Self {
        Shown::Masked(Masked(object))
    }
}

impl<'a> Context<'a> {
    /// The links to a part of a resource; to the resource itself if `part` is empty.
    pub(crate) fn links(
        &self,
        collection: &'static str,
        id: impl GenericUuid,
        part: &'static str,
    ) -> Shown<'a> {
        Shown::Links(self.links_of(collection, id, part))
    }

    /// Like [`Context::links`], within a list.
    pub(crate) fn link_lists(
        &self,
        collection: &'static str,
        id: impl GenericUuid,
        part: &'static str,
    ) -> Shown<'a> {
        Shown::LinkLists([self.links_of(collection, id, part)])
    }

    fn links_of(
        &self,
        collection: &'static str,
        id: impl GenericUuid,
        part: &'static str,
    ) -> Links<'a, Uuid> {
        Links { origin: self.origin, collection, id: id.into_untyped_uuid(), part }
    }
}

shown_from! {
    bool => Boolean,
    &'a str => Text,
    &'a String => Text,
    String => Written,
    Uuid => Id,
    &'a Map<String, Value> => Object,
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
