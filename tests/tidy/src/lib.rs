#![doc = include_str!("../README.md")]

mod circles;
mod crates;
mod files;
mod graph;
mod modules;
mod prose;
mod verdict;

pub use circles::circles;
pub use crates::{Crate, Dependency, Kind, Layer, crates};
pub use files::{TextFile, files, root, text_files};
pub use graph::{Graph, Package, graph};
pub use prose::{Prose, prose};
pub use verdict::assert_none;
