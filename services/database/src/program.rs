//! The version of the programs of this workspace, which programs on one database tell each other.

/// The version, as `--version` prints it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version as a number: a newer version has a greater one.
pub const NUMBER: i64 = number(VERSION);

const fn number(version: &str) -> i64 {
    let text = version.as_bytes();
    let (mut number, mut part, mut place) = (0, 0, 0);
    while place < text.len() {
        match text[place] {
            digit @ b'0'..=b'9' => part = part * 10 + (digit - b'0') as i64,
            b'.' => {
                number = number * 1000 + part;
                part = 0;
            }
            _ => panic!("a version is MAJOR.MINOR.PATCH"),
        }
        place += 1;
    }
    number * 1000 + part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_version_has_a_greater_number() {
        let versions = ["0.0.0", "0.0.1", "0.1.0", "0.9.12", "0.10.0", "1.0.0", "1.0.10"];
        assert!(versions.map(number).is_sorted_by(|a, b| a < b));
        assert_eq!(number("1.2.3"), 1_002_003);
    }
}
