//! Designate: zones, and the names in them.

pub mod limits;
pub mod ptr;
pub mod recordsets;
pub mod zones;

use crate::lenient;
use crate::service::Service;

const SERVICE: Service = Service::Dns;

/// The most that Designate lists in a page; its own default is 20.
const PAGE: &str = "1000";

lenient::words! {
    /// How far a zone or recordset is.
    DnsStatus {
        /// The name servers answer it.
        Active = "ACTIVE",
        /// On its way there.
        Pending = "PENDING",
        /// The name servers do not take it.
        Error = "ERROR",
        /// On its way out.
        Deleted = "DELETED",
        /// A name whose zone is another's.
        Inactive = "INACTIVE",
    }
}
