//! The table of a resource's fields. One row declares a field: its name, its microversion, who may write it, its type, how it is read and
//! written, and how lists are filtered and sorted by it. Answers, `fields`, POST, PATCH, lists and the OpenAPI document follow the rows.

use std::marker::PhantomData;

use baremetal_core::{Attribute, AttributeValue};
use http::StatusCode;
use openstack_api::{ApiError, JsonShape, Microversion, Query, Rule, flag};
use serde_json::{Map, Value};
use utoipa::openapi::schema::Type;

use crate::filter::{Filter, Narrow};
use crate::microversion;
use crate::shown::{Context, Shown};

/// A resource of the Bare Metal API whose fields are declared in a table.
pub(crate) trait Resource: Clone + Sized + 'static {
    /// The name of the resource with its article: `a node`.
    const NAME: &'static str;

    /// The name of the collection: `nodes`.
    const COLLECTION: &'static str;

    /// Every field, in the order in which fields are shown and written: a field comes after the fields it depends on.
    const FIELDS: &'static [Field<Self>];

    /// The filters of lists that are not fields.
    const FILTERS: &'static [Filter<Self::List>];

    /// Whether a later field is unknown (400) to clients that request an earlier version, instead of refused with the version (406).
    const HIDES_LATER_FIELDS: bool = false;

    /// Whether `fields` of an earlier version is refused likewise.
    const QUERY_HIDES_LATER_FIELDS: bool = Self::HIDES_LATER_FIELDS;

    /// Whether lists with details show a later field to clients that request an earlier version, as Ironic does for some resources.
    const DETAIL_SHOWS_LATER_FIELDS: bool = false;

    /// The microversion that introduced the query parameter `detail`.
    const DETAIL_QUERY: Microversion = microversion::DETAIL_QUERY;

    /// The requested list, which the filters narrow.
    type List: Default + 'static;

    /// The keys by which the store sorts; the default is the order of creation.
    type Sort: Copy + Default;
}

pub(crate) struct Field<R: Resource> {
    pub(crate) name: &'static str,
    /// The microversion that introduced the field.
    pub(crate) since: Microversion,
    /// The parts of requests that know the field in every version.
    unchecked: &'static [RequestPart],
    pub(crate) kind: Kind,
    reader: Reader<R>,
    pub(crate) access: Access<R>,
    /// How an import writes the field, if otherwise only the service writes it or if an import writes it differently.
    pub(crate) import: Option<Write<R>>,
    /// Whether the field must be given when a resource is created.
    pub(crate) is_required: bool,
    /// Whether the field of a new resource has its default, although clients change it later.
    pub(crate) is_set_later: bool,
    /// Whether a list shows the field by default.
    pub(crate) is_brief: bool,
    /// Whether the field reveals details of the site, which a lessee must not see. Ironic shows such a field with a text that the caller may
    /// not see it.
    pub(crate) is_site_detail: bool,
    /// Whether only administrators change the field of a node in use.
    pub(crate) is_fixed_in_use: bool,
    /// The microversion since which a patch removes the value. `None`: clients of every version do.
    pub(crate) removed_since: Option<Microversion>,
    pub(crate) filter: Option<Filter<R::List>>,
    pub(crate) sort: Option<R::Sort>,
}

/// A part of a request that names a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPart {
    /// The body that creates a resource.
    Creation,
    Patch,
    /// The query parameter `fields`.
    Fields,
    SortKey,
}

/// Reads the value of a field.
pub(crate) type Read<R> = for<'a> fn(&'a R, &Context<'a>) -> Shown<'a>;

/// How the value of a field is read.
enum Reader<R: 'static> {
    Shown(Read<R>),
    /// As the table of the core declares it.
    Core(&'static Attribute<R>),
    /// An object whose secrets are shown as a mask.
    Masked(fn(&R) -> &Map<String, Value>),
}

