//! Reads ranges of an image.

use std::ops::Range;

use bytes::Bytes;
use reqwest::header::IF_RANGE;
use reqwest::{Response, StatusCode};
use url::Url;

use super::super::ImageError;
use super::ranges::{range_header, range_start};
use super::{Opened, Source, refused};

impl Source {
    /// Reads ranges, in rising order, of the image that `opened` began to download, and passes each to `visit` when it arrives. From a
    /// server without ranges, the file is read once from its beginning.
    pub(in crate::image) async fn pieces<E: From<ImageError>>(
        &self,
        opened: &Opened,
        ranges: &[Range<u64>],
        mut visit: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let url = &opened.url;
        let mut next = 0;
        while let Some(range) = ranges.get(next) {
            let mut headers = range_header(range.clone());
            if let Some(validator) = &opened.validator {
                headers.insert(IF_RANGE, validator.clone());
            }
            let response = self.ask(url, headers).await?;
            let (at, last) = match (range_start(&response), response.status()) {
                (Some(at), _) if at == range.start => (at, next + 1),
                (_, StatusCode::OK) => (0, ranges.len()),
                (_, status) => return Err(refused(url, status).into()),
            };
            let mut reading = Reading { url, response, at, ahead: Bytes::new() };
            while next < last {
                let piece = reading.piece(&ranges[next]).await?;
                visit(next, &piece)?;
                next += 1;
            }
        }
        Ok(())
    }
}

/// A response that is read range by range.
struct Reading<'a> {
    url: &'a Url,
    response: Response,
    /// Position of `ahead` in the file.
    at: u64,
    ahead: Bytes,
}

impl Reading<'_> {
    async fn piece(&mut self, range: &Range<u64>) -> Result<Vec<u8>, ImageError> {
        let mut piece = Vec::new();
        let mut want = range.clone();
        // The caller must pass ranges that do not overlap: bytes that were read cannot be read again.
        while !want.is_empty() {
            if self.ahead.is_empty() {
                let url = self.url.to_string();
                match self.response.chunk().await {
                    Ok(Some(chunk)) => self.ahead = chunk,
                    Ok(None) | Err(_) => {
                        return Err(ImageError::Truncated {
                            url,
                            received: self.at,
                            expected: Some(range.end),
                        });
                    }
                }
                continue;
            }
            let skip = want.start.saturating_sub(self.at).min(self.ahead.len() as u64);
            let _ = self.ahead.split_to(skip as usize);
            self.at += skip;
            if self.at == want.start {
                let take = (want.end - want.start).min(self.ahead.len() as u64);
                piece.extend_from_slice(&self.ahead.split_to(take as usize));
                self.at += take;
                want.start += take;
            }
        }
        Ok(piece)
    }
}
