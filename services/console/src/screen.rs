//! Turns the output of a serial port into lines of text. Control sequences are applied if they concern one line, and dropped otherwise.

use vte::{Params, Parser, Perform};

/// The maximum length of a line; a longer line is broken.
const LONGEST: usize = 2000;

/// A terminal with one line, and the complete lines before it.
#[derive(Default)]
pub(crate) struct Screen {
    /// Holds at most 1 KiB of an unfinished control sequence: `vte` without its feature `std` has a buffer of fixed size.
    parser: Parser,
    text: Text,
}

/// The text on a [`Screen`].
#[derive(Debug, Default)]
struct Text {
    /// Complete lines that were not taken yet, each with its line break.
    lines: String,
    /// The unfinished line.
    line: Vec<char>,
    column: usize,
}

impl Screen {
    /// Reads output of the machine.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            let (text, end) = match part {
                [text @ .., end @ (b'\r' | b'\n')] => (text, Some(end)),
                text => (text, None),
            };
            self.parser.advance(&mut self.text, text);
            let Some(end) = end else { continue };
            // A control string that never ends would otherwise swallow all later output.
            self.parser = Parser::new();
            match end {
                b'\n' => self.text.end_line(),
                _ => self.text.column = 0,
            }
        }
    }

    /// Takes the complete lines since the last call, and returns the unfinished line too.
    pub(crate) fn take(&mut self) -> (String, String) {
        (std::mem::take(&mut self.text.lines), self.text.line.iter().collect())
    }
}

impl Perform for Text {
    fn print(&mut self, letter: char) {
        if !letter.is_control() && !changes_text_direction(letter) {
            self.write(letter);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' => {
                for _ in self.column % 8..8 {
                    self.write(' ');
                }
            }
            _ => {}
        }
    }

    /// Applies a control sequence (ECMA-48) to the line. A sequence that moves to another line ends the line.
    fn csi_dispatch(&mut self, parameters: &Params, _: &[u8], _: bool, letter: char) {
        let number = parameters.iter().next().and_then(|it| it.first()).copied().unwrap_or(0);
        let count = usize::from(number).clamp(1, LONGEST);
        match letter {
            'C' => self.column = (self.column + count).min(LONGEST),
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.column = count - 1,
            'K' => match number {
                0 => self.line.truncate(self.column),
                1 => {
                    let until = self.line.len().min(self.column + 1);
                    self.line.iter_mut().take(until).for_each(|place| *place = ' ');
                }
                _ => self.line.clear(),
            },
            'P' => {
                let from = self.column.min(self.line.len());
                let until = (self.column + count).min(self.line.len());
                self.line.drain(from..until);
            }
            'A' | 'B' | 'E' | 'F' | 'H' | 'J' | 'd' | 'f' if !self.line.is_empty() => {
                self.end_line();
            }
            _ => {}
        }
    }
}

impl Text {
    fn write(&mut self, letter: char) {
        if self.column >= LONGEST {
            self.end_line();
        }
        if self.line.len() <= self.column {
            self.line.resize(self.column + 1, ' ');
        }
        if let Some(place) = self.line.get_mut(self.column) {
            *place = letter;
        }
        self.column += 1;
    }

    fn end_line(&mut self) {
        self.lines.extend(self.line.drain(..));
        let kept = self.lines.trim_end_matches(' ').len();
        self.lines.truncate(kept);
        self.lines.push('\n');
        self.column = 0;
    }
}

/// Whether the character changes the direction of text, which can make text look like another text (Unicode TR 36).
fn changes_text_direction(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &[&[u8]], lines: &str, line: &str) {
        let mut screen = Screen::default();
        said.iter().for_each(|bytes| screen.feed(bytes));
        assert_eq!(screen.take(), (lines.to_owned(), line.to_owned()));
    }

    #[test]
    fn lines_end_where_the_machine_ends_them() {
        check(&[b"one\r\ntwo\r\n", b"login: "], "one\ntwo\n", "login: ");
        check(&[b" 10%\r 20%\r100%\r\n"], "100%\n", "");
        check(&[b"a\tb"], "", "a       b");
        check(&[b"trailing   \r\n"], "trailing\n", "");
    }

    #[test]
    fn corrections_of_a_shell_are_applied() {
        check(&[b"# lss\x08 \x08"], "", "# ls ");
        check(&[b"# lss\x08\x1b[K"], "", "# ls");
        check(&[b"abc\x1b[2D\x1b[Pd"], "", "ad");
        check(&[b"abc\r\x1b[2Kd"], "", "d");
    }

    #[test]
    fn control_sequences_are_not_passed_on() {
        check(&[b"\x1b[0;1;31mred\x1b[0m"], "", "red");
        check(&[b"\x1b]0;title\x07shown"], "", "shown");
        check(&[b"\x1b]8;;http://evil\x1b\\link"], "", "link");
        check(&[b"\x1b(Bx\x1b=y\x1b"], "", "xy");
        check(&[b"\x1b[2J\x1b[Hmenu\x1b[5;1Hline"], "menu\n", "line");
        check(&[b"\x00\x05\x7fa\xc2\x9bb"], "", "ab");
        check(&["a\u{202e}b".as_bytes()], "", "ab");
        check(&[b"\x1bPnever ended\r\nlogin:"], "\n", "login:");
        check(&[b"\x1b]", &[b'x'; 100_000], b"\rlogin:"], "", "login:");
    }

    #[test]
    fn split_characters_are_joined_and_invalid_bytes_are_marked() {
        check(&[b"gr\xc3", b"\xbcn"], "", "gr\u{fc}n");
        check(&[b"\xe2\x82", b"\xac"], "", "\u{20ac}");
        check(&[b"\xff\xfeA"], "", "\u{fffd}\u{fffd}A");
        check(&[b"\xe2\x82", b"A"], "", "\u{fffd}A");
    }

    #[test]
    fn a_long_line_is_broken() {
        let mut screen = Screen::default();
        screen.feed(&[b'x'; LONGEST + 5]);
        screen.feed(b"\x1b[999999C.");
        let (lines, line) = screen.take();
        assert_eq!(lines.lines().next().map(str::len), Some(LONGEST));
        assert!(line.len() <= LONGEST, "{}", line.len());
    }
}
