//! VMs in the emulated cloud of `openstack-emulator`: the objects that are created, none of them twice, the end of a lease, and nothing
//! left behind.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

mod actions;
mod crash;
mod given;
mod lease_schedule;
mod life;
mod order;
