#![doc = include_str!("../README.md")]

mod api;
mod daemon;
mod files;
mod images;
mod lab;
mod machine;
mod mortal;
mod node;
mod postgres;
mod records;
mod trap;

pub use api::{Answer, Api, until};
pub use daemon::Killed;
pub use images::{Image, ImageFault, Images};
pub use lab::{Lab, Settings};
pub use machine::{AgentOf, Machine, Placed};
pub use node::{Asked, Node};
pub use postgres::{LossyWay, Postgres};
