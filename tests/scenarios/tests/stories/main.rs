//! The stories of operators. All stories are one program, because linking several programs would take as long as running the stories.

mod abort;
mod crash;
mod database_away;
mod deploy_and_undeploy;
mod faults;
mod firmware_settings;
mod hypervisors;
mod inspect;
mod inspection_rules;
mod kill_points;
mod kinds;
mod manual;
mod own_vm;
mod quorum;
mod rack_up;
mod rescue;
mod reserve;
mod serial;
mod service;
mod services;
mod site;
mod steps;
mod sweep;
mod taken_out;
mod trail;
mod unknown;
