//! Limits the size of the documents that callers store.

use std::io;
use std::num::NonZeroUsize;

use serde::Serialize;

use crate::{Result, StoreError};

/// The largest JSON document that a caller may store, in bytes. The default has no limit; a service uses it for the documents it writes
/// itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeLimit(Option<NonZeroUsize>);

/// The caller-written fields of one document, each with its size in bytes of JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSizes(Vec<(&'static str, usize)>);

impl FieldSizes {
    /// Adds the size of `value` under the name of `field`.
    pub fn and(mut self, field: &'static str, value: &impl Serialize) -> Self {
        self.0.push((field, bytes_of(value)));
        self
    }

    fn total(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }

    fn largest(&self) -> &'static str {
        self.0.iter().max_by_key(|(_, bytes)| bytes).map_or("body", |(field, _)| field)
    }
}

impl SizeLimit {
    /// Limits a document to `bytes`.
    pub fn of(bytes: NonZeroUsize) -> Self {
        SizeLimit(Some(bytes))
    }

    /// Multiplies the limit by `documents`, for a document that contains several others.
    pub fn times(self, documents: usize) -> Self {
        let times = NonZeroUsize::new(documents).unwrap_or(NonZeroUsize::MIN);
        SizeLimit(self.0.map(|bytes| bytes.saturating_mul(times)))
    }

    /// Refuses a document that is too large. A document stored before the limit existed may still be written as long as it does not grow;
    /// `stored` reads its present size, and is only called for a document that is too large.
    ///
    /// # Errors
    ///
    /// `TooLarge`, which names the largest field.
    pub async fn admit(
        self,
        sizes: impl FnOnce() -> FieldSizes,
        stored: impl AsyncFnOnce() -> Result<Option<FieldSizes>>,
    ) -> Result<()> {
        let Some(most) = self.0 else { return Ok(()) };
        let sizes = sizes();
        let bytes = sizes.total();
        if bytes <= most.get() {
            return Ok(());
        }
        if stored().await?.is_some_and(|before| bytes <= before.total()) {
            return Ok(());
        }
        Err(StoreError::TooLarge { field: sizes.largest(), bytes, most: most.get() })
    }
}

/// The size of `value` as JSON, in bytes.
fn bytes_of(value: &impl Serialize) -> usize {
    struct Counted(usize);
    impl io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    match serde_json::to_writer(&mut counted, value) {
        Ok(()) => counted.0,
        // A value that cannot be serialized cannot be stored either, so the value counts as too large.
        Err(_) => usize::MAX / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(extra: usize, name: &str) -> FieldSizes {
        FieldSizes::default().and("extra", &"x".repeat(extra)).and("name", &name)
    }

    async fn check(
        most: usize,
        new: FieldSizes,
        stored: Option<FieldSizes>,
        want: Result<(), &str>,
    ) {
        let bound = SizeLimit::of(most.try_into().unwrap());
        let got = bound.admit(|| new, async || Ok(stored)).await;
        assert_eq!(got.map_err(|why| why.to_string()), want.map_err(str::to_owned));
    }

    #[tokio::test]
    async fn all_fields_count_and_the_largest_is_named() {
        check(20, sizes(10, "name"), None, Ok(())).await;
        let why = "extra: the document would have 21 bytes; the limit is 20 (api.limits.document)";
        check(20, sizes(13, "name"), None, Err(why)).await;
        let why = "name: the document would have 21 bytes; the limit is 20 (api.limits.document)";
        check(20, sizes(3, "long-name-here"), None, Err(why)).await;
    }

    #[tokio::test]
    async fn a_stored_document_over_the_limit_may_shrink_but_not_grow() {
        let stored = || Some(sizes(30, "name"));
        check(20, sizes(29, "name"), stored(), Ok(())).await;
        check(20, sizes(30, "name"), stored(), Ok(())).await;
        let why = "extra: the document would have 39 bytes; the limit is 20 (api.limits.document)";
        check(20, sizes(31, "name"), stored(), Err(why)).await;
    }

    #[tokio::test]
    async fn without_a_limit_the_stored_document_is_not_read() {
        let read = async || Err(StoreError::Closing);
        SizeLimit::default().admit(|| sizes(1 << 20, "n"), read).await.unwrap();
    }
}
