//! Reads the form of a request: the whole form, limited in size, and only a form that this console gave to this browser.

use std::collections::HashMap;

use axum::extract::{FromRequest, Request};
use http::header::CONTENT_TYPE;

use crate::guard;
use crate::page_request::{AuthorizedUser, PageRequest};
use crate::problem::{Problem, Result};
use crate::state::Console;

/// The maximum size of a form in bytes: a manifest of a thousand machines fits.
const LARGEST: usize = 1 << 20;

/// The fields of a form. Empty fields are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(HashMap<String, String>);

/// A form from a user who may call the services.
pub(crate) struct UserForm {
    pub(crate) person: AuthorizedUser,
    pub(crate) fields: Fields,
}

impl Fields {
    /// Returns the text of a field; `None` if the field is empty.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the text of a required field.
    pub(crate) fn get(&self, name: &str) -> Result<&str> {
        self.find(name).ok_or_else(|| Problem::Unreadable(format!("{name}: required")))
    }

    /// Returns the whole number in a field; `None` if the field is empty.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>> {
        let number = self.find(name).map(|text| text.trim().parse::<i64>());
        number
            .transpose()
            .map_err(|_| Problem::Unreadable(format!("{name}: must be a whole number")))
    }

    pub(crate) fn is_ticked(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The hosts or clusters in the field `force`, separated by commas or spaces.
    pub(crate) fn forced(&self) -> Vec<&str> {
        let named = self.find("force").unwrap_or_default().split([',', ' ']);
        named.map(str::trim).filter(|name| !name.is_empty()).collect()
    }

    /// All fields for showing the form again, without passwords and the token.
    pub(crate) fn shown(&self) -> HashMap<&str, &str> {
        let is_secret = |name: &str| name.contains("password") || name == "token";
        self.0
            .iter()
            .filter(|(name, _)| !is_secret(name))
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect()
    }

    fn put(&mut self, name: String, value: String) {
        if !value.trim().is_empty() {
            self.0.insert(name, value);
        }
    }
}

impl FromRequest<Console> for UserForm {
    type Rejection = Problem;

    async fn from_request(request: Request, console: &Console) -> Result<Self> {
        use axum::extract::FromRequestParts;
        let (mut parts, body) = request.into_parts();
        let person = AuthorizedUser::from_request_parts(&mut parts, console).await?;
        let request = Request::from_parts(parts, body);
        let fields = Fields::from_request(request, console).await?;
        Ok(UserForm { person, fields })
    }
}

impl FromRequest<Console> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, console: &Console) -> Result<Self> {
        let page_request = PageRequest::of(&request)?;
        if !guard::is_own(request.headers()) {
            return Err(Problem::Forged);
        }
        let kind = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let body = axum::body::to_bytes(request.into_body(), LARGEST).await;
        let body = body.map_err(|_| {
            Problem::Unreadable(
                "the form is larger than 1 MiB, or the upload was interrupted".to_owned(),
            )
        })?;
        let mut fields = Fields::default();
        if let Ok(boundary) = multer::parse_boundary(&kind) {
            read_parts(body, &boundary, &mut fields).await?;
        } else {
            for (name, value) in url::form_urlencoded::parse(&body) {
                fields.put(name.into_owned(), value.into_owned());
            }
        }
        let token = fields.find("token").unwrap_or_default();
        if !console.guard().is_token(&page_request.cookie, token) {
            return Err(Problem::Forged);
        }
        Ok(fields)
    }
}

/// RFC 7578: reads a form with files (`multipart/form-data`). The content of a file becomes the text of its field, and the file's name the
/// text of the field `NAME.file`.
async fn read_parts(body: axum::body::Bytes, boundary: &str, fields: &mut Fields) -> Result<()> {
    let wrong = |why: multer::Error| Problem::Unreadable(format!("cannot parse the form: {why}"));
    let whole = futures::stream::once(async { Ok::<_, std::convert::Infallible>(body) });
    let mut parts = multer::Multipart::new(whole, boundary);
    while let Some(part) = parts.next_field().await.map_err(wrong)? {
        let Some(name) = part.name().map(str::to_owned) else { continue };
        let file = part.file_name().map(str::to_owned);
        let bytes = part.bytes().await.map_err(wrong)?;
        let text = String::from_utf8(bytes.into());
        let text = text.map_err(|_| Problem::Unreadable(format!("{name}: must be UTF-8 text")))?;
        if let Some(file) = file {
            fields.put(format!("{name}.file"), file);
        }
        fields.put(name, text);
    }
    Ok(())
}
