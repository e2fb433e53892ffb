//! Posts each notice, signed, to a webhook. The address of the webhook is checked before the connection is made.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use url::{Host, Url};
use uuid::Uuid;

use crate::config::{SetupError, WebhookConfig, WebhookTarget, secret};
use crate::trust;
use crate::unsent::SendError;

/// How long sending one notice may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Header with the signature: `t=SECONDS,v1=HEX`, with HEX the HMAC-SHA256 of `SECONDS.BODY`.
const SIGNATURE: &str = "bedplate-signature";
/// Header with the id of the notice, which is in the body too.
const NOTICE: &str = "bedplate-notice";

pub(crate) struct Webhook {
    client: Client,
    url: Url,
    secret: SecretString,
}

impl Webhook {
    pub(crate) fn new(config: &WebhookConfig) -> Result<Webhook, SetupError> {
        let target = &config.target;
        let client = client(target)?;
        Ok(Webhook { client, url: target.url.clone(), secret: secret(&config.secret_file)? })
    }

    /// Posts one notice. Only the status of the answer counts; the body is not read.
    pub(crate) async fn send(&self, id: Uuid, body: &str, now: Timestamp) -> Result<(), SendError> {
        let call = self.client.post(self.url.clone());
        let call = call
            .header("content-type", "application/json")
            .header(NOTICE, id.to_string())
            .header(SIGNATURE, signature(&self.secret, body, now))
            .body(body.to_owned());
        let answer = call.send().await.map_err(|error| SendError::Unreachable(why(&error)))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                Err(SendError::Unreachable(format!("the webhook answered {status}")))
            }
            status => Err(SendError::Refused(format!("the webhook answered {status}"))),
        }
    }
}

/// Makes the client for a webhook, which connects to no address that the configuration does not permit.
pub(crate) fn client(target: &WebhookTarget) -> Result<Client, SetupError> {
    let literal = match target.url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) | None => None,
    };
    if let Some(address) = literal.filter(|address| !target.allow_local && is_local(*address)) {
        return Err(SetupError::Local { address });
    }
    let tls = trust::client(&trust::authorities(target.ca_file.as_deref())?)?;
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent("bedplate")
        // A redirect could lead to an address that was not checked.
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(0)
        .timeout(TIMEOUT)
        .dns_resolver(Resolver { allow_local: target.allow_local })
        .build()?;
    Ok(client)
}

/// The value of the signature header for `body`.
fn signature(secret: &SecretString, body: &str, now: Timestamp) -> String {
    let seconds = now.as_second();
    let key = secret.expose_secret().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("{seconds}.{body}").as_bytes());
    format!("t={seconds},v1={}", hex::encode(mac.finalize().into_bytes()))
}

/// The innermost cause, without the URL.
pub(crate) fn why(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", TIMEOUT.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Resolves names to allowed addresses only. The HTTP client connects to exactly these addresses and does not resolve again, so a changed
/// DNS answer cannot bypass the check.
struct Resolver {
    allow_local: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_local = self.allow_local;
        Box::pin(async move {
            let all = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let may: Vec<SocketAddr> =
                all.filter(|address| allow_local || !is_local(address.ip())).collect();
            if may.is_empty() {
                return Err("the name resolves only to loopback or link-local addresses".into());
            }
            Ok(Box::new(may.into_iter()) as Addrs)
        })
    }
}

/// Whether the address is loopback, link-local, unspecified, multicast or broadcast: no address of a webhook.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.octets().first() == Some(&0)
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped().or_else(|| nat64(v6)) {
            Some(v4) => is_local(IpAddr::V4(v4)),
            None => {
                v6.is_loopback()
                    || v6.is_unspecified()
                    || v6.is_multicast()
                    || v6.is_unicast_link_local()
            }
        },
    }
}

/// The IPv4 address embedded in an address with the well-known NAT64 prefix (RFC 6052).
fn nat64(address: std::net::Ipv6Addr) -> Option<std::net::Ipv4Addr> {
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else { return None };
    Some(std::net::Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_recognised_in_every_notation() {
        let near = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
        ];
        for raw in near {
            assert!(is_local(raw.parse().unwrap()), "{raw}");
        }
        for raw in ["10.0.0.1", "192.0.2.1", "2001:db8::1", "fd00::1", "::ffff:192.0.2.1"] {
            assert!(!is_local(raw.parse().unwrap()), "{raw}");
        }
    }

    #[test]
    fn a_signature_is_an_hmac_of_time_and_body() {
        // printf '7.{}' | openssl dgst -sha256 -hmac key
        let signed = signature(&"key".into(), "{}", Timestamp::from_second(7).unwrap());
        let want = "t=7,v1=77bc83bd1f40422311e47918b203449aecf84b02c1568bb1b570ac2a474cc2d8";
        assert_eq!(signed, want);
    }
}
