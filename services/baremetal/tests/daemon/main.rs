//! baremetald as a process: what it is started with, what it keeps, and what it refuses.

mod consoles;
mod identity;
mod keys;
mod leases;
mod limits;
mod refused;
mod samples;
mod tls;
