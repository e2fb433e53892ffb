//! Tests of the side that machines see, byte by byte: DHCP, boot scripts, agents' reports.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

mod addresses;
mod architectures;
mod bmcs;
mod forged;
mod https;
mod over_ipv6;
mod strangers;

mod machine;
mod site;
