//! The ramdisk as a CD for one boot: the template's bytes, with the boot's parameters written into a reserved area.
//!
//! `images/ramdisk/README.md` describes the template: a file in its ramdisk begins with a marker and is filled with blanks. The ramdisk
//! reads the area like the kernel's command line, which is not used because a console would show its secrets.

use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::OnceCell;

/// The beginning of an area.
const MARKER: &[u8] = b"# bedplate arguments: 4096 bytes from here may be overwritten";

/// The length of an area in bytes, including its marker.
const AREA: usize = 4096;

/// The number of bytes read at a time.
const CHUNK: usize = 256 << 10;

/// A CD that lacks only its kernel parameters.
pub struct IsoTemplate {
    path: PathBuf,
    size: u64,
    /// The offsets of the areas, found when the first CD is requested.
    areas: OnceCell<Vec<u64>>,
}

/// Why a CD cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IsoError {
    #[error("cannot read the template of the boot medium")]
    Unreadable(#[from] io::Error),
    #[error(
        "the template of the boot medium has no area for kernel parameters; build it with images/ramdisk"
    )]
    NoArea,
    /// The parameters are too long, or contain a character that a boot loader would interpret.
    #[error("the kernel parameters do not fit into the template of the boot medium")]
    DoNotFit,
}

impl IsoTemplate {
    /// Opens the template in this file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let size = std::fs::metadata(path)?.len();
        Ok(IsoTemplate { path: path.to_owned(), size, areas: OnceCell::new() })
    }

    /// Serves the CD with these kernel parameters: the whole CD, or the range that `headers` ask for (RFC 9110 §14).
    pub async fn serve(
        &self,
        parameters: &[(String, Option<String>)],
        headers: &HeaderMap,
    ) -> Result<Response, IsoError> {
        let areas = self.areas.get_or_try_init(|| find_areas(self.path.clone())).await?.clone();
        let filling = Arc::new(filling(parameters)?);
        let asked = headers
            .get(RANGE)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| range(text, self.size));
        let (first, end, status) = match asked {
            Some((first, end)) => (first, end, StatusCode::PARTIAL_CONTENT),
            None => (0, self.size, StatusCode::OK),
        };
        let mut file = File::open(&self.path).await?;
        file.seek(SeekFrom::Start(first)).await?;
        let chunks = stream::try_unfold((file, first), move |(mut file, at)| async move {
            let want = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            if want == 0 {
                return Ok(None);
            }
            let mut chunk = vec![0; want];
            file.read_exact(&mut chunk).await?;
            Ok::<_, io::Error>(Some(((at, chunk), (file, at + want as u64))))
        });
        let filled = chunks.map_ok(move |(at, mut chunk)| {
            for area in &areas {
                overlay(&mut chunk, at, &filling, *area);
            }
            Bytes::from(chunk)
        });
        let mut response = Body::from_stream(filled.boxed()).into_response();
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers
            .insert(CONTENT_TYPE, "application/octet-stream".parse().expect("it is a legal value"));
        headers.insert(ACCEPT_RANGES, "bytes".parse().expect("it is a legal value"));
        headers.insert(CONTENT_LENGTH, (end - first).into());
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {first}-{}/{}", end - 1, self.size);
            headers.insert(CONTENT_RANGE, range.parse().expect("digits are a legal value"));
        }
        Ok(response)
    }
}

/// Returns the offsets of the areas in this file.
async fn find_areas(path: PathBuf) -> Result<Vec<u64>, IsoError> {
    let mut file = File::open(path).await?;
    let (mut areas, mut window, mut begin) = (Vec::new(), Vec::new(), 0_u64);
    loop {
        let kept = window.len();
        window.resize(kept + CHUNK, 0);
        let read = file.read(&mut window[kept..]).await?;
        window.truncate(kept + read);
        if read == 0 {
            return if areas.is_empty() { Err(IsoError::NoArea) } else { Ok(areas) };
        }
        let found = (0..window.len().saturating_sub(MARKER.len() - 1))
            .filter(|at| window[*at..].starts_with(MARKER));
        areas.extend(found.map(|at| begin + at as u64));
        // A marker may span two reads, so the longest possible beginning of a marker is kept.
        let drop = window.len().saturating_sub(MARKER.len() - 1);
        window.drain(..drop);
        begin += drop as u64;
    }
}

