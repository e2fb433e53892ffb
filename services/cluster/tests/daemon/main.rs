//! clusterd as a process: its configuration, the data it keeps, and the starts it refuses.

mod check;
mod fixture;
mod identity;
mod leases;
mod limits;
mod metrics;
mod nodes;
mod reboots;
mod renewal;
mod restore;
mod rotation;
mod samples;
mod second;
mod secrets;
mod several;
mod stop;
mod tenancy;
mod tls;
