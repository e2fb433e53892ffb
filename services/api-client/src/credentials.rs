//! The credentials of a caller.

use openstack::Session;
use secrecy::SecretString;

/// The credentials that a client sends with each request.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// No credentials, for a service without authentication.
    Anonymous,
    /// A user name and password that the service knows.
    Password(String, SecretString),
    /// A token of Keystone, which somebody else renews.
    Token(SecretString),
    /// A session with Keystone, which renews its token.
    Keystone(Session),
}
