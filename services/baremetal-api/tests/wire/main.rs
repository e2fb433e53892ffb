//! Wire tests: answers are compared with literal JSON. The expected behaviour of Ironic was observed on version 39.

// `cfg(test)` tells clippy that functions without `#[test]` in these modules belong to tests too.
#[cfg(test)]
mod allocations;
#[cfg(test)]
mod api;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod bedplate;
#[cfg(test)]
mod bios;
#[cfg(test)]
mod bmc_password;
#[cfg(test)]
mod boot_settings;
#[cfg(test)]
mod chassis;
#[cfg(test)]
mod client_types;
#[cfg(test)]
mod consoles;
#[cfg(test)]
mod deploy_templates;
#[cfg(test)]
mod discoveries;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod events;
#[cfg(test)]
mod flags;
#[cfg(test)]
mod hostile;
mod hosts;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod indicators;
#[cfg(test)]
mod inspection_rules;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod leaving;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod others;
#[cfg(test)]
mod parameters;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod patches;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod port_groups;
#[cfg(test)]
mod ports;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod raid;
#[cfg(test)]
mod reservations;
#[cfg(test)]
mod runbooks;
#[cfg(test)]
mod states;
#[cfg(test)]
mod vendor;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod vifs;
#[cfg(test)]
mod virtual_media;
#[cfg(test)]
mod volumes;
