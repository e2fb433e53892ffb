//! Clusters in the emulated cloud of `openstack-emulator`: the objects that are created, none of them twice, and none left behind.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

mod backoff;
mod balancers;
mod counted;
mod crash;
mod disks;
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
mod made_inside;
mod marks;
mod outage;
mod own_api;
mod parts;
mod portrait;
mod process;
mod refused;
mod replicas;
mod tenancy;
mod upgrade;
mod whole;
