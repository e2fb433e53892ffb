//! Measures the depth and the size of a JSON text before it is parsed.

use super::Limits;
use crate::ApiError;

/// Counts the elements of a JSON text; refuses with 400 a text that is nested too deeply or has too many elements. Invalid JSON is left to
/// the parser to refuse.
pub(crate) fn check(text: &[u8], limits: &Limits) -> Result<usize, ApiError> {
    let (mut depth, mut elements) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                elements += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => elements += 1,
            _ => {}
        }
        if depth > limits.json_depth.get() {
            let why = format!("is nested deeper than {} (json_depth)", limits.json_depth);
            return Err(ApiError::bad_field("body", why));
        }
        if elements > limits.json_elements.get() {
            let why = format!("has more than {} elements (json_elements)", limits.json_elements);
            return Err(ApiError::bad_field("body", why));
        }
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_of(text: &str, want: Result<(), &str>) {
        let four = 4.try_into().unwrap();
        let limits = Limits { json_depth: four, json_elements: four, ..Limits::default() };
        let got = check(text.as_bytes(), &limits).map(drop).map_err(|why| why.message);
        assert_eq!(got, want.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused() {
        check_of("[[[[1]]]]", Ok(()));
        check_of(r#"{"a":{"a":[[1]]}}"#, Ok(()));
        check_of("[[[[[1]]]]]", Err("body: is nested deeper than 4 (json_depth)"));
        check_of("[[[[[", Err("body: is nested deeper than 4 (json_depth)"));
        check_of(r#"["[[[[[", "\"[[[[[", "\\"]"#, Ok(()));
    }

    #[test]
    fn elements_beyond_the_limit_are_refused() {
        check_of("[1,2,3,4]", Ok(()));
        check_of("[1,2,3,4,5]", Err("body: has more than 4 elements (json_elements)"));
        check_of(r#"["1,2,3,4,5,6,7"]"#, Ok(()));
        check_of("]]]]]]", Ok(()));
    }
}
