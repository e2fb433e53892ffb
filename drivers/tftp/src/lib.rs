#![doc = include_str!("../README.md")]

mod packet;
mod session;

pub use packet::{DecodeError, ErrorCode, FileMode, Packet, Request, RequestOption};
pub use session::{Limits, Session, SessionError, Step};
