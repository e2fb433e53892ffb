//! Tokens of others.

use secrecy::SecretString;

use super::SERVICE;
use crate::error::CloudError;
use crate::session::{Identity, Session, X_SUBJECT_TOKEN};

/// Whose token this is, and where it is valid; `None` if it is not, or not any more.
///
/// Identity API v3, "Validate and show information for token". Needs a role that may validate tokens of others.
pub async fn validate(
    session: &Session,
    token: &SecretString,
) -> Result<Option<Identity>, CloudError> {
    let call = session.get(SERVICE, &["auth", "tokens"]).query("nocatalog", "1");
    call.secret_header(X_SUBJECT_TOKEN, token.clone()).find_under("token").await
}
