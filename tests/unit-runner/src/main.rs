#![doc = include_str!("../README.md")]

mod command;
mod manager;
mod reaper;
mod service;
mod unit;

use std::path::Path;

fn main() -> anyhow::Result<()> {
    manager::run(Path::new("/"))
}
