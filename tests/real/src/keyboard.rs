//! The keyboard of a machine's serial console.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::Machine;

/// How long the console may take to answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Types on a machine's serial console.
pub struct Keyboard<'a> {
    machine: &'a Machine,
    line: UnixStream,
}

impl<'a> Keyboard<'a> {
    /// Connects to the console of a running machine.
    #[track_caller]
    pub fn of(machine: &'a Machine) -> Keyboard<'a> {
        let line = UnixStream::connect(machine.console.with_extension("sock"));
        let line = line.expect("QEMU listens for the console");
        let mut screen = line.try_clone().expect("a socket can be shared");
        // QEMU stops the serial port when nobody reads its socket. The output is also in the console's file.
        thread::spawn(move || io::copy(&mut screen, &mut io::sink()));
        Keyboard { machine, line }
    }

    /// Types a line and Enter, and waits until the console has printed `answer` once more.
    #[track_caller]
    pub fn types(&mut self, text: &str, answer: &str) {
        let before = self.machine.printed().matches(answer).count();
        self.line.write_all(format!("{text}\r").as_bytes()).expect("the console reads");
        self.machine.prints(answer, before + 1, TIMEOUT);
    }
}
