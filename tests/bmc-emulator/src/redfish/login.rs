//! Authentication: Basic, and sessions opened with a POST.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use crate::redfish::answer::Answer;
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};
use crate::redfish::resource::Resource;

impl RedfishFace {
    /// Accepts a request with a valid token or the right password.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let text =
            |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        // DSP0266 §13.3.2: a token takes precedence over Basic.
        if let Some(token) = text("x-auth-token") {
            let live = self.sessions().use_token(token, self.machine.faults().era());
            return if live { Ok(()) } else { Err(Problem::unauthorized()) };
        }
        let basic = text("authorization").and_then(decode_basic);
        match basic {
            Some((user, password)) if self.knows(&user, &password) => Ok(()),
            Some(_) | None => Err(Problem::unauthorized()),
        }
    }

    /// Answers a POST to `sessions`, the collection of sessions.
    pub(crate) fn open_session(
        &self,
        sessions: &Resource,
        form: &Map<String, Value>,
    ) -> Result<Answer, Problem> {
        let field = |name| {
            let missing = || Problem::property(Message::PROPERTY_MISSING, name);
            let value = form.get(name).ok_or_else(missing)?;
            value.as_str().ok_or_else(|| Problem::value(Message::PROPERTY_TYPE, name, value))
        };
        if !self.knows(field("UserName")?, field("Password")?) {
            return Err(Problem::of(Message::BAD_LOGIN));
        }
        let full = || Problem::of(Message::SESSION_LIMIT);
        if self.machine.faults().with(|faults| faults.sessions_full) {
            return Err(full());
        }
        let opened = {
            let mut slots = self.sessions();
            let opened = slots.open(self.machine.faults().era());
            match &opened {
                Ok(_) => self.machine.sessions().note_open(slots.ids().count()),
                Err(_) => self.machine.sessions().note_full(),
            }
            opened.map_err(|_| full())?
        };
        let path = format!("{}/{}", sessions.path.trim_end_matches('/'), opened.id);
        let session = Resource::find(&path, self).ok_or_else(full)?;
        Ok(Answer::json(StatusCode::CREATED, session.document(self).unwrap_or_default())
            .with("location", session.path)
            .with("x-auth-token", opened.token))
    }

    fn knows(&self, user: &str, password: &str) -> bool {
        let bmc = &self.machine.spec().bmc;
        let faults = self.machine.faults();
        let refused = faults.with(|faults| faults.refuse_credentials);
        let is_right = !refused && user == bmc.username && password == self.machine.password();
        !faults.locks_account(is_right) && is_right
    }
}

/// Decodes Basic credentials (RFC 7617 §2).
fn decode_basic(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_split_at_the_first_colon() {
        let decoded = decode_basic("basic YWRtaW46YTpi");
        assert_eq!(decoded, Some(("admin".to_owned(), "a:b".to_owned())));
        for bad in ["", "Basic", "Bearer YWRtaW46YQ==", "Basic %%%", "Basic YWRtaW4="] {
            assert_eq!(decode_basic(bad), None, "{bad}");
        }
    }
}
