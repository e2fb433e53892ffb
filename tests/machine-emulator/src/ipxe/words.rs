//! The grammar of a line: words, joined commands, comments, settings.

use std::collections::HashMap;

/// When a command runs, depending on the previous one on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// Always: after `;`, and at the start of a line.
    Always,
    /// If the previous one failed: `||`.
    IfFailed,
    /// If the previous one succeeded: `&&`.
    IfDone,
}

/// Splits a line into commands, each with the operator that follows. A word that begins with `#` starts a comment.
pub(super) fn split(line: &str) -> Vec<(Vec<&str>, Operator)> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    for word in line.split_whitespace() {
        let joint = match word {
            "||" => Operator::IfFailed,
            "&&" => Operator::IfDone,
            ";" => Operator::Always,
            comment if comment.starts_with('#') => break,
            _ => {
                words.push(word);
                continue;
            }
        };
        commands.push((std::mem::take(&mut words), joint));
    }
    if !words.is_empty() {
        commands.push((words, Operator::Always));
    }
    commands
}

/// Replaces each `${setting}` in the word; an unset one is empty.
pub(super) fn expand(word: &str, settings: &HashMap<String, String>) -> String {
    let (mut text, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once("${") {
        text += before;
        let Some((name, after)) = after.split_once('}') else {
            rest = after;
            break;
        };
        let (name, format) = name.split_once(':').unwrap_or((name, ""));
        // `net0/mac` and `mac` are equal on a machine that boots from its first port.
        let name = name.strip_prefix("net0/").unwrap_or(name);
        let value = settings.get(name).map(String::as_str).unwrap_or_default();
        text += &if format == "hexhyp" { value.replace(':', "-") } else { value.to_owned() };
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_split_at_what_joins_its_commands() {
        assert_eq!(
            split("kernel x a=b || goto failed # or not"),
            [
                (vec!["kernel", "x", "a=b"], Operator::IfFailed),
                (vec!["goto", "failed"], Operator::Always)
            ]
        );
        assert_eq!(
            split("iseq a b && sanboot ||"),
            [(vec!["iseq", "a", "b"], Operator::IfDone), (vec!["sanboot"], Operator::IfFailed)]
        );
    }

    #[test]
    fn settings_are_replaced() {
        let settings = HashMap::from([("mac".to_owned(), "52:54:00:00:00:01".to_owned())]);
        assert_eq!(expand("01-${net0/mac:hexhyp}.x", &settings), "01-52-54-00-00-00-01.x");
        assert_eq!(expand("${mac}${none}", &settings), "52:54:00:00:00:01");
    }

    proptest! {
        #[test]
        fn no_line_panics(line: String) {
            split(&line);
            expand(&line, &HashMap::new());
        }
    }
}
