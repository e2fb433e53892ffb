//! Parses command-line options in labels, such as `--max-pods=200 --v=2`. The parser is strict: a label must not inject anything else into
//! a unit file or a command.

/// Parses options into pairs of name (without dashes) and value. The error is a sentence for the user.
pub(crate) fn options(raw: &str) -> Result<Vec<(String, String)>, String> {
    raw.split_ascii_whitespace().map(option).collect()
}

fn option(word: &str) -> Result<(String, String), String> {
    let shown: String = word.chars().take(64).collect();
    let (name, value) = word
        .strip_prefix("--")
        .and_then(|rest| rest.split_once('='))
        .ok_or_else(|| format!("{shown:?} is not --NAME=VALUE"))?;
    let named = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let plain = value.chars().all(|c| c.is_ascii_graphic() && !"\"'\\`$".contains(c));
    if !named || !plain {
        return Err(format!(
            "{shown:?} is not a valid option: a name has a-z, 0-9 and '-', and a value has no quotes, backslashes, backticks or $"
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_names_and_values() {
        let read = options("--max-pods=200  --feature-gates=A=true,B=false").unwrap();
        assert_eq!(read[1], ("feature-gates".to_owned(), "A=true,B=false".to_owned()));
        for bad in ["max-pods=1", "--v", "--v=$(reboot)", "--v=`x`", "--a b", "--X=1", "--v='1'"] {
            assert!(options(bad).is_err(), "{bad} passed");
        }
    }
}
