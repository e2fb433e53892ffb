#![doc = include_str!("../README.md")]

mod api;
mod daemon;
mod files;
mod images;
mod kill_points;
mod lab;
mod machine;
mod node;
mod postgres;
mod records;
mod replica;
mod trap;

pub use api::{Answer, Api, until};
pub use daemon::KillResult;
pub use images::{Image, ImageFault, Images};
pub use lab::{Lab, Settings};
pub use machine::{AgentChoice, Machine, RackedMachine};
pub use node::{Node, PendingChange};
pub use postgres::{LossyWay, Postgres};
pub use replica::Replica;
