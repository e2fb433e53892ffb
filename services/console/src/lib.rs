#![doc = include_str!("../README.md")]

mod api;
mod assets;
mod config;
mod followers;
mod form;
mod guard;
mod headers;
mod keyboards;
mod live;
mod login;
mod own_path;
mod pages;
mod problem;
mod project;
mod screen;
mod service;
mod session;
mod view;
mod visit;

pub use config::{Access, Config};
pub use followers::LivePages;
pub use service::Service;
