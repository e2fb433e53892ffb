//! The header `tracestate`: entries of other tracing systems, which are passed on as they came.

use std::sync::Arc;

/// W3C Trace Context §3.3.1.1: the most entries.
const MOST_MEMBERS: usize = 32;
/// W3C Trace Context §3.3.1.5: the length that everybody passes on. Longer states are dropped.
const LONGEST: usize = 512;
/// The longest key and the longest value of an entry.
const LONGEST_PART: usize = 256;

/// The entries of other tracing systems, the latest first. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceState(Option<Arc<str>>);

impl TraceState {
    /// Reads the values of all headers `tracestate`, which are one list. A list with a wrong entry is dropped.
    pub(crate) fn of_headers(values: &[&str]) -> Self {
        if values.iter().map(|value| value.len()).sum::<usize>() > LONGEST {
            return TraceState::default();
        }
        let members = values.iter().flat_map(|value| value.split(','));
        let members: Vec<&str> = members
            .map(|member| member.trim_matches([' ', '\t']))
            .filter(|member| !member.is_empty())
            .collect();
        let are_valid = members.len() <= MOST_MEMBERS && members.iter().all(|it| is_member(it));
        if !are_valid || members.is_empty() {
            return TraceState::default();
        }
        TraceState(Some(members.join(",").into()))
    }

    /// The value of the header, if there are entries.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Whether the text is an entry, `key=value`, as level 2 of the specification writes it.
fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let begins = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_key_part = |byte: u8| begins(byte) || b"_-*/@".contains(&byte);
    let is_value_part = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'=';
    (1..=LONGEST_PART).contains(&key.len())
        && key.bytes().next().is_some_and(begins)
        && key.bytes().all(is_key_part)
        && (1..=LONGEST_PART).contains(&value.len())
        && value.bytes().all(is_value_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&str], want: Option<&str>) {
        assert_eq!(TraceState::of_headers(values).as_str(), want);
    }

    #[test]
    fn entries_are_passed_on() {
        check(
            &["congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"],
            Some("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"),
        );
        check(&["a=1 ,", "\tb@c=2"], Some("a=1,b@c=2"));
        check(&[], None);
        check(&[" , "], None);
    }

    #[test]
    fn a_wrong_list_is_dropped() {
        for wrong in ["a", "=1", "a=", "A=1", "a=b=c", "a=ä", "_a=1", "a=1\u{1}"] {
            check(&[wrong], None);
            check(&["good=1", wrong], None);
        }
        let many = vec!["a=1"; MOST_MEMBERS + 1].join(",");
        check(&[&many], None);
        check(&[&many[..many.len() - 4]], Some(&many[..many.len() - 4]));
        check(&[&format!("a={}", "b".repeat(LONGEST))], None);
    }
}
