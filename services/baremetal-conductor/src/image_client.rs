//! The HTTP client that reads files which the owner of a node names.
//!
//! Only allowed hosts are asked. A redirect is refused, because it could lead to any host, unless the caller checks redirects itself.

use std::sync::Arc;

use hardware::AllowedHosts;
use redfish::AllowedResolver;
use reqwest::ClientBuilder;
use reqwest::redirect::Policy;

/// Returns a builder for a client of the `allowed` hosts, without time limits.
pub(crate) fn image_client(allowed: &AllowedHosts) -> ClientBuilder {
    ClientBuilder::new()
        .no_proxy()
        .redirect(Policy::none())
        .dns_resolver(Arc::new(AllowedResolver::new(allowed.clone())))
}
