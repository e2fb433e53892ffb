//! Lists, written to the client part by part: of a list that is not read, no more than one part is in memory.

use std::fmt::Display;
use std::pin::Pin;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream::unfold;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use tracing::warn;
use uuid::Uuid;

use crate::ApiError;
use crate::json::json_text;

/// How many bytes of documents a part is made of.
const PART: usize = 128 << 10;
/// How many elements the first part of a list has at most.
const FIRST_ELEMENTS: u32 = 16;
/// How many a later one has.
const MOST_ELEMENTS: u32 = 256;

/// A page of a list.
pub struct Listing {
    /// What its elements are called.
    pub name: &'static str,
    /// How many there are at most.
    pub limit: u32,
    /// After how many bytes it ends early, and says where it goes on.
    pub bytes: usize,
    /// Where the page after an element is.
    pub next: Box<dyn Fn(Uuid) -> String + Send>,
}

/// A part of a page that is to be read.
pub struct PartAsked<P> {
    /// From where the part before ended.
    pub after: Option<P>,
    /// How many elements it has at most.
    pub elements: u32,
    /// After how many bytes of documents it ends; it has one element at least.
    pub bytes: usize,
}

/// A part of a page: some of its elements, written.
pub struct ListPart<P> {
    text: Vec<u8>,
    elements: u32,
    last: Option<Uuid>,
    more: Option<P>,
}

/// A part on its way from the store.
pub type PartFuture<P, E> = Pin<Box<dyn Future<Output = Result<ListPart<P>, E>> + Send>>;

impl<P> ListPart<P> {
    /// The elements that were found, as `view` shows each, and where there may be more.
    ///
    /// # Errors
    ///
    /// When one of them is no JSON.
    pub fn of<'a, T: 'a, V: Serialize>(
        found: &'a [T],
        id: impl Fn(&T) -> Uuid,
        view: impl Fn(&'a T) -> V,
        more: Option<P>,
    ) -> Result<Self, ApiError> {
        let mut text = Vec::new();
        for one in found {
            if !text.is_empty() {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &view(one))
                .map_err(|why| ApiError::broken(format!("the list can not be written: {why}")))?;
        }
        let elements = u32::try_from(found.len()).unwrap_or(u32::MAX);
        Ok(ListPart { text, elements, last: found.last().map(id), more })
    }
}

/// What is left of a list that is being written.
struct Rest<P, F> {
    page: Listing,
    read: F,
    from: Option<P>,
    at_once: u32,
    written: usize,
    is_begun: bool,
}

/// Answers with a page that `read` reads part by part. The first part is read before
/// anything is answered, so that what is wrong with the request is told by its status.
///
/// # Errors
///
/// Those of `read`, for the first part. A later one breaks the answer off.
pub async fn list<P, E, F>(page: Listing, read: F) -> Result<Response, E>
where
    P: Send + 'static,
    E: Display + Send + 'static,
    F: FnMut(PartAsked<P>) -> PartFuture<P, E> + Send + 'static,
{
    let at_once = FIRST_ELEMENTS;
    let mut rest = Rest { page, read, from: None, at_once, written: 0, is_begun: false };
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
                warn!("a list broke off: {why}");
                Some((Err(std::io::Error::other("the list broke off")), (None, None)))
            }
        }
    });
    let mut answer = Response::new(Body::from_stream(parts));
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    Ok(answer)
}

impl<P, E, F> Rest<P, F>
where
    F: FnMut(PartAsked<P>) -> PartFuture<P, E>,
{
    /// The next part as it is written, and whether it is the last.
    async fn next(&mut self) -> Result<(Bytes, bool), E> {
        let asked = self.at_once.min(self.page.limit);
        let bytes = self.page.bytes.saturating_sub(self.written).min(PART);
        let part = PartAsked { after: self.from.take(), elements: asked, bytes };
        let ListPart { text, elements, last, more } = (self.read)(part).await?;
        self.page.limit = self.page.limit.saturating_sub(elements);
        self.written += text.len();
        // Few large elements fill a part as many small ones do.
        self.at_once = match elements < asked {
            true => elements.max(1),
            false => asked.saturating_mul(2).min(MOST_ELEMENTS),
        };

        let mut out = Vec::with_capacity(text.len() + self.page.name.len() + 256);
        match (self.is_begun, text.is_empty()) {
            (false, _) => out.extend_from_slice(format!("{{\"{}\":[", self.page.name).as_bytes()),
            (true, false) => out.push(b','),
            (true, true) => {}
        }
        self.is_begun = true;
        out.extend_from_slice(&text);
        let is_full = self.page.limit == 0 || self.written >= self.page.bytes;
        let next = last.filter(|_| is_full && more.is_some()).map(|last| (self.page.next)(last));
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

    /// A list of elements of so many bytes each, read a few at a time; and whether it was written at once.
    async fn listed(
        sizes: &'static [usize],
        limit: u32,
        bytes: usize,
    ) -> Result<(serde_json::Value, bool), &'static str> {
        let next = Box::new(|last: Uuid| format!("after {}", last.as_u128()));
        let page = Listing { name: "things", limit, bytes, next };
        let read = move |part: PartAsked<usize>| -> PartFuture<usize, &'static str> {
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
                let id = |(number, _): &(usize, usize)| Uuid::from_u128(*number as u128);
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
    async fn all_parts_are_one_list() {
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
    async fn a_short_list_has_a_length_and_a_spoiled_one_breaks_off() {
        assert!(listed(&[1, 1], 10, 1000).await.unwrap().1);
        assert!(!listed(&[1; 8], 10, 1000).await.unwrap().1);
        assert_eq!(listed(&[1, 0], 10, 1000).await.unwrap_err(), "it is spoiled");
        assert_eq!(listed(&[1, 1, 1, 0], 10, 1000).await.unwrap_err(), "it broke off");
    }
}
