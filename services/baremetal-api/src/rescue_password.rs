//! The hash of a rescue password, as `/etc/shadow` of the rescue system contains it.

use openstack_api::ApiError;
use sha_crypt::password_hash::PasswordHasher;
use sha_crypt::{PasswordHash, ShaCrypt};

const FIELD: &str = "rescue_password";

/// The hash takes time in proportion to the square of the length.
const MOST_BYTES: usize = 255;

/// `crypt(3)` reads 16 characters of the salt, which encode 12 bytes, and writes back no more. `login` compares the whole text, so a longer
/// salt would match no password.
const SALT_BYTES: usize = 12;

/// Returns the SHA-512 hash of the password with a random salt.
///
/// # Errors
///
/// Fails if the password is empty, is too long, or contains NUL, which ends it for `crypt(3)`.
pub(crate) fn hash(password: &str) -> Result<String, ApiError> {
    if password.trim().is_empty() {
        return Err(ApiError::bad_field(FIELD, "is required"));
    }
    if password.len() > MOST_BYTES || password.contains('\0') {
        let problem = format!("must have up to {MOST_BYTES} bytes and no NUL");
        return Err(ApiError::bad_field(FIELD, problem));
    }
    let salt: [u8; SALT_BYTES] = rand::random();
    let hashed: Result<PasswordHash, _> =
        ShaCrypt::SHA512.hash_password_with_salt(password.as_bytes(), &salt);
    let hashed = hashed.map_err(|_| ApiError::bad_field(FIELD, "cannot be hashed"))?;
    Ok(hashed.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use sha_crypt::password_hash::PasswordVerifier;

    use super::*;

    #[test]
    fn a_hash_is_one_of_crypt_and_differs_each_time() {
        let (one, other) = (hash("s3cret").unwrap(), hash("s3cret").unwrap());
        assert_ne!(one, other);
        let parts: Vec<&str> = one.split('$').collect();
        assert_eq!(
            (parts[1], parts[2], parts[3].len(), parts[4].len()),
            ("6", "rounds=5000", 16, 86)
        );
        ShaCrypt::SHA512.verify_password(b"s3cret", one.as_str()).unwrap();
        assert!(ShaCrypt::SHA512.verify_password(b"secret", one.as_str()).is_err());
    }

    #[test]
    fn a_password_that_no_login_can_compare_is_refused() {
        for password in ["", " ", "a\0b", &"x".repeat(256)] {
            assert!(hash(password).is_err(), "{password:?}");
        }
        assert!(hash(&"x".repeat(255)).is_ok());
    }
}
