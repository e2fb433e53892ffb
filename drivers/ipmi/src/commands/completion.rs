//! Completion codes, by which a BMC reports that a command failed (IPMI 2.0 table 5-2).

use std::fmt;

use bmc::BmcError;

/// The first byte of every answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletionCode(pub(crate) u8);

impl CompletionCode {
    pub(crate) const OK: CompletionCode = CompletionCode(0x00);
    pub(crate) const BUSY: CompletionCode = CompletionCode(0xc0);
    pub(crate) const INVALID_COMMAND: CompletionCode = CompletionCode(0xc1);
    pub(crate) const INVALID_FOR_LUN: CompletionCode = CompletionCode(0xc2);
    pub(crate) const RESERVATION_CANCELLED: CompletionCode = CompletionCode(0xc5);
    pub(crate) const LENGTH_INVALID: CompletionCode = CompletionCode(0xc7);
    pub(crate) const LENGTH_EXCEEDED: CompletionCode = CompletionCode(0xc8);
    pub(crate) const OUT_OF_RANGE: CompletionCode = CompletionCode(0xc9);
    pub(crate) const CANNOT_RETURN_AS_MANY: CompletionCode = CompletionCode(0xca);
    pub(crate) const NOT_PRESENT: CompletionCode = CompletionCode(0xcb);
    pub(crate) const INVALID_FIELD: CompletionCode = CompletionCode(0xcc);
    pub(crate) const INSUFFICIENT_PRIVILEGE: CompletionCode = CompletionCode(0xd4);

    /// Returns the code in the specification's words.
    pub(crate) const fn describe(self) -> &'static str {
        match self.0 {
            0x00 => "command completed normally",
            0xc0 => "node busy",
            0xc1 => "invalid command",
            0xc2 => "command invalid for this logical unit",
            0xc3 => "timeout while processing the command",
            0xc4 => "out of space",
            0xc5 => "reservation cancelled or invalid",
            0xc6 => "request data truncated",
            0xc7 => "request data length invalid",
            0xc8 => "request data length limit exceeded",
            0xc9 => "parameter out of range",
            0xca => "cannot return as many bytes as requested",
            0xcb => "sensor, data or record not present",
            0xcc => "invalid data field in the request",
            0xcd => "command illegal for this sensor or record",
            0xce => "response could not be provided",
            0xcf => "duplicated request",
            0xd0 => "sensor data repository in update mode",
            0xd1 => "device in firmware update mode",
            0xd2 => "BMC initialization in progress",
            0xd3 => "destination unavailable",
            0xd4 => "insufficient privilege",
            0xd5 => "not supported in the present state",
            0xd6 => "parameter illegal because a sub-function is disabled",
            0xff => "unspecified error",
            0x01..=0x7e => "a code of the vendor's own",
            0x80..=0xbe => "a code of this command's own",
            _ => "a reserved code",
        }
    }

    /// Whether the same command may succeed later.
    const fn is_transient(self) -> bool {
        matches!(self.0, 0xc0 | 0xc3 | 0xc4 | 0xc5 | 0xce | 0xcf | 0xd0..=0xd3)
    }

    /// Whether the BMC does not have the command at all.
    pub(crate) fn is_unknown_command(self) -> bool {
        matches!(self, CompletionCode::INVALID_COMMAND | CompletionCode::INVALID_FOR_LUN)
    }

    /// Makes the error for this answer to `request`.
    pub(crate) fn refusal(self, request: &str) -> BmcError {
        BmcError::Refused {
            request: request.to_owned(),
            answer: self.to_string(),
            transient: self.is_transient(),
        }
    }
}

impl fmt::Display for CompletionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (completion code {:#04x})", self.describe(), self.0)
    }
}
