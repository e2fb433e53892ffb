//! The checksum of the image, over the bytes as the server sends them.
//!
//! The checksum limits the speed on a fast network. ring, which TLS needs anyway, is twice as fast as `sha2` on processors without SHA
//! instructions.

use agent_protocol::{ChecksumAlgorithm, ImageInfo};
use ring::digest::{Algorithm, Context, Digest, SHA256, SHA512};
use subtle::ConstantTimeEq;

use super::ImageError;
use super::chunks::Chunks;

/// The checksum that the image must have.
pub(super) struct Expected {
    algorithm: ChecksumAlgorithm,
    digest: Vec<u8>,
}

impl Expected {
    /// Reads the checksum from the image's description.
    pub(super) fn of(image: &ImageInfo) -> Result<Self, ImageError> {
        let useless = |reason: String| ImageError::Description {
            field: "os_hash_value",
            value: image.os_hash_value.chars().take(140).collect(),
            reason,
        };
        let digest = hex::decode(image.os_hash_value.trim())
            .map_err(|error| useless(format!("not hexadecimal: {error}")))?;
        let bytes = match image.os_hash_algo {
            ChecksumAlgorithm::Sha256 => 32,
            ChecksumAlgorithm::Sha512 => 64,
        };
        if digest.len() != bytes {
            return Err(useless(format!("{} has {bytes} bytes", name(image.os_hash_algo))));
        }
        Ok(Expected { algorithm: image.os_hash_algo, digest })
    }

    /// Computes the checksum of all chunks and compares it.
    pub(super) fn check(self, chunks: Chunks) -> Result<(), ImageError> {
        let found = match self.algorithm {
            ChecksumAlgorithm::Sha256 => sum(&SHA256, chunks),
            ChecksumAlgorithm::Sha512 => sum(&SHA512, chunks),
        };
        if bool::from(found.as_ref().ct_eq(&self.digest)) {
            return Ok(());
        }
        Err(ImageError::Checksum {
            algorithm: name(self.algorithm),
            expected: hex::encode(self.digest),
            found: hex::encode(found),
        })
    }
}

fn sum(algorithm: &'static Algorithm, mut chunks: Chunks) -> Digest {
    let mut sum = Context::new(algorithm);
    while let Some(chunk) = chunks.blocking_recv() {
        sum.update(&chunk);
    }
    sum.finish()
}

fn name(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Sha256 => "SHA-256",
        ChecksumAlgorithm::Sha512 => "SHA-512",
    }
}
