//! Query parameters that narrow a list.

use std::fmt::Display;
use std::str::FromStr;

use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Microversion, flag};
use uuid::Uuid;

/// A query parameter that narrows a list of the type `L`.
pub(crate) struct Filter<L> {
    pub(crate) name: &'static str,
    /// The microversion that introduced the filter.
    pub(crate) since: Microversion,
    pub(crate) narrow: Narrow<L>,
}

/// Narrows the list to the resources with the value that the client gave.
pub(crate) type Narrow<L> = fn(&mut L, By<'_>) -> Result<(), ApiError>;

/// The value of a filter, as the client sent it.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    pub(crate) name: &'static str,
    pub(crate) value: &'a str,
}

impl By<'_> {
    pub(crate) fn text(self) -> Option<String> {
        Some(self.value.to_owned())
    }

    /// The values that the client separated by commas.
    pub(crate) fn list(self) -> Vec<String> {
        self.value.split(',').map(|value| value.trim().to_owned()).collect()
    }

    pub(crate) fn flag(self) -> Result<Option<bool>, ApiError> {
        flag(self.name, self.value).map(Some)
    }

    pub(crate) fn id<T: GenericUuid>(self) -> Result<Option<T>, ApiError> {
        let parsed = Uuid::parse_str(self.value).map_err(|_| self.refuse("must be a UUID"))?;
        Ok(Some(T::from_untyped_uuid(parsed)))
    }

    pub(crate) fn parsed<T: FromStr<Err: Display>>(self) -> Result<Option<T>, ApiError> {
        self.value.parse().map(Some).map_err(|why| self.refuse(why))
    }

    pub(crate) fn refuse(self, problem: impl Display) -> ApiError {
        ApiError::bad_field(self.name, problem)
    }
}
