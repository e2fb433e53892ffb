//! Cipher suites 3 and 17: keys, authentication codes and encryption (IPMI 2.0 §13.28 to §13.32).

use aes::Aes128;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

const AES_BLOCK: usize = 16;

/// A combination of algorithms that this BMC supports. Both combinations encrypt with AES-CBC-128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CipherSuite {
    /// RAKP-HMAC-SHA1 and HMAC-SHA1-96.
    Suite3,
    /// RAKP-HMAC-SHA256 and HMAC-SHA256-128.
    Suite17,
}

/// The keys that verify and encrypt the messages of a session.
#[derive(Clone)]
pub(crate) struct SessionKeys {
    suite: CipherSuite,
    /// K1, the integrity key.
    integrity: Vec<u8>,
    /// The first half of K2, the confidentiality key.
    encryption: [u8; 16],
}

impl CipherSuite {
    pub(crate) const ALL: [CipherSuite; 2] = [CipherSuite::Suite3, CipherSuite::Suite17];

    /// The id of the cipher suite in table 22-20.
    pub(crate) fn id(self) -> u8 {
        match self {
            CipherSuite::Suite3 => 3,
            CipherSuite::Suite17 => 17,
        }
    }

    /// The numbers of the authentication (table 13-17), integrity (13-18) and confidentiality (13-19) algorithms.
    pub(crate) fn algorithms(self) -> [u8; 3] {
        match self {
            CipherSuite::Suite3 => [1, 1, 1],
            CipherSuite::Suite17 => [3, 4, 1],
        }
    }

    /// The whole HMAC, of 20 or 32 bytes.
    pub(crate) fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        match self {
            CipherSuite::Suite3 => hmac_of::<Hmac<Sha1>>(key, parts),
            CipherSuite::Suite17 => hmac_of::<Hmac<Sha256>>(key, parts),
        }
    }

    /// The truncated HMAC of 96 or 128 bits, as in messages and in RAKP 4.
    pub(crate) fn short_hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut code = self.hmac(key, parts);
        code.truncate(self.code_length());
        code
    }

    pub(crate) fn code_length(self) -> usize {
        match self {
            CipherSuite::Suite3 => 12,
            CipherSuite::Suite17 => 16,
        }
    }
}

impl SessionKeys {
    /// §13.32: K1 and K2 are HMACs of constants under the session integrity key.
    pub(crate) fn derive(suite: CipherSuite, sik: &[u8]) -> SessionKeys {
        let k2 = suite.hmac(sik, &[&[0x02; 20]]);
        let mut encryption = [0; 16];
        encryption.copy_from_slice(&k2[..16]);
        SessionKeys { suite, integrity: suite.hmac(sik, &[&[0x01; 20]]), encryption }
    }

    pub(crate) fn code(&self, message: &[u8]) -> Vec<u8> {
        self.suite.short_hmac(&self.integrity, &[message])
    }

    pub(crate) fn code_length(&self) -> usize {
        self.suite.code_length()
    }

    /// §13.29: the initialization vector, then the data with the padding 1, 2, 3… and the length of the padding.
    pub(crate) fn encrypt(&self, data: &[u8]) -> Vec<u8> {
        let vector: [u8; AES_BLOCK] = rand::random();
        let pad = (AES_BLOCK - (data.len() + 1) % AES_BLOCK) % AES_BLOCK;
        let mut plain = data.to_vec();
        plain.extend((1..).take(pad));
        plain.push(pad as u8);

        let mut encryptor = cbc::Encryptor::<Aes128>::new(&self.encryption.into(), &vector.into());
        for block in plain.as_chunks_mut::<AES_BLOCK>().0 {
            encryptor.encrypt_block(block.into());
        }
        [vector.as_slice(), &plain].concat()
    }

    /// Decrypts a payload. `None` if the padding is wrong.
    pub(crate) fn decrypt(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let (vector, data) = payload.split_first_chunk::<AES_BLOCK>()?;
        let mut plain = data.to_vec();
        let (blocks, rest) = plain.as_chunks_mut::<AES_BLOCK>();
        if !rest.is_empty() || blocks.is_empty() {
            return None;
        }
        let mut decryptor = cbc::Decryptor::<Aes128>::new(&self.encryption.into(), vector.into());
        for block in blocks {
            decryptor.decrypt_block(block.into());
        }
        let pad = usize::from(plain.pop()?);
        let length = plain.len().checked_sub(pad).filter(|_| pad < AES_BLOCK)?;
        let padding_is_right =
            plain[length..].iter().zip(1..).all(|(byte, want): (&u8, u8)| *byte == want);
        plain.truncate(length);
        padding_is_right.then_some(plain)
    }
}

fn hmac_of<H: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = <H as KeyInit>::new_from_slice(key).expect("an HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmacs_are_those_of_rfc_2202_and_rfc_4231() {
        let (key, data) = (b"Jefe", b"what do ya want ".as_slice());
        let sha1 = CipherSuite::Suite3.hmac(key, &[data, b"for nothing?"]);
        assert_eq!(hex::encode(sha1), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        let sha256 = CipherSuite::Suite17.hmac(key, &[data, b"for nothing?"]);
        assert_eq!(
            hex::encode(sha256),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn data_of_every_length_survives_encryption() {
        let keys = SessionKeys::derive(CipherSuite::Suite17, &[7; 32]);
        for length in 0..50 {
            let data = vec![0xA5; length];
            let sealed = keys.encrypt(&data);
            assert_eq!(sealed.len() % AES_BLOCK, 0);
            assert_eq!(keys.decrypt(&sealed), Some(data));
        }
    }

    #[test]
    fn a_payload_of_broken_length_is_refused() {
        let keys = SessionKeys::derive(CipherSuite::Suite3, &[7; 20]);
        for length in [0, 1, 15, 16, 17, 31, 33] {
            assert_eq!(keys.decrypt(&vec![0; length]), None, "{length}");
        }
    }
}
