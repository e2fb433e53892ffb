//! Text of operators and machines as the value of a label.

/// The most characters of a label that is no word of the program.
const LONGEST: usize = 128;

/// Makes a value of a label from any text. The encoder writes values as they are, so a quote in one of them would break the whole page.
pub(crate) fn label_text(text: &str) -> String {
    let shown = text.chars().take(LONGEST);
    shown.fold(String::new(), |mut value, c| {
        match c {
            '"' | '\\' => value.extend(['\\', c]),
            control if control.is_control() => value.push(' '),
            plain => value.push(plain),
        }
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_label() {
        assert_eq!(label_text("CPU 1"), "CPU 1");
        assert_eq!(label_text("a \"b\" \\ c\nd"), r#"a \"b\" \\ c d"#);
        assert_eq!(label_text(&"ä".repeat(500)).chars().count(), LONGEST);
    }
}
