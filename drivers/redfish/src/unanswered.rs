//! Errors for requests that got no answer.

use std::error::Error;
use std::io;
use std::time::Duration;

use bmc::BmcError;

use crate::origin::{Origin, host_not_allowed};
use crate::resolve::refusal;

/// Returns the matching error for a request that got no answer.
pub(crate) fn unreachable(origin: &Origin, timeout: Duration, source: reqwest::Error) -> BmcError {
    if let Some(refused) = refusal(&source) {
        return host_not_allowed(refused);
    }
    let host = origin.host();
    let mut cause: Option<&(dyn Error + 'static)> = Some(&source);
    let mut network = None;
    while let Some(error) = cause {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return BmcError::Untrusted { host, reason: reason(tls) };
        }
        let io = error.downcast_ref::<io::Error>();
        network = io.map(|io| io::Error::new(io.kind(), io.to_string())).or(network);
        // `io::Error::source` skips the wrapped error itself, so the wrapped error is looked at first.
        let wrapped = io.and_then(io::Error::get_ref).map(|wrapped| wrapped as _);
        cause = wrapped.or_else(|| error.source());
    }
    let silent = || format!("no answer within {} s", timeout.as_secs_f32());
    let network = match network {
        _ if source.is_timeout() => io::Error::new(io::ErrorKind::TimedOut, silent()),
        Some(network) => network,
        None => io::Error::other(source.without_url().to_string()),
    };
    BmcError::Unreachable { host, source: network }
}

fn reason(error: &rustls::Error) -> String {
    if let rustls::Error::General(reported) = error { reported.clone() } else { error.to_string() }
}
