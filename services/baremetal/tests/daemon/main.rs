//! Tests of baremetald as a process: what it starts with, stores and refuses.

mod consoles;
mod identity;
mod keys;
mod leases;
mod limits;
mod refused;
mod samples;
mod tls;
