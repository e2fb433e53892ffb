//! The algorithms of cipher suites 3 and 17 (IPMI 2.0 §13.28 to §13.32).

use aes::Aes128;
use aes::cipher::{Array, BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::target::CipherSuite;

use super::Malformed;

const BLOCK: usize = 16;

/// The numbers that a cipher suite proposes (IPMI 2.0 tables 13-17 to 13-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Algorithms {
    pub(crate) authentication: u8,
    pub(crate) integrity: u8,
    pub(crate) confidentiality: u8,
}

impl CipherSuite {
    pub(crate) const fn algorithms(self) -> Algorithms {
        match self {
            CipherSuite::Three => {
                Algorithms { authentication: 1, integrity: 1, confidentiality: 1 }
            }
            CipherSuite::Seventeen => {
                Algorithms { authentication: 3, integrity: 4, confidentiality: 1 }
            }
        }
    }

    /// The length of the key exchange's authentication codes.
    pub(crate) const fn exchange_code_length(self) -> usize {
        match self {
            CipherSuite::Three => 20,
            CipherSuite::Seventeen => 32,
        }
    }

    /// The length of the truncated code in RAKP 4 and in each packet: SHA1-96 and SHA256-128.
    pub(crate) const fn packet_code_length(self) -> usize {
        match self {
            CipherSuite::Three => 12,
            CipherSuite::Seventeen => 16,
        }
    }

    /// Computes the keyed hash over the concatenation of `parts`.
    pub(crate) fn keyed_hash(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        match self {
            CipherSuite::Three => hash::<Hmac<Sha1>>(key, parts),
            CipherSuite::Seventeen => hash::<Hmac<Sha256>>(key, parts),
        }
    }
}

fn hash<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of every length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

/// Compares authentication codes in constant time.
pub(crate) fn same_code(ours: &[u8], theirs: &[u8]) -> bool {
    ours.ct_eq(theirs).into()
}

/// The keys that protect the packets of one session.
pub(crate) struct Keys {
    suite: CipherSuite,
    integrity: Vec<u8>,
    confidentiality: [u8; BLOCK],
}

impl Keys {
    /// Derives K1 and K2 from the session integrity key (IPMI 2.0 §13.32).
    pub(crate) fn derive(suite: CipherSuite, session_integrity_key: &[u8]) -> Self {
        // The constants have 20 bytes for every algorithm.
        let integrity = suite.keyed_hash(session_integrity_key, &[&[1; 20]]);
        let second = suite.keyed_hash(session_integrity_key, &[&[2; 20]]);
        let confidentiality =
            *second.first_chunk().expect("digests are longer than a key of AES-128");
        Keys { suite, integrity, confidentiality }
    }

    /// Computes the authentication code of a packet.
    pub(crate) fn code(&self, covered: &[u8]) -> Vec<u8> {
        let mut code = self.suite.keyed_hash(&self.integrity, &[covered]);
        code.truncate(self.suite.packet_code_length());
        code
    }

    /// Splits a packet into its authentication code and the bytes before it.
    pub(crate) fn split<'a>(&self, datagram: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        let before = datagram.len().checked_sub(self.suite.packet_code_length());
        before.map(|at| datagram.split_at(at)).ok_or(Malformed("it ends too soon"))
    }

    /// Encrypts a payload (IPMI 2.0 §13.29): the initialisation vector, then ciphertext.
    pub(crate) fn encrypt(&self, vector: [u8; BLOCK], payload: &[u8]) -> Vec<u8> {
        // Padded to whole blocks with 1, 2, 3, … and the number of these bytes.
        let padding = BLOCK - 1 - payload.len() % BLOCK;
        let mut bytes = Vec::with_capacity(BLOCK + payload.len() + padding + 1);
        bytes.extend_from_slice(&vector);
        bytes.extend_from_slice(payload);
        bytes.extend(1..=padding as u8);
        bytes.push(padding as u8);

        let mut cipher =
            cbc::Encryptor::<Aes128>::new(&self.confidentiality.into(), &vector.into());
        let (blocks, _none) = Array::slice_as_chunks_mut(&mut bytes[BLOCK..]);
        cipher.encrypt_blocks(blocks);
        bytes
    }

    /// Decrypts a payload that `encrypt` has encrypted.
    pub(crate) fn decrypt(&self, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let (vector, ciphertext) =
            bytes.split_first_chunk::<BLOCK>().ok_or(Malformed("it ends too soon"))?;
        let mut plain = ciphertext.to_vec();
        let mut cipher =
            cbc::Decryptor::<Aes128>::new(&self.confidentiality.into(), &(*vector).into());
        let (blocks, rest) = Array::slice_as_chunks_mut(&mut plain);
        if !rest.is_empty() {
            return Err(Malformed("it is not whole blocks of ciphertext"));
        }
        cipher.decrypt_blocks(blocks);

        let padding = usize::from(plain.pop().ok_or(Malformed("it ends too soon"))?);
        let length = plain.len().checked_sub(padding).filter(|_| padding < BLOCK);
        plain.truncate(length.ok_or(Malformed("its padding is wrong"))?);
        Ok(plain)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: [CipherSuite; 2] = [CipherSuite::Three, CipherSuite::Seventeen];

    /// RFC 2202 §3 and RFC 4231 §4.3, test case 2 of both.
    #[test]
    fn keyed_hashes_are_those_of_the_rfcs() {
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        let hashes = BOTH.map(|suite| hex::encode(suite.keyed_hash(b"Jefe", &parts)));
        assert_eq!(hashes[0], "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        assert_eq!(hashes[1], "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn padding_counts_up_and_fills_blocks() {
        let keys = Keys::derive(CipherSuite::Three, &[0; 20]);
        for (length, want) in [(0, 32), (15, 32), (16, 48), (31, 48)] {
            assert_eq!(keys.encrypt([9; 16], &vec![5; length]).len(), want, "{length}");
        }
    }

    #[test]
    fn only_whole_blocks_with_correct_padding_are_decrypted() {
        let keys = Keys::derive(CipherSuite::Three, &[0; 20]);
        assert!(keys.decrypt(&[0; 15]).is_err());
        assert!(keys.decrypt(&[0; 16]).is_err());
        assert!(keys.decrypt(&[0; 33]).is_err());
    }

    proptest! {
        #[test]
        fn an_encrypted_payload_is_decrypted_again(payload: Vec<u8>, vector: [u8; 16], key: [u8; 20]) {
            for suite in BOTH {
                let keys = Keys::derive(suite, &key);
                prop_assert_eq!(keys.decrypt(&keys.encrypt(vector, &payload)), Ok(payload.clone()));
            }
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            for suite in BOTH {
                let keys = Keys::derive(suite, &bytes);
                let _ = (keys.decrypt(&bytes), keys.split(&bytes));
            }
        }
    }
}
