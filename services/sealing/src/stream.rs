//! Sealed streams: data of any length, sealed and opened in chunks, so that neither side holds all of it in memory.
//!
//! A stream begins with a magic word and a random salt. Its key derives from the caller's secret, the salt and the place of the stream, so no
//! two streams share a key. Each chunk is sealed with AES-256-GCM under its number, and the last one also under a mark: a chunk that is
//! changed, moved or left out, and a stream that is cut off or continued, do not open (STREAM; Hoang, Reyhanitabar, Rogaway, Vizár, 2015).

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::SealError;

/// The first bytes of a stream.
const MAGIC: &[u8] = b"bedplate-stream-1\n";
const SALT: usize = 32;
const HEADER: usize = MAGIC.len() + SALT;
/// The length of a chunk before it is sealed. Only the last chunk is shorter.
const CHUNK: usize = 64 << 10;
/// The length of a sealed chunk: AES-GCM appends a tag of 16 bytes.
const SEALED_CHUNK: usize = CHUNK + 16;

/// Whether a chunk ends its stream.
#[derive(Clone, Copy)]
enum Place {
    Within,
    Last,
}

/// The key of one stream, and the number of the next chunk.
struct ChunkKey {
    key: LessSafeKey,
    next: u64,
}

impl ChunkKey {
    fn new(secret: &[u8], salt: &[u8], place: &str) -> Result<Self, SealError> {
        let text = [&b"bedplate: stream\n"[..], salt, place.as_bytes()].concat();
        let bytes = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), &text);
        let key = UnboundKey::new(&AES_256_GCM, bytes.as_ref());
        let key = LessSafeKey::new(key.map_err(|_| SealError::CannotOpen)?);
        Ok(ChunkKey { key, next: 0 })
    }

    fn nonce(&mut self, place: Place) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[3..11].copy_from_slice(&self.next.to_be_bytes());
        nonce[11] = match place {
            Place::Within => 0,
            Place::Last => 1,
        };
        self.next += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    fn seal(&mut self, place: Place, plain: &[u8], into: &mut Vec<u8>) -> Result<(), SealError> {
        let (nonce, mut chunk) = (self.nonce(place), plain.to_vec());
        let sealed = self.key.seal_in_place_append_tag(nonce, Aad::empty(), &mut chunk);
        sealed.map_err(|_| SealError::CannotOpen)?;
        into.append(&mut chunk);
        Ok(())
    }

    fn open(&mut self, place: Place, sealed: &[u8], into: &mut Vec<u8>) -> Result<(), SealError> {
        let (nonce, mut chunk) = (self.nonce(place), sealed.to_vec());
        let opened = self.key.open_in_place(nonce, Aad::empty(), &mut chunk);
        into.extend_from_slice(opened.map_err(|_| SealError::CannotOpen)?);
        Ok(())
    }
}

/// Seals a stream. `Debug` prints nothing of it.
pub struct StreamSealer {
    key: ChunkKey,
    /// The header, until it is handed out.
    header: Vec<u8>,
    /// At most one chunk, because the last chunk is sealed differently.
    held: Zeroizing<Vec<u8>>,
}

impl StreamSealer {
    /// Begins a stream that opens only with the same secret and for the same `place`.
    pub fn new(secret: &[u8], place: &str) -> Result<Self, SealError> {
        let mut salt = [0; SALT];
        SystemRandom::new().fill(&mut salt).map_err(|_| SealError::NoRandom)?;
        let key = ChunkKey::new(secret, &salt, place)?;
        Ok(StreamSealer { key, header: [MAGIC, &salt[..]].concat(), held: Zeroizing::default() })
    }

    /// Takes the next part, of any length. Returns the sealed bytes that are complete, which may be none.
    pub fn push(&mut self, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        self.held.extend_from_slice(plain);
        let mut sealed = std::mem::take(&mut self.header);
        let mut done = 0;
        while self.held.len() - done > CHUNK {
            self.key.seal(Place::Within, &self.held[done..done + CHUNK], &mut sealed)?;
            done += CHUNK;
        }
        self.held.drain(..done);
        Ok(sealed)
    }

    /// Ends the stream. Returns its last bytes.
    pub fn finish(mut self) -> Result<Vec<u8>, SealError> {
        let mut sealed = std::mem::take(&mut self.header);
        self.key.seal(Place::Last, &self.held, &mut sealed)?;
        Ok(sealed)
    }
}

/// Opens a stream. `Debug` prints nothing of it.
///
/// Bytes that were handed out are authentic, and are the whole stream only once [`StreamOpener::finish`] has succeeded.
pub struct StreamOpener {
    secret: Zeroizing<Vec<u8>>,
    place: String,
    /// `None` until the header is complete.
    key: Option<ChunkKey>,
    held: Vec<u8>,
}

impl StreamOpener {
    /// Begins to open the stream that was sealed with this secret for this place.
    pub fn new(secret: &[u8], place: &str) -> Self {
        let secret = Zeroizing::new(secret.to_vec());
        StreamOpener { secret, place: place.to_owned(), key: None, held: Vec::new() }
    }

