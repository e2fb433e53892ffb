//! The progress of an operation that takes time.

/// The progress of an operation that takes time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// In progress: call again after a second or more.
    Pending,
    Done(T),
}
