//! The bootstrap token with which a worker joins.

use secrecy::{ExposeSecret, SecretString};

/// A bootstrap token: a public id of six characters, a dot, and a secret of sixteen characters. `Debug` prints nothing of the token.
#[derive(Clone, Debug)]
pub struct BootstrapToken(SecretString);

/// Why a text is not a valid bootstrap token. The message does not repeat the text, because the text may be a token with a typing error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid bootstrap token: use 6 of a-z and 0-9, a dot, and 16 of a-z and 0-9")]
pub struct InvalidToken;

impl BootstrapToken {
    /// Returns the whole token, secret included.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl TryFrom<&str> for BootstrapToken {
    type Error = InvalidToken;

    // kubernetes/cluster-bootstrap, token/api/types.go: BootstrapTokenPattern
    fn try_from(raw: &str) -> Result<Self, InvalidToken> {
        let legal = |part: &str| part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        match raw.split_once('.') {
            Some((id, secret))
                if id.len() == 6 && secret.len() == 16 && legal(id) && legal(secret) =>
            {
                Ok(BootstrapToken(raw.to_owned().into()))
            }
            Some(_) | None => Err(InvalidToken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_printed() {
        let token = BootstrapToken::try_from("abcdef.0123456789abcdef").unwrap();
        assert!(!format!("{token:?}").contains("0123456789"));
        assert_eq!(token.expose(), "abcdef.0123456789abcdef");
        for bad in [
            "",
            "abcdef0123456789abcdef",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789ABCDEF",
            "abcde.0123456789abcdef",
            "abcdef.0123456789abcdef0",
            "abcdef.0123456789abcde",
            "ab.cdef.0123456789abcde",
        ] {
            assert!(BootstrapToken::try_from(bad).is_err(), "{bad}");
        }
    }
}
