//! Clusters in a cloud that is somebody else's reading of OpenStack: what is made, what is not made twice, what is left.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

mod backoff;
mod crash;
mod drain;
mod faults;
mod gate;
mod given;
mod gpu;
mod interrupted;
mod late;
mod later;
mod lease;
mod life;
mod outage;
mod own_api;
mod parts;
mod portrait;
mod process;
mod refused;
mod tenancy;
mod whole;
