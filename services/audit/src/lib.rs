#![doc = include_str!("../README.md")]

mod chain;
mod entry;
mod hash;
mod next_write;
mod refusals;
mod row;
mod trail;

pub use chain::{Broken, Chain, Fault};
pub use entry::{Entry, Outcome};
pub use hash::{Hash, Head, InvalidHead};
pub use next_write::NextWrite;
pub use refusals::{Refusal, RefusalCounter};
pub use row::Row;
pub use trail::{Filter, ListedRow, Order, RequestResult, Trail, TrailError};
