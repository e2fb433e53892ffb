//! A stream that ends with an error when its client is too slow.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::Connections;

/// What one connection is about. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Arc<Turns>);

#[derive(Debug, Default)]
struct Turns {
    /// Odd while a request is answered, even between two.
    count: AtomicU64,
    /// The connection is no HTTP any more: whoever took it over knows how long it may rest.
    is_handed_over: AtomicBool,
    /// Who is told when one was answered: hyper, which had nothing to read then, does not look again by itself.
    reader: Mutex<Option<Waker>>,
}

/// A request that is being answered, as long as this is kept.
#[derive(Debug)]
pub(crate) struct Answering(Turn);

impl Turn {
    /// A request begins.
    pub(crate) fn begin(&self) -> Answering {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        Answering(self.clone())
    }

    /// No request comes any more: the connection goes on as something else.
    pub(crate) fn hand_over(&self) {
        self.0.is_handed_over.store(true, Ordering::Release);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let Turns { count, reader, .. } = &*self.0.0;
        count.fetch_add(1, Ordering::AcqRel);
        if let Some(reader) = reader.lock().unwrap_or_else(PoisonError::into_inner).take() {
            reader.wake();
        }
    }
}

/// What is waited for by reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The rest of a request's head, or a connection's first.
    Head,
    /// The next request.
    Request,
    /// Nothing that has its time here: a body, or the end of an answer.
    Other,
}

/// The stream, and how long it may stand still.
pub(crate) struct Paced<S> {
    stream: S,
    turn: Turn,
    seen: u64,
    limits: Connections,
    has_begun: bool,
    awaited: Awaited,
    reading: Timer,
    writing: Timer,
}

impl<S> Paced<S> {
    pub(crate) fn new(stream: S, turn: Turn, limits: Connections) -> Self {
        Paced {
            stream,
            turn,
            seen: 0,
            limits,
            has_begun: true,
            awaited: Awaited::Other,
            reading: Timer::default(),
            writing: Timer::default(),
        }
    }

    fn awaits(&mut self) -> Awaited {
        if self.turn.0.is_handed_over.load(Ordering::Acquire) {
            return Awaited::Other;
        }
        let turn = self.turn.0.count.load(Ordering::Acquire);
        if turn != self.seen {
            (self.seen, self.has_begun) = (turn, false);
            self.reading.stop();
            self.awaited = Awaited::Other;
        }
        match (turn % 2 == 1, self.has_begun) {
            (true, _) => Awaited::Other,
            (false, true) => Awaited::Head,
            (false, false) => Awaited::Request,
        }
    }

    /// Nothing comes now: fails once that lasts too long.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let awaited = self.awaits();
        if awaited != self.awaited {
            self.reading.stop();
            self.awaited = awaited;
        }
        let limit = match awaited {
            Awaited::Head => self.limits.header_timeout,
            Awaited::Request => self.limits.idle_timeout,
            Awaited::Other => {
                let mut reader = self.turn.0.reader.lock().unwrap_or_else(PoisonError::into_inner);
                *reader = Some(context.waker().clone());
                return Poll::Pending;
            }
        };
        self.reading.poll(limit, context).map(Err)
    }

    /// What writing came to; it fails once nothing was taken for too long.
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

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, into) {
            Poll::Pending => self.wait(context),
            done @ Poll::Ready(_) => {
                if into.filled().len() > before && self.awaits() == Awaited::Request {
                    self.has_begun = true;
                }
                done
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
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

/// How long something has lasted, if it lasts.
#[derive(Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    runs: bool,
}

impl Timer {
    /// It does not last any more.
    pub(crate) fn stop(&mut self) {
        self.runs = false;
    }

    /// It lasts, and may until so long after it began: the error, once that is over.
    pub(crate) fn poll(&mut self, limit: Duration, context: &mut Context<'_>) -> Poll<io::Error> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if !self.runs {
            sleep.as_mut().reset(Instant::now() + limit);
            self.runs = true;
        }
        sleep.as_mut().poll(context).map(|()| too_slow())
    }
}

/// What a client that is too slow is told as an error.
pub(crate) fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client was too slow")
}
