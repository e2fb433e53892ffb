//! Resource types as data: names, fields, and the requests that may set each field.

use serde_json::Value;

use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{ApiError, ApiRequest};

pub(crate) struct ResourceType {
    pub(crate) kind: Kind,
    /// The path segment of the collection.
    pub(crate) path: &'static str,
    /// The key of a list in a body.
    pub(crate) plural: &'static str,
    /// The key of one object in a body.
    pub(crate) single: &'static str,
    /// The service's name of the error for an unknown id, and its message, in which `{}` stands for the id.
    pub(crate) not_found: (&'static str, &'static str),
    /// The fields. Each line begins with the requests that may set its fields: `new` a create, `later` an update, `always` both, `never`
    /// none. A new object has `name=VALUE` by default, and `name` only if the create sets it. A create must set `name!` to a number and
    /// `name?A|B` to one of the texts. `name-` says where an object belongs, and the object has no such field. A word that ends in `@19` is
    /// shown since this microversion, one that ends in `@1-63` in this range of microversions.
    pub(crate) fields: &'static str,
}

/// A request that may set a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    New,
    Later,
}

struct Field {
    name: &'static str,
    /// The first word of the field's line.
    set: &'static str,
    default: Default,
    /// The microversions that show the field. Empty for all.
    versions: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Default {
    Absent,
    Dropped,
    Mandatory,
    OneOf(&'static str),
    Json(&'static str),
}

impl Field {
    fn read(set: &'static str, word: &'static str) -> Field {
        let (word, versions) = word.split_once('@').unwrap_or((word, ""));
        let (name, default) = if let Some((name, value)) = word.split_once('=') {
            (name, Default::Json(value))
        } else if let Some((name, choice)) = word.split_once('?') {
            (name, Default::OneOf(choice))
        } else if let Some(name) = word.strip_suffix('!') {
            (name, Default::Mandatory)
        } else if let Some(name) = word.strip_suffix('-') {
            (name, Default::Dropped)
        } else {
            (word, Default::Absent)
        };
        Field { name, set, default, versions }
    }

    fn is_set_by(&self, request: Set) -> bool {
        let word = if request == Set::New { "new" } else { "later" };
        self.set == word || self.set == "always"
    }

    fn default(&self) -> Option<Value> {
        match self.default {
            Default::Absent | Default::Dropped => None,
            Default::Mandatory | Default::OneOf(_) => Some(Value::Null),
            Default::Json(text) => Some(serde_json::from_str(text).unwrap_or_default()),
        }
    }
}

impl ResourceType {
    pub(crate) fn missing(&self, id: &str) -> ApiError {
        ApiError::new(404, self.not_found.0, self.not_found.1.replace("{}", id))
    }

    fn fields(&self) -> impl Iterator<Item = Field> {
        self.fields.lines().flat_map(|line| {
            let mut words = line.split_whitespace();
            let set = words.next().unwrap_or_default();
            words.map(|word| Field::read(set, word))
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields().any(|field| field.name == name)
    }

    /// Whether the request may set this field.
    pub(crate) fn sets(&self, name: &str, request: Set) -> bool {
        self.fields().any(|field| field.name == name && field.is_set_by(request))
    }

    /// The names in `given` that the request may not set.
    pub(crate) fn unknown<'g>(&self, given: &'g Fields, request: Set) -> Vec<&'g str> {
        given.keys().map(String::as_str).filter(|name| !self.sets(name, request)).collect()
    }

    /// The fields in `given` that the request may set.
    pub(crate) fn settable<'g>(
        &self,
        given: &'g Fields,
        request: Set,
    ) -> impl Iterator<Item = (&'g String, &'g Value)> {
        let unknown = self.unknown(given, request);
        given.iter().filter(move |(name, _)| !unknown.contains(&name.as_str()))
    }

    /// The first mandatory number that `given` lacks.
    pub(crate) fn lacking(&self, given: &Fields) -> Option<&'static str> {
        let mandatory = self.fields().filter(|field| field.default == Default::Mandatory);
        let mut mandatory = mandatory.map(|field| field.name);
        mandatory.find(|name| given.field(name).as_i64().is_none())
    }

    /// The first field with a choice that `given` does not make, with the value and the choice.
    pub(crate) fn wrong_choice<'g>(
        &self,
        given: &'g Fields,
    ) -> Option<(&'static str, &'g str, Vec<&'static str>)> {
        self.fields().find_map(|field| {
            let Default::OneOf(choice) = field.default else { return None };
            let choice: Vec<&str> = choice.split('|').collect();
            let value = given.text(field.name);
            (!choice.contains(&value)).then_some((field.name, value, choice))
        })
    }

    /// The body of a new object: the defaults, and the given fields.
    pub(crate) fn filled<'g>(
        &self,
        given: impl IntoIterator<Item = (&'g String, &'g Value)>,
    ) -> Value {
        let defaults = self.fields().filter_map(|it| Some((it.name.to_owned(), it.default()?)));
        let mut body: Fields = defaults.collect();
        body.extend(given.into_iter().map(|(name, value)| (name.clone(), value.clone())));
        for dropped in self.fields().filter(|field| field.default == Default::Dropped) {
            body.remove(dropped.name);
        }
        Value::Object(body)
    }

    /// The body of a new object: the defaults, and the given fields that a create may set. Null stands for the default.
    pub(crate) fn new_body(&self, given: &Fields) -> Value {
        self.filled(self.settable(given, Set::New).filter(|(_, value)| !value.is_null()))
    }

    /// The fields of an object that the microversion of the request shows.
    pub(crate) fn view(&self, asked: &ApiRequest, object: &Object) -> Value {
        let mut body = object.body.clone();
        for field in self.fields().filter(|field| !asked.within(field.versions)) {
            body.remove(field.name);
        }
        Value::Object(body)
    }
}

/// Makes the test that proves that tables can be read.
macro_rules! test_tables {
    ($tables:expr) => {
        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn the_tables_can_be_read() {
                $tables.for_each($crate::resource::check_table);
            }
        }
    };
}
pub(crate) use test_tables;

/// Proves that a table can be read.
#[cfg(test)]
pub(crate) fn check_table(of: &ResourceType) {
    for field in of.fields() {
        assert!(["new", "later", "always", "never"].contains(&field.set), "{}", field.set);
        let same = of.fields().filter(|other| other.name == field.name).count();
        assert_eq!(same, 1, "{} {}", of.path, field.name);
        if let Default::Json(text) = field.default {
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{} {text}", field.name);
        }
        let mut versions = field.versions.split('-').filter(|version| !version.is_empty());
        assert!(versions.all(|version| version.parse::<u32>().is_ok()), "{}", field.name);
    }
}
