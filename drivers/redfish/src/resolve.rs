//! Resolves a host name to the addresses that connections may go to.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use hardware::{AllowedHosts, HostRefused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves like the operating system, and drops addresses that are not allowed. So a name that was changed after its check, to point at
/// this machine, leads nowhere.
pub struct AllowedResolver(AllowedHosts);

impl AllowedResolver {
    /// Makes a resolver of addresses that `allowed` permits.
    pub fn new(allowed: AllowedHosts) -> Self {
        AllowedResolver(allowed)
    }
}

impl Resolve for AllowedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut refused = None;
            let mut kept: Vec<SocketAddr> = Vec::new();
            for address in found {
                match allowed.check_resolved(name.as_str(), address.ip()) {
                    Ok(()) => kept.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if kept.is_empty() => Err(why.into()),
                Some(_) | None => Ok(Box::new(kept.into_iter()) as Addrs),
            }
        })
    }
}

/// Finds the `HostRefused` among the causes of an error.
pub(crate) fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a HostRefused> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(refused) = cause.downcast_ref::<HostRefused>() {
            return Some(refused);
        }
        // `io::Error::source` skips the wrapped error itself, so the wrapped error is looked at first.
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = wrapped.map(|it| it as &(dyn Error + 'static)).or_else(|| cause.source());
    }
    None
}
