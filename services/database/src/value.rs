//! The few types of values that pass to a database.

use jiff::Timestamp;
use newtype_uuid::{TypedUuid, TypedUuidKind};
use uuid::Uuid;

/// A parameter of a statement. Ids are stored as text, times as microseconds since 1970, booleans as 0 and 1.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer, a time or a boolean.
    Int(Option<i64>),
    /// Text or an id.
    Text(Option<String>),
}

/// Converts the arguments to a vector of [`Value`]s; the first is `$1`.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::Value::from($value)),*] };
}

/// Replaces NUL by U+FFFD: PostgreSQL cannot store NUL, and SQLite's functions stop at NUL. JSON documents keep their NULs, which JSON
/// writes as `\u0000`.
fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// Implements the conversion to [`Value`] for a type and for its `Option`.
macro_rules! stored {
    ($($kind:ident: $type:ty => $convert:expr;)*) => { $(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$kind(Some($convert(value)))
            }
        }

        impl From<Option<$type>> for Value {
            fn from(value: Option<$type>) -> Value {
                Value::$kind(value.map($convert))
            }
        }
    )* };
}

stored! {
    Int: i64 => |int| int;
    Int: u32 => i64::from;
    Int: bool => i64::from;
    Int: Timestamp => Timestamp::as_microsecond;
    Text: &str => |text: &str| storable(text.to_owned());
    Text: String => storable;
    Text: Uuid => |id: Uuid| id.to_string();
}

impl<K: TypedUuidKind> From<TypedUuid<K>> for Value {
    fn from(id: TypedUuid<K>) -> Value {
        Value::Text(Some(id.to_string()))
    }
}

impl<K: TypedUuidKind> From<Option<TypedUuid<K>>> for Value {
    fn from(id: Option<TypedUuid<K>>) -> Value {
        Value::Text(id.map(|id| id.to_string()))
    }
}
