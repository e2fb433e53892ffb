//! Tables of fields: the name of each field, the microversion that introduced it, and whether clients may write it.

use std::marker::PhantomData;

use openstack_api::{ApiError, Microversion};

/// The fields of one kind of resource.
pub(crate) trait Fields: Copy + PartialEq + 'static {
    /// The name of the resource with its article: `a node`.
    const RESOURCE: &'static str;

    /// Every field, in the order in which fields are shown and written: a field comes after the fields it depends on.
    const TABLE: &'static [FieldRow<Self>];

    /// The fields that a list shows by default.
    const DEFAULT_FIELDS: &'static [Self];

    /// The field with the links, which is always shown.
    const LINKS: Self;

    /// The row of a field by its name, and its index in the table.
    fn find(name: &str) -> Option<(usize, &'static FieldRow<Self>)> {
        Self::TABLE.iter().enumerate().find(|(_, row)| row.name == name)
    }

    /// The row of a field that a client wants to write.
    fn known(name: &str) -> Result<&'static FieldRow<Self>, ApiError> {
        Self::find(name).map(|(_, row)| row).ok_or_else(|| {
            let (name, thing) = (short(name), Self::RESOURCE);
            ApiError::bad_request(format!("{name}: unknown field of {thing}"))
        })
    }

    /// The row of a field that a client sets when it creates a resource.
    fn creatable(name: &str, asked: Microversion) -> Result<&'static FieldRow<Self>, ApiError> {
        let row = Self::known(name)?;
        if row.access == Access::Read {
            let problem = format!("cannot be set when {} is created", Self::RESOURCE);
            return Err(ApiError::bad_field(row.name, problem));
        }
        asked.need(row.since, row.name)?;
        Ok(row)
    }

    /// The row of a field that a client changes.
    fn changeable(name: &str, asked: Microversion) -> Result<&'static FieldRow<Self>, ApiError> {
        let row = Self::known(name)?;
        if row.access != Access::Write {
            return Err(ApiError::bad_field(row.name, "cannot be changed"));
        }
        asked.need(row.since, row.name)?;
        Ok(row)
    }
}

/// The properties of a field.
pub(crate) struct FieldRow<F> {
    pub(crate) field: F,
    pub(crate) name: &'static str,
    /// The microversion that introduced the field.
    pub(crate) since: Microversion,
    pub(crate) access: Access,
}

/// Makes a row of a table.
pub(crate) const fn row<F>(field: F, name: &'static str, minor: u16, access: Access) -> FieldRow<F>
where
    F: Copy,
{
    FieldRow { field, name, since: Microversion::new(minor), access }
}

/// When clients may write a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Never: only the service writes it.
    Read,
    /// Only when they create the resource.
    Create,
    /// Whenever the state of the node allows changes.
    Write,
}

/// A set of fields to show, with one bit for each row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldSet<F> {
    rows: u128,
    of: PhantomData<F>,
}

impl<F: Fields> FieldSet<F> {
    /// All fields that exist in the requested version.
    pub(crate) fn all(asked: Microversion) -> Self {
        FieldSet::matching(|row| asked.has(row.since))
    }

    /// The fields that a list shows by default.
    pub(crate) fn brief(asked: Microversion) -> Self {
        FieldSet::matching(|row| asked.has(row.since) && F::DEFAULT_FIELDS.contains(&row.field))
    }

    /// The fields named in `raw`, separated by commas, and the links.
    pub(crate) fn named(raw: &str, asked: Microversion) -> Result<Self, ApiError> {
        let mut shown = FieldSet::matching(|row| row.field == F::LINKS);
        for name in raw.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let (at, row) = F::find(name).ok_or_else(|| {
                let problem = format!("{} has no field {:?}", F::RESOURCE, short(name));
                ApiError::bad_field("fields", problem)
            })?;
            asked.need(row.since, row.name)?;
            shown.rows |= 1 << at;
        }
        Ok(shown)
    }

    fn matching(fits: impl Fn(&FieldRow<F>) -> bool) -> Self {
        const { assert!(F::TABLE.len() <= 128, "there are more fields than bits") };
        let bits = F::TABLE.iter().enumerate().filter(|(_, row)| fits(row)).map(|(at, _)| 1 << at);
        FieldSet { rows: bits.fold(0, |all, bit: u128| all | bit), of: PhantomData }
    }

    /// The rows of the fields to show.
    pub(crate) fn rows(self) -> impl Iterator<Item = &'static FieldRow<F>> {
        let rows = F::TABLE.iter().enumerate();
        rows.filter(move |(at, _)| self.rows >> at & 1 == 1).map(|(_, row)| row)
    }
}

fn short(name: &str) -> String {
    name.chars().take(64).collect()
}
