#![doc = include_str!("../README.md")]

mod cidr;
mod cinder;
mod cloud;
mod control;
mod designate;
mod dispatch;
mod errands;
mod glance;
mod glob;
pub mod guest;
mod keystone;
pub mod kubernetes;
mod log;
mod misbehave;
mod neutron;
mod nova;
mod octavia;
mod page;
mod placement;
mod problem;
mod request;
mod seed;
mod serve;
mod service;
mod settings;
mod store;
mod world;

pub use cloud::{Account, Cloud, Emulator};
pub use guest::{Guest, GuestMachine};
pub use log::Call;
pub use misbehave::{Act, End, Fate, Lag, Rule};
pub use service::Service;
pub use settings::{Hypervisor, Latency, Settings, Times};
pub use store::{Kind, Object};
