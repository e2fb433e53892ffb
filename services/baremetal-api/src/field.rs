//! Tables of fields: each one's name, the version it came with, and who may write it.

use std::marker::PhantomData;

use openstack_api::{ApiError, Microversion};

/// The fields of one kind of thing.
pub(crate) trait Fields: Copy + PartialEq + 'static {
    /// What has these fields: `a node`.
    const THING: &'static str;

    /// Every field, in the order it is shown and written: one that another depends on comes first.
    const TABLE: &'static [Row<Self>];

    /// What a list shows of each thing unless it is asked for more.
    const BRIEF: &'static [Self];

    /// Always shown.
    const LINKS: Self;

    /// The row of the field that a client named, and where it stands.
    fn find(name: &str) -> Option<(usize, &'static Row<Self>)> {
        Self::TABLE.iter().enumerate().find(|(_, row)| row.name == name)
    }

    /// The row of a field that a client wants to write.
    fn known(name: &str) -> Result<&'static Row<Self>, ApiError> {
        Self::find(name).map(|(_, row)| row).ok_or_else(|| {
            let (name, thing) = (short(name), Self::THING);
            ApiError::bad_request(format!("{name}: {thing} has no such field"))
        })
    }

    /// The row of a field that a client sets when it creates a thing.
    fn creatable(name: &str, asked: Microversion) -> Result<&'static Row<Self>, ApiError> {
        let row = Self::known(name)?;
        if row.access == Access::Read {
            let problem = format!("it can not be set when {} is created", Self::THING);
            return Err(ApiError::bad_field(row.name, problem));
        }
        asked.need(row.since, row.name)?;
        Ok(row)
    }

    /// The row of a field that a client changes.
    fn changeable(name: &str, asked: Microversion) -> Result<&'static Row<Self>, ApiError> {
        let row = Self::known(name)?;
        if row.access != Access::Write {
            return Err(ApiError::bad_field(row.name, "it can not be changed"));
        }
        asked.need(row.since, row.name)?;
        Ok(row)
    }
}

/// What is known of a field.
pub(crate) struct Row<F> {
    /// Which field.
    pub(crate) field: F,
    /// Its name.
    pub(crate) name: &'static str,
    /// The version that brought it.
    pub(crate) since: Microversion,
    /// Who may write it.
    pub(crate) access: Access,
}

/// A row of a table.
pub(crate) const fn row<F>(field: F, name: &'static str, minor: u16, access: Access) -> Row<F>
where
    F: Copy,
{
    Row { field, name, since: Microversion::new(minor), access }
}

/// Who may write a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only we.
    Read,
    /// Clients, when they create the thing.
    Create,
    /// Clients, at any time the node's state allows.
    Write,
}

/// Which fields to show: one bit for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown<F> {
    rows: u128,
    of: PhantomData<F>,
}

impl<F: Fields> Shown<F> {
    /// All that a client that asked for this version knows.
    pub(crate) fn all(asked: Microversion) -> Self {
        Shown::these(|row| asked.has(row.since))
    }

    /// What a list shows of each thing unless it is asked for more.
    pub(crate) fn brief(asked: Microversion) -> Self {
        Shown::these(|row| asked.has(row.since) && F::BRIEF.contains(&row.field))
    }

    /// The fields that `raw` names, separated by commas; the links always.
    pub(crate) fn named(raw: &str, asked: Microversion) -> Result<Self, ApiError> {
        let mut shown = Shown::these(|row| row.field == F::LINKS);
        for name in raw.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let (at, row) = F::find(name).ok_or_else(|| {
                let problem = format!("{} has no field {:?}", F::THING, short(name));
                ApiError::bad_field("fields", problem)
            })?;
            asked.need(row.since, row.name)?;
            shown.rows |= 1 << at;
        }
        Ok(shown)
    }

    fn these(fits: impl Fn(&Row<F>) -> bool) -> Self {
        const { assert!(F::TABLE.len() <= 128, "there are more fields than bits") };
        let bits = F::TABLE.iter().enumerate().filter(|(_, row)| fits(row)).map(|(at, _)| 1 << at);
        Shown { rows: bits.fold(0, |all, bit: u128| all | bit), of: PhantomData }
    }

    /// The rows to show.
    pub(crate) fn rows(self) -> impl Iterator<Item = &'static Row<F>> {
        let rows = F::TABLE.iter().enumerate();
        rows.filter(move |(at, _)| self.rows >> at & 1 == 1).map(|(_, row)| row)
    }
}

fn short(name: &str) -> String {
    name.chars().take(64).collect()
}
