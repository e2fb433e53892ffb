//! Where an image server may be, and where it may lead.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use hardware::{AllowedHosts, HostRefused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::Url;

/// As many as reqwest follows by itself.
const MOST_REDIRECTS: usize = 10;

/// Refuses a URL whose host no image may come from. Of a name, the resolver looks at the addresses.
pub(super) fn check(allowed: &AllowedHosts, url: &Url) -> Result<(), HostRefused> {
    allowed.check(url.host_str().unwrap_or_default())
}

/// Follows redirects to hosts that images may come from, and to no other.
pub(super) fn redirects(allowed: AllowedHosts) -> Policy {
    Policy::custom(move |attempt| match check(&allowed, attempt.url()) {
        Err(why) => attempt.error(why),
        Ok(()) if attempt.previous().len() > MOST_REDIRECTS => {
            attempt.error("the image server redirects too often")
        }
        Ok(()) => attempt.follow(),
    })
}

/// Resolves as the system does, and leaves out the addresses that no image may come from.
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

/// The refusal among the causes of an error, if it is one.
pub(super) fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a HostRefused> {
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
