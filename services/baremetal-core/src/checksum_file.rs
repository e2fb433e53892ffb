//! Finds the checksum of an image in a file of checksums, such as `SHA256SUMS`.
//!
//! The rules are those of `ironic/common/checksum_utils.py`: a file with one word is the checksum; in any other file the line with the name
//! of the image counts, in the format of sha256sum (`HEX  NAME`, `HEX *NAME`) or of BSD (`SHA256 (NAME) = HEX`).

use agent_protocol::ChecksumAlgorithm;

/// Why a file of checksums does not tell the checksum of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChecksumFileError {
    #[error("the file is empty")]
    Empty,
    #[error("the file has no checksum of {name:?}")]
    NoLine {
        /// The name of the image.
        name: String,
    },
    #[error("the file has no sha256 or sha512 checksum")]
    NoChecksum,
    #[error("the file has no {} checksum, which image_os_hash_algo names", word(*.0))]
    OtherAlgorithm(ChecksumAlgorithm),
}

/// Returns the checksum of the image at `image_url`, in lower case, that the text of a file contains. If `algorithm` is given, only its
/// checksums count.
pub fn find_checksum(
    text: &str,
    image_url: &str,
    algorithm: Option<ChecksumAlgorithm>,
) -> Result<(ChecksumAlgorithm, String), ChecksumFileError> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mine: Vec<&str> = match &lines[..] {
        [] => return Err(ChecksumFileError::Empty),
        [only] if !only.contains(' ') => vec![only],
        lines => {
            let name = file_name(image_url);
            let has_name = |line: &&&str| !line.starts_with('#') && names(line, name);
            let mine: Vec<&str> = lines.iter().filter(has_name).copied().collect();
            if mine.is_empty() {
                let name = name.chars().take(200).collect();
                return Err(ChecksumFileError::NoLine { name });
            }
            mine
        }
    };
    let found: Vec<(ChecksumAlgorithm, String)> =
        mine.into_iter().filter_map(checksum_in).collect();
    if found.is_empty() {
        return Err(ChecksumFileError::NoChecksum);
    }
    let fits = |(found, _): &(ChecksumAlgorithm, String)| algorithm.is_none_or(|it| it == *found);
    match (found.into_iter().find(fits), algorithm) {
        (Some(found), _) => Ok(found),
        (None, Some(algorithm)) => Err(ChecksumFileError::OtherAlgorithm(algorithm)),
        (None, None) => Err(ChecksumFileError::NoChecksum),
    }
}

/// Returns the algorithm of a checksum with this many hexadecimal digits.
pub(crate) fn algorithm_of(digits: usize) -> Option<ChecksumAlgorithm> {
    match digits {
        64 => Some(ChecksumAlgorithm::Sha256),
        128 => Some(ChecksumAlgorithm::Sha512),
        _ => None,
    }
}

fn word(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Sha256 => "sha256",
        ChecksumAlgorithm::Sha512 => "sha512",
    }
}

/// Returns the last part of the path of a URL.
fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns whether a line is about the file `name`.
fn names(line: &str, name: &str) -> bool {
    let mut words = line.split_whitespace();
    let in_parentheses = format!("({name})");
    if words.any(|word| word == in_parentheses) {
        return true;
    }
    let last = line.rsplit(char::is_whitespace).next().unwrap_or(line);
    !name.is_empty() && last.len() < line.len() && last.strip_prefix('*').unwrap_or(last) == name
}

/// Returns the checksum at the beginning or at the end of a line.
fn checksum_in(line: &str) -> Option<(ChecksumAlgorithm, String)> {
    let mut words = line.split_whitespace();
    let ends = [words.next(), words.next_back()];
    ends.into_iter().flatten().find_map(|word| {
        let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let algorithm = algorithm_of(word.len()).filter(|_| is_hex)?;
        Some((algorithm, word.to_ascii_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IMAGE: &str = "https://images/fedora/disk.qcow2?token=x";

    fn found(text: &str) -> Result<String, String> {
        let found = find_checksum(text, IMAGE, None);
        found.map(|(_, value)| value).map_err(|why| why.to_string())
    }

    #[test]
    fn the_checksum_is_found_in_every_common_format() {
        let (sha256, sha512) = ("a1".repeat(32), "B2".repeat(64));
        let other = "c3".repeat(32);
        for text in [
            sha256.clone(),
            format!("{sha256}\n"),
            format!("{sha256}  disk.qcow2\n"),
            format!("{other}  other.qcow2\r\n{sha256} *disk.qcow2\r\n"),
            format!("# disk.qcow2: 5 bytes\nSHA256 (disk.qcow2) = {sha256}\n"),
            format!("{other}  not-disk.qcow2\n{sha256}  disk.qcow2\n"),
            format!("d41d8cd98f00b204e9800998ecf8427e  disk.qcow2\n{sha256}  disk.qcow2\n"),
        ] {
            assert_eq!(found(&text), Ok(sha256.clone()), "{text}");
        }
        let both = format!("{sha256}  disk.qcow2\n{sha512}  disk.qcow2\n");
        let wanted = find_checksum(&both, IMAGE, Some(ChecksumAlgorithm::Sha512));
        assert_eq!(wanted, Ok((ChecksumAlgorithm::Sha512, sha512.to_ascii_lowercase())));
    }

    #[test]
    fn a_file_without_the_checksum_is_refused_with_the_reason() {
        let (sha256, md5) = ("a1".repeat(32), "a1".repeat(16));
        let no_line = "the file has no checksum of \"disk.qcow2\"";
        let none = "the file has no sha256 or sha512 checksum";
        for (text, want) in [
            (" \n\n".to_owned(), "the file is empty"),
            (format!("{sha256}  other.qcow2\n"), no_line),
            (format!("{sha256}  x-disk.qcow2\n"), no_line),
            (format!("{sha256}\ndisk.qcow2\n"), no_line),
            (format!("# {sha256}  disk.qcow2\n{sha256}  other\n"), no_line),
            (format!("{md5}  disk.qcow2\n"), none),
            (md5, none),
            ("<html>".to_owned(), none),
            ("nothing  disk.qcow2".to_owned(), none),
        ] {
            assert_eq!(found(&text), Err(want.to_owned()), "{text}");
        }
        let other = find_checksum(&sha256, IMAGE, Some(ChecksumAlgorithm::Sha512));
        let want = "the file has no sha512 checksum, which image_os_hash_algo names";
        assert_eq!(other.unwrap_err().to_string(), want);
    }

    proptest! {
        #[test]
        fn no_file_panics(text: String, url: String) {
            let _ = find_checksum(&text, &url, None);
        }
    }
}
