//! The change of a record that has turns.

/// A change of a record, as a turn decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordChange<U> {
    /// Writes the record, with everything that belongs to the same transaction.
    Write(U),
    /// Deletes the record: nothing in the cloud belongs to it any more.
    Delete,
}
