#![doc = include_str!("../README.md")]

mod api;
mod daemon;
mod files;
mod haproxy;
mod images;
mod kill_points;
mod lab;
mod machine;
mod node;
mod ports;
mod postgres;
mod programs;
mod records;
mod replica;
mod replicas;
mod trap;

pub use api::{Answer, Api, until};
pub use daemon::KillResult;
pub use files::write as write_files;
pub use haproxy::{Haproxy, Proxy, ProxyKind, ServerState, Traffic};
pub use images::{Image, ImageFault, Images};
pub use lab::{Lab, ReplicaClocks, Settings, configuration};
pub use machine::{AgentChoice, Machine, RackedMachine};
pub use node::{Node, PendingChange};
pub use ports::free_ports;
pub use postgres::{LossyWay, Postgres, ReplicatedPostgres};
pub use programs::Programs;
pub use replica::{Replica, clocks_can_be_faked};
