//! A Python program that receives requests of a daemon, and prints each as a line of JSON.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver as Lines};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::python;

/// How long a test waits for a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver, which ends with the test.
pub struct Receiver {
    process: Child,
    lines: Lines<String>,
    /// The URL that the receiver printed first.
    pub url: String,
}

impl Receiver {
    /// Starts a script of `clients/` in the environment that the requirements pin.
    #[track_caller]
    pub fn start(requirements: &str, script: &str, arguments: &[&str]) -> Receiver {
        let mut process = Command::new(python::tool(requirements, "python"))
            .arg(Path::new(python::HOME).join("clients").join(script))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python can be started");
        let output = process.stdout.take().expect("the output is a pipe");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut receiver = Receiver { process, lines, url: String::new() };
        receiver.url = receiver.line(Instant::now() + PATIENCE);
        receiver
    }

    /// Waits for requests until `wanted` returns a value for what came so far.
    #[track_caller]
    pub fn until<T>(&self, what: &str, mut wanted: impl FnMut(&Value) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = self.line(deadline);
            let request = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("waiting for {what}: {error}: {line}"));
            if let Some(found) = wanted(&request) {
                return found;
            }
        }
    }

    #[track_caller]
    fn line(&self, deadline: Instant) -> String {
        let left = deadline.saturating_duration_since(Instant::now());
        self.lines.recv_timeout(left).expect("the receiver prints a line in time")
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
