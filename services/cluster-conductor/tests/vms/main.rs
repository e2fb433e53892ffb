//! Machines that people ask for, in a cloud that is somebody else's reading of OpenStack: what is made, what is not made twice,
//! what becomes of it when its lease ends, what is left.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

mod crash;
mod errands;
mod given;
mod ladder;
mod life;
mod order;
