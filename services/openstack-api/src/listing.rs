//! Streams lists to the client in parts, so that at most one part of a list is in memory while the client does not read.

use std::fmt::Display;
use std::pin::Pin;

use axum::body::Body;
use axum::extract::{FromRequestParts, OriginalUri};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::unfold;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use tracing::warn;

use crate::json::json_text;
use crate::{ApiError, Microversion, Origin, Query, WriteJson};

/// How many bytes of documents make a part.
pub(crate) const PART: usize = 128 << 10;
/// The most elements in the first part of a list.
const FIRST_ELEMENTS: u32 = 16;
/// The most elements in a later part.
const MOST_ELEMENTS: u32 = 128;

/// The room in the text of a part for the beginning or the end of the list.
const SPARE: usize = 512;

/// A request for a list, before its query is parsed.
#[derive(Clone, Debug)]
pub struct ListRequest {
    pub asked: Microversion,
    /// The origin under which the client reached the API.
    pub origin: Origin,
    /// The path of the list, for the link to the next page.
    pub path: String,
    pub query: Query,
}

impl<S: Send + Sync> FromRequestParts<S> for ListRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let asked = Microversion::from_request_parts(parts, state).await?;
        let origin = Origin::from_request_parts(parts, state).await?;
        let Ok(OriginalUri(uri)) = OriginalUri::from_request_parts(parts, state).await;
        let query = Query::from_request_parts(parts, state).await?;
        Ok(ListRequest { asked, origin, path: uri.path().to_owned(), query })
    }
}

impl ListRequest {
    /// The parts of the request that a page and its link to the next page need.
    pub fn of<'a, A>(&'a self, app: &'a A) -> (&'a A, &'a Origin, &'a str, &'a Query) {
        (app, &self.origin, &self.path, &self.query)
    }
}

/// A page of a list.
pub struct Listing {
    /// The name of the list in the answer.
    pub name: &'static str,
    /// The most elements of the page.
    pub limit: u32,
    /// The page ends early after this many bytes, with a link to the next page.
    pub bytes: usize,
    /// Returns the link to the page after the element with this id; `None` for a list that has no pages.
    pub next: Option<NextLink>,
}

/// Returns the link to the page after the element with this id.
pub type NextLink = Box<dyn Fn(&str) -> String + Send>;

impl Listing {
    /// A list without pages: it ends with its last element.
    pub fn whole(name: &'static str) -> Listing {
        Listing { name, limit: u32::MAX, bytes: usize::MAX, next: None }
    }
}

/// A request for a part of a page.
pub struct PartRequest<P> {
    /// Where the previous part ended; `None` for the first part.
    pub after: Option<P>,
    /// The most elements of the part.
    pub elements: u32,
    /// The part ends before its documents exceed this many bytes, but has at least one element.
    pub bytes: usize,
}

/// A part of a page, as JSON text.
pub struct ListPart<P> {
    text: Vec<u8>,
    elements: u32,
    last: Option<String>,
    more: Option<P>,
}

/// A part that is being read from the store.
pub type PartFuture<P, E> = Pin<Box<dyn Future<Output = Result<ListPart<P>, E>> + Send>>;

