//! The escape sequence of a terminal: `~.` at the beginning of a line, as in ssh.

/// The position of the input in its line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Escape {
    /// At the beginning of a line.
    #[default]
    Begin,
    /// Inside a line.
    Within,
    /// After a tilde at the beginning of a line. The tilde is not sent yet.
    Tilde,
}

/// The result of reading input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    /// The bytes to send to the machine.
    pub(super) sent: Vec<u8>,
    pub(super) leaves: bool,
}

impl Escape {
    pub(super) fn typed(&mut self, bytes: &[u8]) -> Typed {
        let mut sent = Vec::with_capacity(bytes.len() + 1);
        for &byte in bytes {
            let is_end = matches!(byte, b'\r' | b'\n');
            match (&self, byte) {
                (Escape::Begin, b'~') => {
                    *self = Escape::Tilde;
                    continue;
                }
                (Escape::Tilde, b'.') => return Typed { sent, leaves: true },
                // A doubled tilde sends one tilde.
                (Escape::Tilde, b'~') => {}
                (Escape::Tilde, _) => sent.push(b'~'),
                (Escape::Begin | Escape::Within, _) => {}
            }
            sent.push(byte);
            *self = if is_end { Escape::Begin } else { Escape::Within };
        }
        Typed { sent, leaves: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], want: &str, leaves: bool) {
        let (mut escape, mut sent, mut left) = (Escape::default(), Vec::new(), false);
        for piece in pieces {
            let typed = escape.typed(piece.as_bytes());
            sent.extend(typed.sent);
            left |= typed.leaves;
        }
        assert_eq!((String::from_utf8(sent).unwrap().as_str(), left), (want, leaves));
    }

    #[test]
    fn a_tilde_and_a_full_stop_at_the_beginning_of_a_line_leave() {
        check(&["~."], "", true);
        check(&["ls\r~."], "ls\r", true);
        check(&["ls\r", "~", "."], "ls\r", true);
        check(&["ls\n~.more"], "ls\n", true);
    }

    #[test]
    fn all_other_input_is_sent_unchanged() {
        check(&["cd ~.\r"], "cd ~.\r", false);
        check(&["~/bin/x\r"], "~/bin/x\r", false);
        check(&["~~.\r"], "~.\r", false);
        check(&["\u{1b}[A\u{3}~"], "\u{1b}[A\u{3}~", false);
        check(&["~\r~\r"], "~\r~\r", false);
    }
}
