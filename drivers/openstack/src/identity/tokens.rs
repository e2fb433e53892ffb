//! Validation of callers' tokens.

use secrecy::SecretString;

use super::SERVICE;
use crate::error::Result;
use crate::session::{Identity, Session, X_SUBJECT_TOKEN};

/// Returns user and scope of a token; `None` if the token is invalid or has expired.
///
/// Identity API v3, "Validate and show information for token". Needs a role that may validate tokens of other users.
pub async fn validate(session: &Session, token: &SecretString) -> Result<Option<Identity>> {
    let call = session.get(SERVICE, &["auth", "tokens"]).query("nocatalog", "1");
    call.secret_header(X_SUBJECT_TOKEN, token.clone()).find_under("token").await
}
