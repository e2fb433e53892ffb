//! The terminal while every key is the machine's: nothing is shown, kept or meant by it here.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// A terminal that passes on every key, until this is dropped.
pub(super) struct Raw(Termios);

impl Raw {
    /// Has standard input's terminal pass on every key.
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
        // Nobody is there to be told.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
