#![doc = include_str!("../README.md")]

mod api;
mod assets;
mod config;
mod error_page;
mod form;
mod guard;
mod headers;
mod image;
mod keystone;
mod live;
mod live_page_registry;
mod login;
mod memory_sessions;
mod own_path;
mod page_request;
mod pages;
mod problem;
mod project;
mod screen;
mod sealed_session;
mod serial_inputs;
mod service;
mod session;
mod sessions;
mod shared_guesses;
mod shared_sessions;
mod state;
mod view;

pub use config::{Access, Config};
pub use live_page_registry::LivePages;
pub use service::Service;