/// Parses the value that a client sends for the field of this name, and stores it. Null selects the default.
pub(crate) type Write<R> = fn(&mut R, &'static str, Value) -> Result<(), ApiError>;

/// When clients may write a field.
pub(crate) enum Access<R: 'static> {
    /// Never: only the service writes it.
    Read,
    /// Only when they create the resource.
    Create(Set<R>),
    /// Whenever the state of the node allows changes, if the caller satisfies the rule.
    Change(Rule, Set<R>),
}

/// How a field is written.
pub(crate) enum Set<R: 'static> {
    Value(Write<R>),
    /// As the table of the core declares it.
    Core(&'static Attribute<R>),
    /// Replaces an object. A patch may also change a part of it.
    Object(fn(&mut R) -> &mut Map<String, Value>),
    /// The same for an object whose secrets are shown as a mask.
    Secrets(fn(&mut R) -> &mut Map<String, Value>),
    /// Replaces a list. A patch may also change a part of the present one, which the first function returns.
    List(fn(&R) -> Value, Write<R>),
}

/// The JSON type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text or null.
    Text,
    Texts,
    Boolean,
    /// A boolean or null.
    MaybeBoolean,
    Integer,
    Object,
    Links,
    LinkLists,
    /// A list of deploy steps.
    Steps,
    /// A list of conditions or actions, or null.
    Operations,
}

impl<R: Resource> Field<R> {
    /// Declares a field that only the service writes.
    pub(crate) const fn new(name: &'static str, minor: u16, kind: Kind, read: Read<R>) -> Self {
        Field::with(name, minor, kind, Reader::Shown(read))
    }

    /// Declares a field of the core's table, which rules of inspections share. Until `change_shared` only the service writes the field.
    pub(crate) const fn shared(attribute: &'static Attribute<R>, minor: u16) -> Self {
        let kind = match attribute.value {
            AttributeValue::Text(..) | AttributeValue::Word(_) => Kind::Text,
            AttributeValue::Flag(..) => Kind::Boolean,
            AttributeValue::MaybeFlag(..) => Kind::MaybeBoolean,
            AttributeValue::Object(..) => Kind::Object,
            AttributeValue::Computed(_) => panic!("answers show the field in another form"),
        };
        Field::with(attribute.name, minor, kind, Reader::Core(attribute))
    }

    const fn with(name: &'static str, minor: u16, kind: Kind, reader: Reader<R>) -> Self {
        Field {
            name,
            since: Microversion::new(minor),
            unchecked: &[],
            kind,
            reader,
            access: Access::Read,
            import: None,
            is_required: false,
            is_set_later: false,
            is_brief: false,
            is_site_detail: false,
            is_fixed_in_use: false,
            removed_since: None,
            filter: None,
            sort: None,
        }
    }

    /// Clients set the field when they create the resource.
    pub(crate) const fn create(self, write: Write<R>) -> Self {
        Field { access: Access::Create(Set::Value(write)), ..self }
    }

    /// Clients that satisfy `rule` write the field.
    pub(crate) const fn change(self, rule: Rule, write: Write<R>) -> Self {
        Field { access: Access::Change(rule, Set::Value(write)), ..self }
    }

    /// Clients that satisfy `rule` write the field, as the table of the core declares it.
    pub(crate) const fn change_shared(self, rule: Rule) -> Self {
        let Reader::Core(attribute) = self.reader else { panic!("the core does not declare it") };
        let set = match attribute.value {
            AttributeValue::Object(_, place) => Set::Object(place),
            AttributeValue::Text(..)
            | AttributeValue::Flag(..)
            | AttributeValue::MaybeFlag(..)
            | AttributeValue::Word(_)
            | AttributeValue::Computed(_) => Set::Core(attribute),
        };
        Field { access: Access::Change(rule, set), ..self }
    }

    /// Like `change_shared`, for an object with secrets, which answers show as a mask.
    pub(crate) const fn change_shared_secrets(self, rule: Rule) -> Self {
        let Reader::Core(attribute) = self.reader else { panic!("the core does not declare it") };
        let AttributeValue::Object(read, place) = attribute.value else {
            panic!("only an object has secrets")
        };
        let access = Access::Change(rule, Set::Secrets(place));
        Field { access, reader: Reader::Masked(read), ..self }
    }

