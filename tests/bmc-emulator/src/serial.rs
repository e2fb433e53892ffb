//! The serial port of a machine: output of firmware and operating system, and input typed by a client.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

/// How many bytes of output are kept. The oldest bytes are dropped first.
const KEPT: usize = 64 << 10;
/// How many bytes a writer with flow control may be ahead of the reader.
const AHEAD: u64 = 16 << 10;
/// How many typed characters the port buffers, as a UART and its driver do.
const TYPED: usize = 1 << 10;

/// The serial port of one machine.
#[derive(Debug, Default)]
pub struct SerialPort {
    said: Mutex<VecDeque<u8>>,
    typed: Mutex<VecDeque<u8>>,
    keys: Notify,
    /// The total number of bytes ever written.
    end: watch::Sender<u64>,
    /// The position of the current reader. `None` if nobody reads.
    reader: watch::Sender<Option<u64>>,
}

impl SerialPort {
    /// Writes `text` without flow control: output that is not read in time is lost.
    pub fn say(&self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        let mut said = lock(&self.said);
        said.extend(text);
        let surplus = said.len().saturating_sub(KEPT);
        said.drain(..surplus);
        self.end.send_modify(|end| *end += text.len() as u64);
    }

    /// Writes `text` with flow control: waits for the reader.
    pub async fn say_all(&self, text: impl AsRef<[u8]>) {
        let mut reader = self.reader.subscribe();
        for some in text.as_ref().chunks(1 << 10) {
            let end = *self.end.borrow();
            let near = |reader: &Option<u64>| reader.is_none_or(|read| end <= read + AHEAD);
            // An error is impossible: the port outlives this call.
            drop(reader.wait_for(near).await);
            self.say(some);
        }
    }

    /// The last 64 KiB of output.
    pub fn said(&self) -> Vec<u8> {
        lock(&self.said).iter().copied().collect()
    }

    /// The input since the last call. Waits until there is some.
    pub async fn typed(&self) -> Vec<u8> {
        loop {
            let keys: Vec<u8> = lock(&self.typed).drain(..).collect();
            if !keys.is_empty() {
                return keys;
            }
            self.keys.notified().await;
        }
    }

    /// Watches the total number of bytes ever written.
    pub(crate) fn end(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }

    /// Up to `most` bytes from position `at` on, or from the oldest byte that is kept. Also returns the position of the first byte.
    pub(crate) fn read(&self, at: u64, most: usize) -> (u64, Vec<u8>) {
        let said = lock(&self.said);
        let oldest = self.end.borrow().saturating_sub(said.len() as u64);
        let at = at.max(oldest);
        let skipped = usize::try_from(at - oldest).unwrap_or(usize::MAX);
        (at, said.iter().skip(skipped).take(most).copied().collect())
    }

    /// Types `keys`. Returns how many of them fit into the buffer.
    pub fn type_in(&self, keys: &[u8]) -> usize {
        let mut typed = lock(&self.typed);
        let taken = keys.len().min(TYPED - typed.len().min(TYPED));
        typed.extend(keys.iter().take(taken));
        self.keys.notify_one();
        taken
    }

    /// Sets the position of the reader, so that writers continue. `None` means that nobody reads any more.
    pub(crate) fn has_read(&self, reader: Option<u64>) {
        self.reader.send_replace(reader);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_64_kib_are_kept() {
        let port = SerialPort::default();
        port.say(vec![b'a'; KEPT]);
        port.say("tail");
        assert_eq!(port.said().len(), KEPT);
        assert!(port.said().ends_with(b"aatail"));
        assert_eq!(port.read(0, 3), (4, b"aaa".to_vec()));
        assert_eq!(port.read(KEPT as u64, 9), (KEPT as u64, b"tail".to_vec()));
    }

    #[tokio::test]
    async fn a_writer_with_flow_control_waits_for_the_reader() {
        let port = SerialPort::default();
        port.say_all(vec![b'a'; 100_000]).await;
        port.has_read(Some(100_000));
        let saying = port.say_all(vec![b'b'; 100_000]);
        let reading = async {
            let mut read = 100_000;
            while read < 200_000 {
                let (at, some) = port.read(read, 100);
                assert_eq!(at, read, "nothing was lost");
                read += some.len() as u64;
                port.has_read(Some(read));
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(saying, reading);
    }

    #[tokio::test]
    async fn keys_are_taken_while_there_is_room() {
        let port = SerialPort::default();
        assert_eq!(port.type_in(&[b'x'; TYPED + 1]), TYPED);
        assert_eq!(port.type_in(b"y"), 0);
        assert_eq!(port.typed().await.len(), TYPED);
        assert_eq!(port.type_in(b"y"), 1);
        assert_eq!(port.typed().await, b"y");
    }
}
