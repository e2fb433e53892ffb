//! Raw mode of the terminal: every key goes to the machine, without echo, line editing or signals.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// A terminal in raw mode. Dropping the value restores the former mode.
pub(super) struct Raw(Termios);

impl Raw {
    /// Puts standard input's terminal into raw mode.
    pub(super) fn begin() -> io::Result<Raw> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Raw(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // An error cannot be reported while dropping.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
