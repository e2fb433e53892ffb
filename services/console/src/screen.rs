//! Turns the output of a serial port into lines of text. Control sequences are applied if they concern one line, and dropped otherwise.

/// The maximum length of a line; a longer line is broken.
const LONGEST: usize = 2000;
/// The maximum length of a control sequence; a longer one is read as text.
const LONGEST_SEQUENCE: usize = 64;

/// A terminal with one line, and the complete lines before it.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// Complete lines that were not taken yet, each with its line break.
    lines: String,
    /// The unfinished line.
    line: Vec<char>,
    column: usize,
    within: SequenceState,
    /// The first bytes of an incomplete character.
    rest: Vec<u8>,
}

/// ECMA-48: the kind of sequence that the next character belongs to.
#[derive(Debug, Default)]
enum SequenceState {
    /// Plain text.
    #[default]
    Text,
    /// A sequence that began with an escape.
    Escape,
    /// A sequence that ends with the next character.
    Short,
    /// A control sequence, with its parameters so far.
    Control(String),
    /// A string for the terminal itself, with its length so far.
    String(usize),
    /// A string for the terminal, after an escape that may end it.
    StringEscape,
}

impl Screen {
    /// Reads output of the machine.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        for chunk in rest.utf8_chunks() {
            chunk.valid().chars().for_each(|letter| self.letter(letter));
            let is_last = chunk.invalid().as_ptr_range().end == rest.as_ptr_range().end;
            let is_begun = is_last
                && std::str::from_utf8(chunk.invalid()).is_err_and(|it| it.error_len().is_none());
            if is_begun {
                self.rest = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.letter(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Takes the complete lines since the last call, and returns the unfinished line too.
    pub(crate) fn take(&mut self) -> (String, String) {
        (std::mem::take(&mut self.lines), self.line.iter().collect())
    }

    fn letter(&mut self, letter: char) {
        self.within = match std::mem::take(&mut self.within) {
            SequenceState::Text => return self.text(letter),
            SequenceState::Escape => match letter {
                '[' => SequenceState::Control(String::new()),
                ']' | 'P' | 'X' | '^' | '_' => SequenceState::String(0),
                ' '..='/' => SequenceState::Short,
                '\u{1b}' => SequenceState::Escape,
                _ => SequenceState::Text,
            },
            SequenceState::Short => SequenceState::Text,
            SequenceState::Control(mut parameters) => match letter {
                '\u{1b}' => SequenceState::Escape,
                '@'..='~' => {
                    self.control(letter, &parameters);
                    SequenceState::Text
                }
                ' '..='?' if parameters.len() < LONGEST_SEQUENCE => {
                    parameters.push(letter);
                    SequenceState::Control(parameters)
                }
                _ => SequenceState::Text,
            },
            SequenceState::String(length) => match letter {
                '\u{7}' | '\u{9c}' => SequenceState::Text,
                '\u{1b}' => SequenceState::StringEscape,
                // A string that never ends would otherwise swallow all later output.
                '\r' | '\n' => return self.text(letter),
                _ if length < LONGEST_SEQUENCE * 4 => SequenceState::String(length + 1),
                _ => SequenceState::Text,
            },
            SequenceState::StringEscape => SequenceState::Text,
        };
    }

    fn text(&mut self, letter: char) {
        match letter {
            '\u{1b}' => self.within = SequenceState::Escape,
            '\n' => self.end_line(),
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\t' => {
                for _ in self.column % 8..8 {
                    self.write(' ');
                }
            }
            letter if letter.is_control() || changes_text_direction(letter) => {}
            letter => self.write(letter),
        }
    }

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

    /// Applies a control sequence to the line. A sequence that moves to another line ends the line.
    fn control(&mut self, letter: char, parameters: &str) {
        let number = parameters.split(';').next().and_then(|it| it.parse::<usize>().ok());
        let count = number.unwrap_or(1).clamp(1, LONGEST);
        match letter {
            'C' => self.column = (self.column + count).min(LONGEST),
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.column = count - 1,
            'K' => match number.unwrap_or(0) {
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
