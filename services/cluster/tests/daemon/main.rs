//! clusterd as a process: what it is started with, what it keeps, and what it refuses.

mod check;
mod given;
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
