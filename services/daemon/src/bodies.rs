//! Request bodies that time out when the client is too slow, and response bodies that mark the end of a response.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::time::Instant;

use crate::ConnectionLimits;
use crate::timeouts::{RequestInProgress, Timer, too_slow};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request body. The body ends with an `io::Error` of kind `TimedOut` if the client pauses too long or sends more slowly than allowed.
pub(crate) struct RequestBody {
    body: Incoming,
    limits: ConnectionLimits,
    /// When the handler first read the body. The time before the first read does not count against the client.
    begun: Option<Instant>,
    bytes: usize,
    pause: Timer,
}

impl RequestBody {
    /// Wraps `body` for the handlers.
    pub(crate) fn body(body: Incoming, limits: ConnectionLimits) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        Body::new(RequestBody { body, limits, begun: None, bytes: 0, pause: Timer::default() })
    }

    /// How much longer the next bytes may take.
    fn left(&mut self) -> Duration {
        let elapsed = self.begun.get_or_insert_with(Instant::now).elapsed();
        let seconds = u64::try_from(self.bytes / self.limits.slowest_body).unwrap_or(u64::MAX);
        let whole = self.limits.body_timeout.saturating_add(Duration::from_secs(seconds));
        whole.saturating_sub(elapsed).min(self.limits.body_timeout)
    }
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                self.pause.stop();
                self.bytes += frame.data_ref().map_or(0, Bytes::len);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(other) => Poll::Ready(other.map(|it| it.map_err(BoxError::from))),
            Poll::Pending => {
                let left = self.left();
                if left.is_zero() {
                    return Poll::Ready(Some(Err(too_slow().into())));
                }
                self.pause.poll(left, context).map(|why| Some(Err(why.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body. The response counts as in progress until the body is dropped.
pub(crate) struct ResponseBody {
    body: Body,
    _answering: RequestInProgress,
}

impl ResponseBody {
    pub(crate) fn new(body: Body, answering: RequestInProgress) -> Self {
        ResponseBody { body, _answering: answering }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