/// Returns the bytes that are written over an area.
fn filling(parameters: &[(String, Option<String>)]) -> Result<Vec<u8>, IsoError> {
    let words = parameters.iter().map(|(key, value)| match value {
        Some(value) => format!("{key}={value}"),
        None => key.clone(),
    });
    let line = words.collect::<Vec<_>>().join(" ");
    // Boot loaders expand and quote, so only characters without a meaning in any of them are accepted.
    let harmless = |c: char| c.is_ascii_alphanumeric() || " -_.,:;=/?&@%+~[]".contains(c);
    if line.len() >= AREA || !line.chars().all(harmless) {
        return Err(IsoError::DoNotFit);
    }
    let mut filling = line.into_bytes();
    filling.push(b'\n');
    filling.resize(AREA, b' ');
    Ok(filling)
}

/// Writes the part of `filling` at offset `area` that overlaps `chunk`, which begins at offset `at`.
fn overlay(chunk: &mut [u8], at: u64, filling: &[u8], area: u64) {
    let end = at + chunk.len() as u64;
    let (from, to) = (area.max(at), (area + filling.len() as u64).min(end));
    if from < to {
        let source = &filling[(from - area) as usize..(to - area) as usize];
        chunk[(from - at) as usize..(to - at) as usize].copy_from_slice(source);
    }
}

/// Returns the bytes `first..end` of a single range; `None` for anything else, which is answered with the whole CD.
fn range(text: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (first, end) = match (first.parse::<u64>().ok(), last.parse::<u64>().ok()) {
        (Some(first), Some(last)) => (first, last.checked_add(1)?.min(size)),
        (Some(first), None) if last.is_empty() => (first, size),
        (None, Some(length)) if first.is_empty() => (size.saturating_sub(length), size),
        _ => return None,
    };
    (first < end).then_some((first, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_area_is_found_and_filled_across_reads() {
        let folder = std::env::temp_dir().join(format!("iso-{}", std::process::id()));
        let mut disk = vec![b'x'; CHUNK * 2];
        for area in [100, CHUNK - 5] {
            disk[area..area + AREA].fill(b' ');
            disk[area..area + MARKER.len()].copy_from_slice(MARKER);
        }
        std::fs::write(&folder, &disk).unwrap();
        let template = IsoTemplate::open(&folder).unwrap();
        let parameters = [("a".to_owned(), Some("1".to_owned())), ("quiet".to_owned(), None)];
        let served = template.serve(&parameters, &HeaderMap::new()).await.unwrap();
        let body = axum::body::to_bytes(served.into_body(), usize::MAX).await.unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(body.len(), disk.len());
        for area in [100, CHUNK - 5] {
            assert_eq!(&body[area..area + 10], b"a=1 quiet\n");
            assert_eq!(body[area - 1], b'x');
            assert_eq!(&body[area + AREA - 1..=area + AREA], b" x");
        }
    }

    #[test]
    fn characters_with_a_meaning_for_boot_loaders_are_refused() {
        let with = |value: &str| filling(&[("a".to_owned(), Some(value.to_owned()))]);
        assert!(with("http://10.0.0.1:6386/v1/x?a=b&c=d").is_ok());
        for bad in ["$x", "a\nb", "\"", "`", "\\", &"x".repeat(AREA)] {
            assert!(with(bad).is_err(), "{bad:?} passed");
        }
    }

    #[test]
    fn a_range_is_cut_to_the_size() {
        assert_eq!(range("bytes=0-99", 50), Some((0, 50)));
        assert_eq!(range("bytes=10-", 50), Some((10, 50)));
        assert_eq!(range("bytes=-10", 50), Some((40, 50)));
        assert_eq!(range("bytes=50-", 50), None);
        assert_eq!(range("bytes=0-1,3-4", 50), None);
    }
}
