//! Why a BMC did not do as asked.

/// Why a BMC did not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum BmcError {
    /// No answer: nothing listens, the network drops it, or it took too long.
    #[error("cannot reach the BMC at {host}")]
    Unreachable {
        /// Address and port.
        host: String,
        /// What the network said.
        source: std::io::Error,
    },
    /// TLS failed: the certificate is not the pinned one, or no known authority signed it.
    #[error("the certificate of the BMC at {host} is not trusted: {reason}")]
    Untrusted {
        /// Address and port.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The user name or the password is wrong, or the account may not do this.
    #[error("the BMC at {host} rejected our credentials")]
    Unauthorized {
        /// Address and port.
        host: String,
    },
    /// Every session slot of the BMC is taken, or it told us to slow down.
    #[error("the BMC at {host} is busy: {reason}")]
    Busy {
        /// Address and port.
        host: String,
        /// In the BMC's words, or ours.
        reason: String,
    },
    /// Somebody else has what is lent to one at a time.
    #[error("the {what} of the machine whose BMC is at {host} is in use by another session")]
    InUse {
        /// Address and port.
        host: String,
        /// What was wanted: `serial port`.
        what: &'static str,
    },
    /// The BMC answered with an error.
    #[error("the BMC refused {request}: {answer}")]
    Refused {
        /// What was asked: method and path, or the IPMI command's name.
        request: String,
        /// The status or completion code, and the BMC's message if it gave one.
        answer: String,
        /// Whether the same request may succeed later without anyone changing anything.
        transient: bool,
    },
    /// The answer is not what the protocol says it is.
    #[error("cannot read the BMC's answer to {request}: {reason}")]
    Malformed {
        /// What was asked.
        request: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// This BMC has no way to do it.
    #[error("this BMC cannot {what}")]
    Unsupported {
        /// What was wanted, as a verb phrase: `boot from uefihttp`.
        what: String,
    },
}

impl BmcError {
    /// Whether the same call may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            BmcError::Unreachable { .. } | BmcError::Busy { .. } => true,
            BmcError::Refused { transient, .. } => *transient,
            BmcError::Untrusted { .. }
            | BmcError::Unauthorized { .. }
            | BmcError::InUse { .. }
            | BmcError::Malformed { .. }
            | BmcError::Unsupported { .. } => false,
        }
    }
}