impl<P> ListPart<P> {
    /// Serializes the elements `found`, each as `view` returns it. `more` is the position at which the next part begins.
    ///
    /// # Errors
    ///
    /// An element cannot be serialized.
    pub fn of<'a, T: 'a, V: WriteJson, I: Display>(
        found: &'a [T],
        id: impl Fn(&T) -> I,
        view: impl Fn(&'a T) -> V,
        more: Option<P>,
    ) -> Result<Self, ApiError> {
        let read = found.last().map(|last| (found.len(), id(last)));
        ListPart::chosen(found.iter().map(view), read, more)
    }

    /// Serializes the elements `shown`. They were chosen from the elements that were read: so many, and the last of them has this id. The
    /// page counts the elements that were read.
    ///
    /// # Errors
    ///
    /// An element cannot be serialized.
    pub fn chosen<V: WriteJson, I: Display>(
        shown: impl IntoIterator<Item = V>,
        read: Option<(usize, I)>,
        more: Option<P>,
    ) -> Result<Self, ApiError> {
        let shown = shown.into_iter();
        let (least, most) = shown.size_hint();
        let count = most.unwrap_or(least);
        let mut text = Vec::new();
        for one in shown {
            let is_first = text.is_empty();
            if !is_first {
                text.push(b',');
            }
            one.write_json(&mut text)
                .map_err(|why| ApiError::broken(format!("cannot serialize the list: {why}")))?;
            if is_first {
                // Most elements are about as long. A buffer that grows step by step is copied at each step.
                text.reserve(text.len().saturating_mul(count).saturating_add(SPARE).min(PART * 8));
            }
        }
        let elements = read.as_ref().map_or(0, |(count, _)| *count);
        let elements = u32::try_from(elements).unwrap_or(u32::MAX);
        let last = read.map(|(_, last)| last.to_string());
        Ok(ListPart { text, elements, last, more })
    }
}

/// The state of a list that is being written.
struct ListWriter<P, F> {
    page: Listing,
    read: F,
    from: Option<P>,
    at_once: u32,
    written: usize,
    is_begun: bool,
}

/// Answers with a page whose parts are read by `read`. The first part is read before the status is sent, so that a wrong request is
/// answered with its error status.
///
/// # Errors
///
/// Returns an error of `read` for the first part. An error in a later part aborts the answer.
pub async fn list<P, E, F>(page: Listing, read: F) -> Result<Response, E>
where
    P: Send + 'static,
    E: Display + Send + 'static,
    F: FnMut(PartRequest<P>) -> PartFuture<P, E> + Send + 'static,
{
    let at_once = FIRST_ELEMENTS;
    let mut rest = ListWriter { page, read, from: None, at_once, written: 0, is_begun: false };
    let (first, rest) = match rest.next().await? {
        (first, true) => return Ok(json_text(StatusCode::OK, first)),
        (first, false) => (first, rest),
    };
    let begun = (Some(first), Some(rest));
    let parts = unfold(begun, async |(first, rest)| {
        if let Some(first) = first {
            return Some((Ok(first), (None, rest)));
        }
        let mut rest = rest?;
        match rest.next().await {
            Ok((text, is_last)) => Some((Ok(text), (None, Some(rest).filter(|_| !is_last)))),
            Err(why) => {
                warn!("a list was aborted: {why}");
                Some((Err(std::io::Error::other("the list was aborted")), (None, None)))
            }
        }
    });
    let mut answer = Response::new(Body::from_stream(parts));
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    Ok(answer)
}

impl<P, E, F> ListWriter<P, F>
where
    F: FnMut(PartRequest<P>) -> PartFuture<P, E>,
{
    /// Returns the next part of the text, and whether it is the last.
    async fn next(&mut self) -> Result<(Bytes, bool), E> {
        let asked = self.at_once.min(self.page.limit);
        let bytes = self.page.bytes.saturating_sub(self.written).min(PART);
        let part = PartRequest { after: self.from.take(), elements: asked, bytes };
        let ListPart { text: mut out, elements, last, more } = (self.read)(part).await?;
        self.page.limit = self.page.limit.saturating_sub(elements);
        let is_first = self.written == 0;
        self.written += out.len();
        // The next part asks for fewer elements if large elements filled this one early.
        self.at_once = match elements < asked {
            true => elements.max(1),
            false => asked.saturating_mul(2).min(MOST_ELEMENTS),
        };

        let begin =
            if self.is_begun { String::new() } else { format!("{{\"{}\":[", self.page.name) };
        self.is_begun = true;
        let comma = if is_first || out.is_empty() { "" } else { "," };
        out.splice(..0, begin.bytes().chain(comma.bytes()));
        let is_full = self.page.limit == 0 || self.written >= self.page.bytes;
        let last = last.filter(|_| is_full && more.is_some());
        let next = last.zip(self.page.next.as_ref()).map(|(last, next)| next(&last));
        let is_last = is_full || more.is_none();
        if is_last {
            out.push(b']');
            if let Some(next) = next {
                let next = serde_json::Value::from(next);
                out.extend_from_slice(format!(",\"next\":{next}").as_bytes());
            }
            out.push(b'}');
        }
        self.from = more;
        Ok((out.into(), is_last))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{HttpBody, to_bytes};
    use serde_json::json;

    use super::*;

    /// Streams a list of elements of these sizes, a few elements per part; returns the list, and whether it was sent in one piece.
    async fn listed(
        sizes: &'static [usize],
        limit: u32,
        bytes: usize,
    ) -> Result<(serde_json::Value, bool), &'static str> {
        let next: NextLink = Box::new(|last| format!("after {last}"));
        let page = Listing { name: "things", limit, bytes, next: Some(next) };
        let read = move |part: PartRequest<usize>| -> PartFuture<usize, &'static str> {
            let (from, limit) = (part.after.unwrap_or_default(), part.elements);
            let all: Vec<(usize, usize)> = sizes.iter().copied().enumerate().collect();
            let asked = all.get(from..).unwrap_or_default().iter().take(limit.min(3) as usize);
            let found: Vec<_> = asked.copied().collect();
            let until = from + found.len();
            let is_full = found.len() == limit.min(3) as usize;
            let more = Some(until).filter(|_| is_full);
            Box::pin(async move {
                if found.iter().any(|(_, size)| *size == 0) {
                    return Err("it is spoiled");
                }
                let id = |(number, _): &(usize, usize)| *number;
                let view = |(number, size): &(usize, usize)| json!([number, "x".repeat(*size)]);
                ListPart::of(&found, id, view, more).map_err(|_| "it is no JSON")
            })
        };
        let answer = list(page, read).await?;
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
        let at_once = answer.body().size_hint().exact().is_some();
        let text = to_bytes(answer.into_body(), usize::MAX).await.map_err(|_| "it broke off")?;
        Ok((serde_json::from_slice(&text).unwrap(), at_once))
    }

