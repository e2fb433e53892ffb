//! Designate v2: zones, recordsets, and names of floating IPs.

mod quota;
mod recordset;
mod reverse;
mod routes;
mod state;
mod types;
mod zone;

pub(crate) use routes::answer;
pub(crate) use zone::gone as zone_gone;
