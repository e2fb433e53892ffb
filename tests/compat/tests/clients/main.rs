//! Tests of the public clients of both APIs, each with its own daemons.

mod allocations;
mod coe;
mod coe_sdk;
mod drivers;
mod identity;
mod listeners;
mod metalsmith;
mod metrics;
mod microversions;
mod nodes;
mod ports;
mod prometheus;
mod provision_states;
mod scan;
mod sdk;
mod suites;
mod traces;
mod webhooks;
mod wire;

/// The options of a node with fake hardware; the interfaces are named because a real Ironic has other defaults.
const PRETEND: &[&str] = &[
    "--driver",
    "fake-hardware",
    "--boot-interface",
    "fake",
    "--deploy-interface",
    "fake",
    "--inspect-interface",
    "fake",
    "--management-interface",
    "fake",
    "--power-interface",
    "fake",
];
