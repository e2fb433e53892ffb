//! The agent's log: printed on the console, and kept for the conductor to collect.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How many bytes are kept; new lines replace the oldest.
const KEPT: usize = 1 << 20;
const BLOCK: usize = 512;

/// The newest lines of the log.
#[derive(Clone, Debug, Default)]
pub struct Logs(Arc<Mutex<VecDeque<u8>>>);

impl Logs {
    /// Installs the subscriber that writes all events here and to standard error.
    pub fn start() -> Self {
        let logs = Logs::default();
        let level = std::env::var("RUST_LOG").unwrap_or_else(|_| "info".to_owned());
        let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
        // A second subscriber in one process is refused, and the first stays.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(logs.clone())
            .try_init();
        logs
    }

    /// Returns all lines as `base64(tar.gz)` of one file, `agent.log`.
    pub fn collect(&self) -> io::Result<String> {
        let text: Vec<u8> = {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter().copied().collect()
        };
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&tar("agent.log", &text))?;
        Ok(base64::engine::general_purpose::STANDARD.encode(gzip.finish()?))
    }
}

impl Write for Logs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = (kept.len() + line.len()).saturating_sub(KEPT).min(kept.len());
        kept.drain(..excess);
        kept.extend(&line[line.len().saturating_sub(KEPT)..]);
        drop(kept);
        // A console that fails must not stop the agent.
        let _ = io::stderr().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Logs;

    fn make_writer(&'a self) -> Logs {
        self.clone()
    }
}

/// Builds an archive of one file (POSIX ustar interchange format).
fn tar(name: &str, contents: &[u8]) -> Vec<u8> {
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", contents.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend(contents);
    archive.resize(archive.len().next_multiple_of(BLOCK) + 2 * BLOCK, 0);
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_lines_replace_the_oldest() {
        let mut logs = Logs::default();
        logs.write_all(b"first\n").unwrap();
        logs.write_all(&vec![b'x'; KEPT - 3]).unwrap();
        logs.write_all(b"end").unwrap();
        let kept = logs.0.lock().unwrap();
        assert_eq!(kept.len(), KEPT);
        assert!(!kept.iter().any(|byte| *byte == b'f'));
    }

    #[test]
    fn tar_reads_the_archive() {
        let archive = tar("agent.log", b"hello\n");
        assert_eq!(archive.len(), 4 * BLOCK);
        assert!(archive[512..].starts_with(b"hello\n"));
        let stored = std::str::from_utf8(&archive[148..154]).unwrap();
        let sum: u32 = archive[..512]
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) })
            .sum();
        assert_eq!(u32::from_str_radix(stored, 8).unwrap(), sum);
    }
}
