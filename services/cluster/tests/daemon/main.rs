//! clusterd as a process: its configuration, the data it keeps, and the starts it refuses.

mod check;
mod fixture;
mod identity;
mod keys;
mod leases;
mod limits;
mod nodes;
mod refused;
mod rotation;
mod samples;
mod stop;
mod tenancy;
mod tls;