    /// Clients that satisfy `rule` write the field, which is an object with secrets.
    pub(crate) const fn change_secrets(
        self,
        rule: Rule,
        place: fn(&mut R) -> &mut Map<String, Value>,
    ) -> Self {
        Field { access: Access::Change(rule, Set::Secrets(place)), ..self }
    }

    /// Clients that satisfy `rule` write the field, which is an object.
    pub(crate) const fn change_object(
        self,
        rule: Rule,
        place: fn(&mut R) -> &mut Map<String, Value>,
    ) -> Self {
        Field { access: Access::Change(rule, Set::Object(place)), ..self }
    }

    /// Clients that satisfy `rule` write the field, which is a list; `present` returns it as a request writes it.
    pub(crate) const fn change_list(
        self,
        rule: Rule,
        present: fn(&R) -> Value,
        write: Write<R>,
    ) -> Self {
        Field { access: Access::Change(rule, Set::List(present, write)), ..self }
    }

    /// An import from another service writes the field.
    pub(crate) const fn imported(self, write: Write<R>) -> Self {
        Field { import: Some(write), ..self }
    }

    /// The field must be given when a resource is created.
    pub(crate) const fn required(self) -> Self {
        Field { is_required: true, ..self }
    }

    /// Clients write the field only of an existing resource.
    pub(crate) const fn not_at_creation(self) -> Self {
        Field { is_set_later: true, ..self }
    }

    /// Lists show the field by default.
    pub(crate) const fn brief(self) -> Self {
        Field { is_brief: true, ..self }
    }

    /// Lessees do not see the field.
    pub(crate) const fn site_detail(self) -> Self {
        Field { is_site_detail: true, ..self }
    }

    /// Only administrators change the field of a node in use.
    pub(crate) const fn fixed_in_use(self) -> Self {
        Field { is_fixed_in_use: true, ..self }
    }

    /// Only clients of this version and later ones remove the value.
    pub(crate) const fn removed_since(self, minor: u16) -> Self {
        Field { removed_since: Some(Microversion::new(minor)), ..self }
    }

    /// These parts of requests know the field in every version, because Ironic does not check their version. Answers of earlier versions do
    /// not show the field.
    pub(crate) const fn unchecked_in(self, unchecked: &'static [RequestPart]) -> Self {
        Field { unchecked, ..self }
    }

    /// Lists can be filtered by the field.
    pub(crate) const fn filter(self, narrow: Narrow<R::List>) -> Self {
        let filter = Filter { name: self.name, since: self.since, narrow };
        Field { filter: Some(filter), ..self }
    }

    /// Lists can be filtered by the field since a microversion that is later than the field.
    pub(crate) const fn filter_since(self, since: Microversion, narrow: Narrow<R::List>) -> Self {
        let filter = Filter { name: self.name, since, narrow };
        Field { filter: Some(filter), ..self }
    }

    /// Lists can be sorted by the field.
    pub(crate) const fn sort(self, key: R::Sort) -> Self {
        Field { sort: Some(key), ..self }
    }

    /// Reads the value of the field in the form that clients see.
    pub(crate) fn show<'a>(&self, it: &'a R, look: &Context<'a>) -> Shown<'a> {
        let attribute = match self.reader {
            Reader::Shown(read) => return read(it, look),
            Reader::Masked(read) => return Shown::masked(read(it)),
            Reader::Core(attribute) => attribute,
        };
        match attribute.value {
            AttributeValue::Text(read, _) | AttributeValue::Word(read) => read(it).into(),
            AttributeValue::Flag(read, _) => read(it).into(),
            AttributeValue::MaybeFlag(read, _) => read(it).into(),
            AttributeValue::Object(read, _) => read(it).into(),
            AttributeValue::Computed(_) => Shown::Null,
        }
    }

    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        R::FIELDS.iter().find(|field| field.name == name)
    }

    /// Returns the field that a client wants to write.
    pub(crate) fn known(name: &str) -> Result<&'static Self, ApiError> {
        Self::find(name).ok_or_else(|| unknown::<R>(name))
    }

    /// Refuses a request whose `part` names the field in a version before the field.
    pub(crate) fn need(&self, part: RequestPart, asked: Microversion) -> Result<(), ApiError> {
        if self.unchecked.contains(&part) {
            return Ok(());
        }
        if R::HIDES_LATER_FIELDS && !asked.has(self.since) {
            return Err(unknown::<R>(self.name));
        }
        asked.need(self.since, self.name)
    }
}

