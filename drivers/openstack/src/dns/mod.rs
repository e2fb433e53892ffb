//! Designate: zones, recordsets and PTR records.

pub mod limits;
pub mod ptr;
pub mod recordsets;
pub mod zones;

use crate::lenient;
use crate::service::Service;

const SERVICE: Service = Service::Dns;

/// The largest page that Designate returns; its default is 20.
const PAGE: &str = "1000";

lenient::words! {
    /// The status of a zone or recordset.
    DnsStatus {
        /// The name servers answer for it.
        Active = "ACTIVE",
        Pending = "PENDING",
        /// The name servers rejected the change.
        Error = "ERROR",
        Deleted = "DELETED",
        /// A PTR record whose zone belongs to another project.
        Inactive = "INACTIVE",
    }
}