    async fn check(
        sizes: &'static [usize],
        (limit, bytes): (u32, usize),
        want: (usize, Option<&str>),
    ) {
        let (list, _) = listed(sizes, limit, bytes).await.unwrap();
        let numbers: Vec<_> =
            list["things"].as_array().unwrap().iter().map(|it| it[0].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..want.0 as u64).collect::<Vec<_>>());
        assert_eq!(list.get("next").and_then(|next| next.as_str()), want.1);
    }

    #[tokio::test]
    async fn all_parts_form_one_list() {
        check(&[], (10, 1000), (0, None)).await;
        check(&[1, 1], (10, 1000), (2, None)).await;
        check(&[1; 3], (10, 1000), (3, None)).await;
        check(&[1; 8], (10, 1000), (8, None)).await;
    }

    #[tokio::test]
    async fn a_page_ends_at_its_limit_and_at_its_bytes() {
        check(&[1; 8], (5, 1000), (5, Some("after 4"))).await;
        check(&[100; 8], (10, 350), (6, Some("after 5"))).await;
        check(&[100; 2], (10, 50), (2, None)).await;
    }

    #[tokio::test]
    async fn a_short_list_has_a_length_and_a_failing_one_is_aborted() {
        assert!(listed(&[1, 1], 10, 1000).await.unwrap().1);
        assert!(!listed(&[1; 8], 10, 1000).await.unwrap().1);
        assert_eq!(listed(&[1, 0], 10, 1000).await.unwrap_err(), "it is spoiled");
        assert_eq!(listed(&[1, 1, 1, 0], 10, 1000).await.unwrap_err(), "it broke off");
    }
}
