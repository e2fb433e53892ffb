//! Limit and usage of a resource in a project.

use serde::Deserialize;

/// Limit and usage of a resource in a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaUsage {
    /// `None` means no limit.
    pub limit: Option<u64>,
    /// Includes reservations.
    pub used: u64,
}

impl QuotaUsage {
    /// Makes an allowance; a negative limit means no limit.
    pub(crate) fn new(limit: i64, used: i64) -> QuotaUsage {
        QuotaUsage { limit: u64::try_from(limit).ok(), used: u64::try_from(used).unwrap_or(0) }
    }

    /// Returns how much more fits; `None` without a limit.
    pub fn left(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }

    /// Whether `more` fits into the limit.
    pub fn allows(&self, more: u64) -> bool {
        self.left().is_none_or(|left| more <= left)
    }
}

/// The form of a detailed quota in Neutron and Nova.
#[derive(Deserialize)]
pub(crate) struct Detail {
    #[serde(default = "unlimited")]
    limit: i64,
    #[serde(default, alias = "in_use")]
    used: i64,
    #[serde(default)]
    reserved: i64,
}

fn unlimited() -> i64 {
    -1
}

impl From<Detail> for QuotaUsage {
    fn from(detail: Detail) -> QuotaUsage {
        QuotaUsage::new(detail.limit, detail.used.saturating_add(detail.reserved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_limit_is_none() {
        assert!(QuotaUsage::new(-1, 7).allows(u64::MAX));
        assert!(QuotaUsage::new(10, 7).allows(3));
        assert!(!QuotaUsage::new(10, 7).allows(4));
        assert_eq!(QuotaUsage::new(5, 7).left(), Some(0));
        let detail: Detail =
            serde_json::from_str(r#"{"limit": 10, "used": 4, "reserved": 1}"#).unwrap();
        assert_eq!(QuotaUsage::from(detail), QuotaUsage { limit: Some(10), used: 5 });
    }
}
