//! The side that machines see, octet by octet: DHCP, boot scripts, agents' reports.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod addresses;
mod forged;
mod strangers;

mod machine;
mod site;