impl<R: 'static> Access<R> {
    /// How clients write the field, at least when they create the resource.
    pub(crate) fn set(&self) -> Option<&Set<R>> {
        match self {
            Access::Read => None,
            Access::Create(set) | Access::Change(_, set) => Some(set),
        }
    }
}

impl Kind {
    /// Whether the field has links, which every answer has and no request names.
    fn is_links(self) -> bool {
        matches!(self, Kind::Links | Kind::LinkLists)
    }

    /// The JSON shape of the field in answers.
    pub(crate) fn shape(self) -> JsonShape {
        match self {
            Kind::Text => JsonShape::text().or_null(),
            Kind::Texts => JsonShape::list(JsonShape::text()),
            Kind::Boolean => JsonShape::boolean(),
            Kind::MaybeBoolean => JsonShape::boolean().or_null(),
            Kind::Integer => JsonShape::integer(),
            Kind::Object => JsonShape::any_object(),
            Kind::Links => JsonShape::links(),
            Kind::LinkLists => JsonShape::list(JsonShape::links()),
            Kind::Steps => JsonShape::list(JsonShape::any_object()),
            Kind::Operations => JsonShape::list(JsonShape::any_object()).or_null(),
        }
    }

    /// The JSON type of the field in requests.
    pub(crate) fn body(self) -> Type {
        match self {
            Kind::Text => Type::String,
            Kind::Texts | Kind::Links | Kind::LinkLists | Kind::Steps | Kind::Operations => {
                Type::Array
            }
            Kind::Boolean | Kind::MaybeBoolean => Type::Boolean,
            Kind::Integer => Type::Integer,
            Kind::Object => Type::Object,
        }
    }
}

/// A set of fields to show, with one bit for each row of the table.
pub(crate) struct FieldSet<R> {
    rows: u128,
    of: PhantomData<R>,
}

impl<R> Clone for FieldSet<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for FieldSet<R> {}

/// How many fields a list shows by default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    /// For `/v1/nodes` and `/v1/ports`.
    Brief,
    /// For `/v1/nodes/detail` and `/v1/ports/detail`.
    Detail,
}

impl<R: Resource> FieldSet<R> {
    /// All fields that exist in the requested version.
    pub(crate) fn all(asked: Microversion) -> Self {
        FieldSet::matching(|field| asked.has(field.since))
    }

    /// All fields of an element in a list with details.
    fn detailed(asked: Microversion) -> Self {
        FieldSet::matching(|field| R::DETAIL_SHOWS_LATER_FIELDS || asked.has(field.since))
    }

    /// The fields requested by `fields`, by default all.
    pub(crate) fn requested(query: &mut Query, asked: Microversion) -> Result<Self, ApiError> {
        match query.take("fields") {
            None => Ok(FieldSet::all(asked)),
            Some(raw) => FieldSet::named(&raw, asked),
        }
    }