    /// Takes the next part, of any length. Returns the opened bytes that are complete, which may be none.
    pub fn push(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.held.extend_from_slice(sealed);
        let mut done = 0;
        if self.key.is_none() {
            let Some(header) = self.held.get(..HEADER) else { return Ok(Vec::new()) };
            let salt = header.strip_prefix(MAGIC).ok_or(SealError::CannotOpen)?;
            self.key = Some(ChunkKey::new(&self.secret, salt, &self.place)?);
            done = HEADER;
        }
        let mut opened = Vec::new();
        if let Some(key) = &mut self.key {
            while self.held.len() - done > SEALED_CHUNK {
                key.open(Place::Within, &self.held[done..done + SEALED_CHUNK], &mut opened)?;
                done += SEALED_CHUNK;
            }
        }
        self.held.drain(..done);
        Ok(opened)
    }

    /// Ends the stream. Returns its last bytes.
    ///
    /// # Errors
    ///
    /// `CannotOpen` if the stream was cut off.
    pub fn finish(mut self) -> Result<Vec<u8>, SealError> {
        let mut opened = Vec::new();
        let key = self.key.as_mut().ok_or(SealError::CannotOpen)?;
        key.open(Place::Last, &self.held, &mut opened)?;
        Ok(opened)
    }
}

impl fmt::Debug for StreamSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamSealer(…)")
    }
}

impl fmt::Debug for StreamOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamOpener(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"a secret of some length";
    const AT: &str = "cluster/backup";

    /// Seals `plain`, which is handed over in parts of this length.
    fn seal(plain: &[u8], part: usize) -> Vec<u8> {
        let mut sealer = StreamSealer::new(SECRET, AT).unwrap();
        let mut sealed = Vec::new();
        for part in plain.chunks(part) {
            sealed.extend(sealer.push(part).unwrap());
        }
        sealed.extend(sealer.finish().unwrap());
        sealed
    }

    fn open_with(secret: &[u8], place: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut opener = StreamOpener::new(secret, place);
        let mut opened = Vec::new();
        for part in sealed.chunks(7000) {
            opened.extend(opener.push(part)?);
        }
        opened.extend(opener.finish()?);
        Ok(opened)
    }

    fn open(sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        open_with(SECRET, AT, sealed)
    }

    fn plain(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn a_stream_of_any_length_opens_to_what_was_sealed() {
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5] {
            for part in [1000, CHUNK, 5 * CHUNK] {
                let sealed = seal(&plain(length), part);
                assert_eq!(open(&sealed).unwrap(), plain(length), "{length} in parts of {part}");
                let chunks = length.div_ceil(CHUNK).max(1);
                assert_eq!(sealed.len(), HEADER + length + chunks * 16, "{length}");
            }
        }
    }

    #[test]
    fn two_streams_of_the_same_data_have_nothing_in_common() {
        let (one, other) = (seal(&plain(CHUNK), 1000), seal(&plain(CHUNK), 1000));
        assert_ne!(one[MAGIC.len()..HEADER], other[MAGIC.len()..HEADER]);
        assert_ne!(one[HEADER..HEADER + 64], other[HEADER..HEADER + 64]);
    }

    #[test]
    fn a_stream_opens_only_whole_and_unchanged() {
        let sealed = seal(&plain(3 * CHUNK + 5), CHUNK);
        let [first, second] = [HEADER, HEADER + SEALED_CHUNK];
        let cut = |length: usize| sealed[..length].to_vec();
        let mut changed = sealed.clone();
        changed[second + 9] ^= 1;
        let mut swapped = sealed.clone();
        swapped[first..second].copy_from_slice(&sealed[second..second + SEALED_CHUNK]);
        swapped[second..second + SEALED_CHUNK].copy_from_slice(&sealed[first..second]);
        let mut salted = sealed.clone();
        salted[MAGIC.len()] ^= 1;
        let rows = [
            ("nothing", Vec::new()),
            ("a part of the header", cut(HEADER - 1)),
            ("the header", cut(HEADER)),
            ("whole chunks, and not the last", cut(first + 2 * SEALED_CHUNK)),
            ("a part of the last chunk", cut(sealed.len() - 1)),
            ("a byte more", [&sealed[..], b"x"].concat()),
            ("a changed byte", changed),
            ("two chunks swapped", swapped),
            ("another salt", salted),
            ("another format", [&b"x"[..], &sealed[1..]].concat()),
        ];
        for (what, sealed) in rows {
            assert!(matches!(open(&sealed), Err(SealError::CannotOpen)), "{what}");
        }
    }

    #[test]
    fn a_stream_opens_only_with_its_secret_and_for_its_place() {
        let sealed = seal(&plain(9), 9);
        assert!(open_with(b"another secret", AT, &sealed).is_err());
        assert!(open_with(SECRET, "cluster/another", &sealed).is_err());
        assert!(open(&sealed).is_ok());
    }
}
