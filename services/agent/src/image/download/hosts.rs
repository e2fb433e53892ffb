//! Restricts downloads and their redirects to the hosts that images may come from.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use hardware::{AllowedHosts, HostRefused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::Url;

/// The limit of redirects, equal to reqwest's default.
const MOST_REDIRECTS: usize = 10;

/// Refuses a URL whose host is not allowed. If the host is a name, the resolver checks its addresses.
pub(super) fn check(allowed: &AllowedHosts, url: &Url) -> Result<(), HostRefused> {
    allowed.check(url.host_str().unwrap_or_default())
}

/// Follows redirects to allowed hosts only.
pub(super) fn redirects(allowed: AllowedHosts) -> Policy {
    Policy::custom(move |attempt| match check(&allowed, attempt.url()) {
        Err(why) => attempt.error(why),
        Ok(()) if attempt.previous().len() > MOST_REDIRECTS => {
            attempt.error("the image server redirects too often")
        }
        Ok(()) => attempt.follow(),
    })
}

/// Resolves names like the operating system, and drops addresses that are not allowed.
pub(super) struct Resolver(pub(super) AllowedHosts);

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

/// Finds the `HostRefused` among the causes of an error.
pub(super) fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a HostRefused> {
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
