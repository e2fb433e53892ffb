//! Seals and opens the bytes of a snapshot as they pass.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::{StreamExt, stream};
use ring::digest::{Context, SHA256};
use sealing::{StreamOpener, StreamSealer};

use crate::backup_store::{BoxError, ObjectBytes};

/// The size and the checksum of the bytes that have passed.
pub(super) struct Tally {
    size: u64,
    most: u64,
    digest: Context,
}

impl Tally {
    /// Counts at most `most` bytes.
    pub(super) fn new(most: u64) -> Self {
        Tally { size: 0, most, digest: Context::new(&SHA256) }
    }

    fn note(&mut self, part: &[u8]) -> Result<(), BoxError> {
        self.size += part.len() as u64;
        if self.size > self.most {
            return Err(format!("the snapshot is larger than {} bytes", self.most).into());
        }
        self.digest.update(part);
        Ok(())
    }

    /// Returns the size and the SHA-256 in hexadecimal.
    pub(super) fn result(&self) -> (u64, String) {
        (self.size, hex::encode(self.digest.clone().finish()))
    }
}

/// Seals the bytes, and counts them in `tally`.
pub(super) fn sealed(
    bytes: ObjectBytes,
    sealer: StreamSealer,
    tally: Arc<Mutex<Tally>>,
) -> ObjectBytes {
    let begin = (bytes, Some(sealer), tally);
    let sealed = stream::try_unfold(begin, |(mut bytes, mut sealer, tally)| async move {
        while let Some(open) = &mut sealer {
            let sealed = match bytes.next().await {
                Some(part) => {
                    let part = part?;
                    tally.lock().unwrap_or_else(PoisonError::into_inner).note(&part)?;
                    open.push(&part)?
                }
                None => match sealer.take() {
                    Some(open) => open.finish()?,
                    None => return Ok(None),
                },
            };
            if !sealed.is_empty() {
                return Ok(Some((Bytes::from(sealed), (bytes, sealer, tally))));
            }
        }
        Ok::<_, BoxError>(None)
    });
    sealed.boxed()
}

/// Opens the bytes. A stream that was changed or cut off ends with an error.
pub(super) fn opened(bytes: ObjectBytes, opener: StreamOpener) -> ObjectBytes {
    let begin = (bytes, Some(opener));
    let opened = stream::try_unfold(begin, |(mut bytes, mut opener)| async move {
        while let Some(open) = &mut opener {
            let plain = match bytes.next().await {
                Some(part) => open.push(&part?)?,
                None => match opener.take() {
                    Some(open) => open.finish()?,
                    None => return Ok(None),
                },
            };
            if !plain.is_empty() {
                return Ok(Some((Bytes::from(plain), (bytes, opener))));
            }
        }
        Ok::<_, BoxError>(None)
    });
    opened.boxed()
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    fn parts(all: &[&'static str]) -> ObjectBytes {
        let part = |text: &&'static str| Ok(Bytes::from_static(text.as_bytes()));
        stream::iter(all.iter().map(part).collect::<Vec<_>>()).boxed()
    }

    async fn pass(bytes: ObjectBytes, most: u64) -> Result<(Vec<u8>, u64, String), String> {
        let tally = Arc::new(Mutex::new(Tally::new(most)));
        let sealer = StreamSealer::new(b"secret", "here").unwrap();
        let sealed: Vec<Bytes> = sealed(bytes, sealer, tally.clone())
            .try_collect()
            .await
            .map_err(|error| error.to_string())?;
        let (size, sum) = tally.lock().unwrap().result();
        Ok((sealed.concat(), size, sum))
    }

    async fn open(sealed: Vec<u8>) -> Result<Vec<u8>, String> {
        let bytes = stream::once(async move { Ok(Bytes::from(sealed)) }).boxed();
        let plain: Result<Vec<Bytes>, BoxError> =
            opened(bytes, StreamOpener::new(b"secret", "here")).try_collect().await;
        plain.map(|parts| parts.concat()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn bytes_are_sealed_counted_and_opened_as_they_pass() {
        let (sealed, size, sum) = pass(parts(&["hel", "", "lo"]), 5).await.unwrap();
        assert_eq!(size, 5);
        assert_eq!(sum, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        assert_eq!(open(sealed.clone()).await.unwrap(), b"hello");
        let cut = sealed[..sealed.len() - 1].to_vec();
        assert!(open(cut).await.unwrap_err().contains("cannot be opened"));
    }

    #[tokio::test]
    async fn too_many_bytes_and_a_broken_stream_end_with_an_error() {
        let error = pass(parts(&["hello", "!"]), 5).await.unwrap_err();
        assert_eq!(error, "the snapshot is larger than 5 bytes");
        let broken = stream::iter([Ok(Bytes::from_static(b"h")), Err(BoxError::from("gone"))]);
        assert_eq!(pass(broken.boxed(), 5).await.unwrap_err(), "gone");
    }
}
