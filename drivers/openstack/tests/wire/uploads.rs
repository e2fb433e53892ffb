//! Tests of image uploads.

use std::convert::Infallible;

use bytes::Bytes;
use futures::stream;
use openstack::CloudError;
use openstack::image::images::ImageStatus;
use openstack::image::upload;
use serde_json::json;

use crate::cloud::{Cloud, ReceivedRequest, Reply};

fn three_chunks() -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::iter(["one", "two", "three"].map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))))
}

fn image(status: &str) -> Reply {
    Reply::json(200, json!({"id": "i", "status": status}))
}

#[tokio::test]
async fn an_image_is_streamed() {
    let answer = |asked: &ReceivedRequest, n| match n {
        0 => image("queued"),
        1 => {
            assert_eq!(asked.line, "PUT /image/v2/images/i/file");
            assert_eq!(asked.body, b"onetwothree");
            assert_eq!(asked.header("content-type"), Some("application/octet-stream"));
            Reply::Full(204, Vec::new(), Vec::new())
        }
        _ => image("active"),
    };
    let cloud = Cloud::start(answer).await;
    let sent = upload::upload(&cloud.session(), "i", three_chunks()).await.unwrap().unwrap();
    assert_eq!(sent.status, ImageStatus::Active);
    assert_eq!(cloud.asked().len(), 3);
}

#[tokio::test]
async fn an_image_with_data_is_not_sent_again() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| image("active")).await;
    upload::upload(&cloud.session(), "i", three_chunks()).await.unwrap();
    assert_eq!(cloud.lines(), ["GET /image/v2/images/i"]);
}

#[tokio::test]
async fn an_interrupted_upload_is_never_repeated() {
    let answer =
        |_: &ReceivedRequest, n| if n == 0 { image("queued") } else { Reply::json(503, json!({})) };
    let cloud = Cloud::start(answer).await;
    let error = upload::upload(&cloud.session(), "i", three_chunks()).await.unwrap_err();
    assert!(matches!(error, CloudError::Busy { .. }), "{error:?}");
    assert_eq!(cloud.asked().len(), 2);
}
