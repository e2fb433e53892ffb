//! Lists of numbers as text, such as `1-4, 7` for microversions.

use anyhow::{Result, bail};

/// Returns numbers as text: `1-4, 7`.
pub fn ranges(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Reads the minor microversions that [`ranges`] wrote.
///
/// # Errors
///
/// Fails if the text is no such list.
pub fn minors(text: &str) -> Result<Vec<u8>> {
    let mut minors = Vec::new();
    for range in text.split(", ") {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<u8>(), last.parse::<u8>()) {
            (Ok(first), Ok(last)) => minors.extend(first..=last),
            _ => bail!("{text:?} is not a list of versions"),
        }
    }
    Ok(minors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ranges() {
        for (versions, text) in
            [(&[7][..], "7"), (&[1, 2, 3, 4, 7], "1-4, 7"), (&[115, 1], "115, 1")]
        {
            assert_eq!(ranges(versions.iter().map(|it| usize::from(*it))), text);
            assert_eq!(minors(text).unwrap(), versions);
        }
        assert!(minors("1-x").is_err());
    }
}
