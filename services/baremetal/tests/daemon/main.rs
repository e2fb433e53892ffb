//! Tests of baremetald as a process: what it starts with, stores and refuses.

mod consoles;
mod graphical_consoles;
mod identity;
mod leases;
mod limits;
mod metrics;
mod samples;
mod second;
mod secrets;
mod tls;
