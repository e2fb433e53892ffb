//! Ranges of a file over HTTP (RFC 9110 §14).

use std::ops::Range;

use reqwest::header::{CONTENT_RANGE, HeaderMap, HeaderValue, RANGE};
use reqwest::{Response, StatusCode};

/// Makes the header of a range request.
pub(super) fn range_header(range: Range<u64>) -> HeaderMap {
    let value = match range.end {
        u64::MAX => format!("bytes={}-", range.start),
        end => format!("bytes={}-{}", range.start, end - 1),
    };
    // Digits, a dash and an equals sign always make a valid header value.
    HeaderValue::from_str(&value).map(|value| (RANGE, value)).into_iter().collect()
}

/// Returns the start of a partial answer (RFC 9110 §14.4).
pub(super) fn range_start(response: &Response) -> Option<u64> {
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return None;
    }
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    text.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}
