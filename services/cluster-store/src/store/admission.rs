//! The outcome of a transaction that may end with a refusal.

/// The outcome of a transaction that writes nothing when limits or a quorum refuse the request.
pub(super) enum Admission<T, R> {
    Granted(T),
    Refused(R),
}

impl<T, R> Admission<T, R> {
    /// Returns the refusal as an error.
    pub(super) fn granted<E: From<R>>(self) -> Result<T, E> {
        match self {
            Admission::Granted(written) => Ok(written),
            Admission::Refused(refused) => Err(refused.into()),
        }
    }
}
