//! The name of a conductor group.

/// Why a text names no conductor group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("may only contain letters, digits, '-', '_' and '.'")]
pub struct InvalidGroup;

/// Parses the name of a conductor group; upper case becomes lower case, as in Ironic. The empty name is the default group.
///
/// # Errors
///
/// The name has a character that group names do not have.
pub fn parse_conductor_group(raw: &str) -> Result<String, InvalidGroup> {
    let group = raw.to_lowercase();
    match group.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        true => Ok(group),
        false => Err(InvalidGroup),
    }
}
