//! The table of a resource's fields. One row declares a field: its name, its microversion, its JSON type, how it is read and written, and
//! how lists are sorted by it. Answers, the bodies of POST and PATCH, sort keys and the API description follow the rows.

use cluster_core::Refusal;
use openstack_api::Microversion;

use crate::input::Input;
use crate::shown::{Context, Kind, Shown};

/// A resource of the Container Infra API whose fields are declared in a table.
pub(crate) trait Resource: Sized + 'static {
    /// The description of the body of a request for a new resource.
    const BODY: &'static str;

    /// Whether a missing field counts as null, and not as the value of the resource that the new one is made from.
    const MISSING_IS_NULL: bool;

    /// Every field, in the order in which fields are shown and written.
    const FIELDS: &'static [Field<Self>];

    /// The record that the fields of an answer are read from.
    type Record<'a>: Copy;

    /// A request for a new resource, which the fields of a body are written to.
    type New: 'static;

    /// A change of the resource, which the fields of a patch are written to.
    type Change: 'static;

    /// The keys by which the store sorts.
    type Sort: Copy + 'static;
}

pub(crate) struct Field<R: Resource> {
    pub(crate) name: &'static str,
    /// The microversion that introduced the field.
    pub(crate) since: Microversion,
    /// The microversion that removed the field.
    pub(crate) until: Option<Microversion>,
    /// The field in answers; `None` if only requests have it.
    pub(crate) answer: Option<Answer<R>>,
    /// How requests for a new resource set the field; `None` if they cannot.
    pub(crate) create: Option<Input<R::New>>,
    /// How patches change the field; `None` if they cannot.
    pub(crate) change: Option<Input<R::Change>>,
    /// Whether the field must be sent for a new resource.
    pub(crate) is_required: bool,
    /// The description of the field in the body of a request.
    pub(crate) about: Option<&'static str>,
    pub(crate) sort: Option<R::Sort>,
}

pub(crate) struct Answer<R: Resource> {
    pub(crate) kind: Kind,
    pub(crate) read: Read<R>,
    /// Whether a list without details shows the field.
    pub(crate) is_brief: bool,
}

/// Reads the value of a field.
pub(crate) type Read<R> = for<'a> fn(<R as Resource>::Record<'a>, &'a Context) -> Shown<'a>;

/// How many fields of a resource are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    Brief,
    Detail,
}

impl<R: Resource> Field<R> {
    /// Declares a field that answers show.
    pub(crate) const fn new(name: &'static str, kind: Kind, read: Read<R>) -> Self {
        let answer = Some(Answer { kind, read, is_brief: false });
        Field { answer, ..Field::unseen(name) }
    }

    /// Declares a field that only requests have.
    pub(crate) const fn unseen(name: &'static str) -> Self {
        Field {
            name,
            since: Microversion::new(1),
            until: None,
            answer: None,
            create: None,
            change: None,
            is_required: false,
            about: None,
            sort: None,
        }
    }

    /// The field came with a later microversion.
    pub(crate) const fn since(self, since: Microversion) -> Self {
        Field { since, ..self }
    }

    /// A later microversion removed the field.
    pub(crate) const fn until(self, until: Microversion) -> Self {
        Field { until: Some(until), ..self }
    }

    /// A list without details shows the field.
    pub(crate) const fn brief(self) -> Self {
        let answer = match self.answer {
            Some(Answer { kind, read, .. }) => Some(Answer { kind, read, is_brief: true }),
            None => None,
        };
        Field { answer, ..self }
    }

    /// A client may set the field of a new resource.
    pub(crate) const fn create(self, input: Input<R::New>) -> Self {
        Field { create: Some(input), ..self }
    }

    /// A client may change the field.
    pub(crate) const fn change(self, input: Input<R::Change>) -> Self {
        Field { change: Some(input), ..self }
    }

    /// The field must be sent for a new resource.
    pub(crate) const fn required(self) -> Self {
        Field { is_required: true, ..self }
    }

    /// Describes the field in the body of a request.
    pub(crate) const fn about(self, about: &'static str) -> Self {
        Field { about: Some(about), ..self }
    }

    /// Lists can be sorted by the field.
    pub(crate) const fn sort(self, key: R::Sort) -> Self {
        Field { sort: Some(key), ..self }
    }

    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        R::FIELDS.iter().find(|field| field.name == name)
    }

    /// Whether an answer of this level shows the field in the requested version.
    pub(crate) fn is_shown(&self, level: DetailLevel, asked: Microversion) -> bool {
        let is_wanted = |answer: &Answer<R>| answer.is_brief || level == DetailLevel::Detail;
        let is_gone = self.until.is_some_and(|until| asked.has(until));
        asked.has(self.since) && !is_gone && self.answer.as_ref().is_some_and(is_wanted)
    }
}

pub(crate) fn put<T, E>(place: &mut T, parsed: Result<T, E>) -> Result<(), E> {
    *place = parsed?;
    Ok(())
}

/// Stores a value if the client sent one, and otherwise keeps the present value.
pub(crate) fn put_if_sent<T>(place: &mut T, sent: Option<T>) -> Result<(), Refusal> {
    if let Some(sent) = sent {
        *place = sent;
    }
    Ok(())
}

/// Refuses a value of Magnum that this service does not support.
pub(crate) fn refuse_if_sent<T>(
    field: &'static str,
    sent: Option<T>,
    why: &str,
) -> Result<(), Refusal> {
    match sent {
        None => Ok(()),
        Some(_) => Err(Refusal::Field { field, why: why.to_owned() }),
    }
}
