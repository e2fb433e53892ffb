//! A stream that fails with an error when its client is too slow.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::ConnectionLimits;

/// Which phase a connection is in: in a request or between two requests. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestState(Arc<RequestStateInner>);

#[derive(Debug, Default)]
struct RequestStateInner {
    /// Goes up at the start and at the end of each request, so an odd value means that a request is in progress.
    count: AtomicU64,
    /// The connection was upgraded and no longer speaks HTTP; the new owner of the connection sets its own timeouts.
    is_handed_over: AtomicBool,
    /// Wakes the reading side when a response ends. Without the wake-up hyper, which had nothing to read at that time, would not poll
    /// again, and the idle timeout would never start.
    reader: Mutex<Option<Waker>>,
}

/// A request in progress; the request ends on drop.
#[derive(Debug)]
pub(crate) struct RequestInProgress(RequestState);

impl RequestState {
    pub(crate) fn begin(&self) -> RequestInProgress {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        RequestInProgress(self.clone())
    }

    /// Marks the upgrade of the connection to another protocol: no further request comes.
    pub(crate) fn mark_upgraded(&self) {
        self.0.is_handed_over.store(true, Ordering::Release);
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let RequestStateInner { count, reader, .. } = &*self.0.0;
        count.fetch_add(1, Ordering::AcqRel);
        if let Some(reader) = reader.lock().unwrap_or_else(PoisonError::into_inner).take() {
            reader.wake();
        }
    }
}

/// The phase of the connection, which selects the timeout for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadPhase {
    /// The rest of the head of a request, or the first request of a connection.
    Head,
    Request,
    /// Reading has no timeout here: the body of a request has its own, and during a response nothing needs to be read.
    Other,
}

/// A stream with a timeout for reading and one for writing.
pub(crate) struct TimeoutStream<S> {
    stream: S,
    turn: RequestState,
    seen: u64,
    limits: ConnectionLimits,
    has_begun: bool,
    awaited: ReadPhase,
    reading: Timer,
    writing: Timer,
}

impl<S> TimeoutStream<S> {
    pub(crate) fn new(stream: S, turn: RequestState, limits: ConnectionLimits) -> Self {
        TimeoutStream {
            stream,
            turn,
            seen: 0,
            limits,
            has_begun: true,
            awaited: ReadPhase::Other,
            reading: Timer::default(),
            writing: Timer::default(),
        }
    }

    fn awaits(&mut self) -> ReadPhase {
        if self.turn.0.is_handed_over.load(Ordering::Acquire) {
            return ReadPhase::Other;
        }
        let turn = self.turn.0.count.load(Ordering::Acquire);
        if turn != self.seen {
            (self.seen, self.has_begun) = (turn, false);
            self.reading.stop();
            self.awaited = ReadPhase::Other;
        }
        match (turn % 2 == 1, self.has_begun) {
            (true, _) => ReadPhase::Other,
            (false, true) => ReadPhase::Head,
            (false, false) => ReadPhase::Request,
        }
    }

    /// Called when nothing can be read now: fails once the timeout of the current phase is over.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let awaited = self.awaits();
        if awaited != self.awaited {
            self.reading.stop();
            self.awaited = awaited;
        }
        let limit = match awaited {
            ReadPhase::Head => self.limits.header_timeout,
            ReadPhase::Request => self.limits.idle_timeout,
            ReadPhase::Other => {
                let mut reader = self.turn.0.reader.lock().unwrap_or_else(PoisonError::into_inner);
                *reader = Some(context.waker().clone());
                return Poll::Pending;
            }
        };
        self.reading.poll(limit, context).map(Err)
    }

    /// Handles the result of a write: fails once the client has read nothing for `answer_timeout`.
    fn written<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match done {
            Poll::Ready(done) => {
                self.writing.stop();
                Poll::Ready(done)
            }
            Poll::Pending => self.writing.poll(self.limits.answer_timeout, context).map(Err),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, into) {
            Poll::Pending => self.wait(context),
            done @ Poll::Ready(_) => {
                if into.filled().len() > before && self.awaits() == ReadPhase::Request {
                    self.has_begun = true;
                }
                done
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(done, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.written(done, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.written(done, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(done, context)
    }
}

/// Measures how long a condition has lasted.
#[derive(Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    runs: bool,
}

impl Timer {
    /// The condition has ended; the next `poll` starts anew.
    pub(crate) fn stop(&mut self) {
        self.runs = false;
    }

    /// The condition still holds: ready with the error once it has lasted for `limit`.
    pub(crate) fn poll(&mut self, limit: Duration, context: &mut Context<'_>) -> Poll<io::Error> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if !self.runs {
            sleep.as_mut().reset(Instant::now() + limit);
            self.runs = true;
        }
        sleep.as_mut().poll(context).map(|()| too_slow())
    }
}

/// The error for a client that is too slow.
pub(crate) fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client was too slow")
}
