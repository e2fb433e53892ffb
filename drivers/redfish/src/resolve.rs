//! Resolving a BMC's name to addresses that may be connected to.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use hardware::{AllowedHosts, HostRefused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves as the system does, and leaves out the addresses that are not allowed. A name whose owner points it at this machine
/// after it was looked at leads nowhere.
pub(crate) struct Resolver(pub(crate) AllowedHosts);

impl Resolve for Resolver {
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

/// The refusal among the causes of an error, if it is one.
pub(crate) fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a HostRefused> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(refused) = cause.downcast_ref::<HostRefused>() {
            return Some(refused);
        }
        // An `io::Error` does not count what it wraps as its source.
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = wrapped.map(|it| it as &(dyn Error + 'static)).or_else(|| cause.source());
    }
    None
}
