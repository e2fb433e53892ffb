//! Makes the bootstrap tokens with which workers join a cluster.

use cluster_bootstrap::BootstrapToken;
use rand::seq::IndexedRandom;

/// Makes a new token of 22 random letters and digits. 16 of them are secret (82 bits); the first six are the public id.
pub fn new_bootstrap_token() -> BootstrapToken {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = rand::rng();
    let mut text: String =
        (0..22).filter_map(|_| LETTERS.choose(&mut random)).map(|it| char::from(*it)).collect();
    text.insert(6, '.');
    BootstrapToken::try_from(text.as_str()).expect("it has the form of a token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_the_same() {
        assert_ne!(new_bootstrap_token().expose(), new_bootstrap_token().expose());
    }
}