    /// The fields of a list, as requested by `fields` and `detail`.
    pub(crate) fn listed(
        query: &mut Query,
        level: DetailLevel,
        asked: Microversion,
    ) -> Result<Self, ApiError> {
        // Lists with all fields do not know the parameter.
        let given = match level {
            DetailLevel::Brief => query.take("detail"),
            DetailLevel::Detail => None,
        };
        let detail = match given {
            None => false,
            Some(raw) => {
                let since = R::DETAIL_QUERY;
                if !asked.has(since) {
                    return Err(ApiError::bad_field(
                        "detail",
                        format!("is known since version {since}"),
                    ));
                }
                flag("detail", &raw)?
            }
        };
        match query.take("fields") {
            Some(_) if detail || level == DetailLevel::Detail => {
                Err(ApiError::bad_field("fields", "cannot be used together with detail"))
            }
            Some(raw) => FieldSet::named(&raw, asked),
            None if detail || level == DetailLevel::Detail => Ok(FieldSet::detailed(asked)),
            None => Ok(FieldSet::matching(|field| asked.has(field.since) && field.is_brief)),
        }
    }

    /// The fields named in `raw`, separated by commas, and the links.
    fn named(raw: &str, asked: Microversion) -> Result<Self, ApiError> {
        asked.need(microversion::FIELDS, "fields")?;
        let mut shown = FieldSet::matching(|field| field.name == "links");
        let names = raw.to_ascii_lowercase();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let is_it = |field: &Field<R>| field.name == name && !field.kind.is_links();
            let at = R::FIELDS.iter().position(is_it).ok_or_else(|| {
                let problem = format!("{} has no field {:?}", R::NAME, short(name));
                ApiError::bad_field("fields", problem)
            })?;
            let field = &R::FIELDS[at];
            if R::QUERY_HIDES_LATER_FIELDS && !asked.has(field.since) {
                return Err(unknown::<R>(field.name));
            }
            field.need(RequestPart::Fields, asked)?;
            if asked.has(field.since) {
                shown.rows |= 1 << at;
            }
        }
        Ok(shown)
    }

    /// Whether lists show each field of this set by default.
    pub(crate) fn is_brief(self) -> bool {
        self.rows & !FieldSet::<R>::matching(|field| field.is_brief).rows == 0
    }

    /// The fields of this set that a lessee may see.
    pub(crate) fn for_lessees(self) -> Self {
        let seen = FieldSet::<R>::matching(|field| !field.is_site_detail);
        FieldSet { rows: self.rows & seen.rows, ..self }
    }

    /// The names of the fields that lists show by default, separated by commas; `None` if they show all fields.
    pub(crate) fn brief_names() -> Option<String> {
        let brief: Vec<&str> =
            R::FIELDS.iter().filter(|field| field.is_brief).map(|field| field.name).collect();
        let is_short = brief.len() < R::FIELDS.len();
        let shown = brief.into_iter().filter(|name| *name != "links");
        is_short.then(|| shown.collect::<Vec<_>>().join(","))
    }

    fn matching(fits: impl Fn(&Field<R>) -> bool) -> Self {
        const { assert!(R::FIELDS.len() <= 128, "there are more fields than bits") };
        let bits = R::FIELDS.iter().enumerate().filter(|(_, row)| fits(row)).map(|(at, _)| 1 << at);
        FieldSet { rows: bits.fold(0, |all, bit: u128| all | bit), of: PhantomData }
    }

    /// The fields to show.
    pub(crate) fn fields(self) -> impl Iterator<Item = &'static Field<R>> {
        let rows = R::FIELDS.iter().enumerate();
        rows.filter(move |(at, _)| self.rows >> at & 1 == 1).map(|(_, field)| field)
    }

    /// How many fields are shown.
    pub(crate) fn len(self) -> usize {
        self.rows.count_ones() as usize
    }
}

fn unknown<R: Resource>(name: &str) -> ApiError {
    ApiError::bad_request(format!("{}: unknown field of {}", short(name), R::NAME))
}

fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Turns 404 into 400: the path of the request exists, but the field of its body names something that does not.
pub(crate) fn in_body<E: Into<ApiError>>(field: &'static str) -> impl Fn(E) -> ApiError {
    move |why| match why.into() {
        why if why.status == StatusCode::NOT_FOUND => ApiError::bad_field(field, why.message),
        why => why,
    }
}
