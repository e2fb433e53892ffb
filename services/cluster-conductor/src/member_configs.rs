//! The user-data and Ignition configs of members, and the reports that members send.
//!
//! [`MemberConfigs::user_data`] makes the user-data for Nova: the whole config, or a claim to it. The row of a claim holds the facts from
//! which the config is made when the claim is redeemed; keys and tokens are added from their sealed places at that time.

mod authorities;
mod bootstrap_data;
mod claim_event;
mod claims;
mod config;
mod error;
mod event_limiter;
mod facts;
mod own;
mod reboots;
mod redeem;
mod rehearsal;
mod renewal;
mod reporter;
mod user_data;

pub use authorities::CaHandout;
pub(crate) use authorities::ask as ask_authorities;
pub(crate) use bootstrap_data::join_token;
pub use error::MemberConfigError;
use error::Result;
pub use own::OwnConfigError;
pub(crate) use own::{has_own_config, remove_own_config, set_own_config};
pub use reboots::RebootReport;
pub(crate) use reboots::take_report as take_reboot_report;
pub use redeem::{Answer, StepReport};
pub(crate) use redeem::{ReportResult, note_report, redeem};
pub(crate) use rehearsal::check_member_configs;
pub use renewal::CertificateAnswer;
pub(crate) use renewal::take_report as take_certificate_report;
pub(crate) use reporter::Reporter;
pub(crate) use user_data::MemberConfigs;
