//! The body of a multipart push (DSP0266 §12.6.2, RFC 7578): the parameters, and the image while it is downloaded.

use bmc::ImageStream;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use reqwest::Body;
use serde_json::Value;

/// The boundary of the parts, which no image contains by accident.
const BOUNDARY: &str = "bedplate-5d1c9f0e7b3a48c2a6f4e8d09b17c355";

/// A request body that can be sent once.
pub(crate) struct Upload {
    pub(crate) content_type: String,
    pub(crate) length: u64,
    pub(crate) body: Body,
}

impl Upload {
    pub(crate) fn new(parameters: &Value, image: ImageStream) -> Upload {
        let name: String = image.name.chars().filter(|c| is_harmless(*c)).collect();
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"UpdateParameters\"\r\n\
             Content-Type: application/json\r\n\r\n{parameters}\r\n--{BOUNDARY}\r\n\
             Content-Disposition: form-data; name=\"UpdateFile\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        let tail = format!("\r\n--{BOUNDARY}--\r\n");
        let length = image.length + (head.len() + tail.len()) as u64;
        let text = |text: String| stream::once(async move { Ok(Bytes::from(text)) });
        let image = stream::unfold(image.bytes, |mut bytes| async move {
            let next = bytes.recv().await?;
            Some((next, bytes))
        });
        Upload {
            content_type: format!("multipart/form-data; boundary={BOUNDARY}"),
            length,
            body: Body::wrap_stream(text(head).chain(image).chain(text(tail))),
        }
    }
}

/// Whether a character of a file name can be in a quoted header.
fn is_harmless(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._+~".contains(c)
}
