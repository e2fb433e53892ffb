//! Tests of the public clients of both APIs, each with its own daemons.

mod allocations;
mod coe;
mod coe_sdk;
mod drivers;
mod identity;
mod listeners;
mod metalsmith;
mod microversions;
mod nodes;
mod ports;
mod provision_states;
mod scan;
mod sdk;
mod wire;
