//! The lines that the action `log` writes to the log of the service.

/// A line for the log of the service.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleLog {
    pub level: LogLevel,
    pub text: String,
}

/// The level of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
}
