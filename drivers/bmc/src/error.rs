//! The errors of a BMC.

/// A result whose error is a [`BmcError`], unless it says otherwise.
pub type Result<T, E = BmcError> = std::result::Result<T, E>;

/// The reason why a BMC did not do what a driver asked of it.
#[derive(Debug, thiserror::Error)]
pub enum BmcError {
    /// The BMC gave no answer: nothing listens, the network drops the packets, or the answer took too long.
    #[error("cannot reach the BMC at {host}")]
    Unreachable { host: String, source: std::io::Error },
    /// TLS failed: the certificate is not the pinned one, or no known certificate authority signed it.
    #[error("the certificate of the BMC at {host} is not trusted: {reason}")]
    Untrusted { host: String, reason: String },
    /// The user name or the password is wrong, or the account lacks the privilege.
    #[error("the BMC at {host} rejected our credentials")]
    Unauthorized { host: String },
    /// The BMC rejected our credentials too often in a row, so it gets no login for a while.
    #[error(
        "the BMC at {host} rejected our credentials {times} times in a row; it gets no other login within an hour, because it could lock the account"
    )]
    LoginWithheld { host: String, times: u32 },
    /// Every session slot of the BMC is taken, or it told us to slow down.
    #[error("the BMC at {host} is busy: {reason}")]
    Busy {
        host: String,
        /// The reason, in the BMC's words where it gave one.
        reason: String,
    },
    /// Another session uses a resource that the BMC lends to one session at a time.
    #[error("the {what} behind the BMC at {host} is in use by another session")]
    InUse {
        host: String,
        /// The resource: `serial port`.
        what: &'static str,
    },
    /// The caller of the driver stopped the request, most likely before it was sent.
    #[error("the request to the BMC was stopped: {reason}")]
    Stopped { reason: String },
    #[error("the BMC refused {request}: {answer}")]
    Refused {
        /// The request: method and path, or the name of the IPMI command.
        request: String,
        /// The status or completion code, and the BMC's message if it gave one.
        answer: String,
        /// Whether the same request may succeed later although nobody changes anything.
        transient: bool,
    },
    /// The answer does not follow the protocol.
    #[error("cannot read the BMC's answer to {request}: {reason}")]
    Malformed { request: String, reason: String },
    /// The BMC has no way to do what was asked.
    #[error("this BMC cannot {what}")]
    Unsupported {
        /// The thing asked for, as a verb phrase: `boot from uefihttp`.
        what: String,
    },
}

impl BmcError {
    /// Whether the same call may succeed later although nobody changes anything.
    pub fn is_transient(&self) -> bool {
        match self {
            BmcError::Unreachable { .. } | BmcError::Busy { .. } | BmcError::Stopped { .. } => true,
            BmcError::Refused { transient, .. } => *transient,
            BmcError::Untrusted { .. }
            | BmcError::Unauthorized { .. }
            | BmcError::LoginWithheld { .. }
            | BmcError::InUse { .. }
            | BmcError::Malformed { .. }
            | BmcError::Unsupported { .. } => false,
        }
    }
}
