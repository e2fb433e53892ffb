//! The names of conductor groups, and the group that a node may be in.

use crate::RequestRefused;

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

/// Refuses a conductor group of a node that is not in `groups`, which are those with a conductor: nobody would manage the node.
///
/// # Errors
///
/// No conductor is in the group.
pub fn check_conductor_group(group: &str, groups: &[String]) -> Result<(), RequestRefused> {
    if groups.iter().any(|known| known == group) {
        return Ok(());
    }
    let problem = format!("no conductor is in group {group:?}; the groups with one are {groups:?}");
    Err(RequestRefused::Field { field: "conductor_group".to_owned(), problem })
}
