//! Authenticates callers by password or token, and checks that a listener does not expose them.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use crate::limits::CredentialSource;
use crate::{ApiError, Caller, Htpasswd, Keystone, Scheme};

/// Headers with credentials. Marked as sensitive, so that logs of headers do not show them.
pub(crate) const CREDENTIAL_HEADERS: [HeaderName; 3] = [
    AUTHORIZATION,
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-service-token"),
];

/// The way in which the callers of an API authenticate.
#[derive(Clone, Debug)]
pub enum Auth {
    /// Without authentication, for a listener that only this machine can reach.
    None,
    /// HTTP basic authentication (RFC 7617).
    HttpBasic(Arc<Htpasswd>),
    /// Tokens issued by Keystone.
    Keystone(Arc<Keystone>),
}

/// Where passwords and tokens may be sent without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlainHttp {
    /// Only within this machine.
    #[default]
    Loopback,
    /// On any network, because something else protects the connection.
    Anywhere,
}

/// Why a listener must not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenerRefused {
    /// Without authentication, anyone on the network could do anything.
    #[error(
        "{address} is reachable from the network, but no authentication is configured: listen on 127.0.0.1, or set auth"
    )]
    NoAuthentication { address: SocketAddr },
    /// Without TLS, anyone on the path could read passwords and tokens.
    #[error(
        "{address} is reachable from the network, but passwords and tokens would be sent unencrypted: set certificate and key, listen on 127.0.0.1, or set plain_http = \"anywhere\""
    )]
    Unencrypted { address: SocketAddr },
}

impl Auth {
    /// Checks whether a listener may be opened at `address`. On loopback it always may; elsewhere it needs authentication, and TLS unless
    /// `plain` permits otherwise.
    pub fn check_listener(
        &self,
        address: SocketAddr,
        scheme: Scheme,
        plain: PlainHttp,
    ) -> Result<(), ListenerRefused> {
        if address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        match (self, scheme, plain) {
            (Auth::None, ..) => Err(ListenerRefused::NoAuthentication { address }),
            (_, Scheme::Http, PlainHttp::Loopback) => Err(ListenerRefused::Unencrypted { address }),
            (_, Scheme::Https, _) | (_, _, PlainHttp::Anywhere) => Ok(()),
        }
    }

    /// The value of `WWW-Authenticate` in an answer with 401.
    pub fn challenge(&self, realm: &str) -> String {
        match self {
            Auth::None | Auth::HttpBasic(_) => format!("Basic realm=\"{realm}\""),
            // The same format as in keystonemiddleware.
            Auth::Keystone(keystone) => format!("Keystone uri=\"{}\"", keystone.url()),
        }
    }

    /// Checks that the project named in `field` exists. Every project is accepted without Keystone, and also if Keystone does not permit
    /// the service to look up projects.
    ///
    /// # Errors
    ///
    /// 400 if the project does not exist; 503 if Keystone cannot be asked.
    pub async fn check_project(
        &self,
        caller: &Caller,
        field: &str,
        id: &str,
    ) -> Result<(), ApiError> {
        match self {
            Auth::Keystone(keystone) if caller.project() != Some(id) => {
                keystone.check_project(field, id).await
            }
            Auth::None | Auth::HttpBasic(_) | Auth::Keystone(_) => Ok(()),
        }
    }

    /// Authenticates the sender of these headers.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        door: &CredentialSource,
    ) -> Result<Caller, ApiError> {
        match self {
            Auth::None => Ok(Caller::anyone()),
            Auth::HttpBasic(users) => by_password(users, headers, door).await,
            Auth::Keystone(keystone) => keystone.caller(headers, door).await,
        }
    }
}

async fn by_password(
    users: &Arc<Htpasswd>,
    headers: &HeaderMap,
    door: &CredentialSource,
) -> Result<Caller, ApiError> {
    let (name, password) = credentials(headers).ok_or_else(ApiError::unauthorized)?;
    if users.is_known(&name, &password) {
        return Ok(Caller::named(name));
    }
    // If several requests present the same pair at once, only the first one hashes the password; the others find the pair accepted.
    let _alone = users.lock_pair(&name, &password).await;
    if users.is_known(&name, &password) {
        return Ok(Caller::named(name));
    }
    let guess = door.queue(Some(&name))?.turn().await;
    let (claimed, file) = (name.clone(), users.clone());
    let turn = users.guesses.clone().acquire_owned().await;
    let trying = tokio::task::spawn_blocking(move || {
        // The permit is held until the hash is computed, even if the client disconnects. Otherwise a client could start more hashes by
        // disconnecting.
        let _turn = turn;
        file.verify(&claimed, &password)
    });
    let verified = trying.await;
    if !verified.unwrap_or(false) {
        return Err(ApiError::unauthorized());
    }
    guess.forgive();
    Ok(Caller::named(name))
}

/// The name and the password of an `Authorization: Basic` header.
fn credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
    let (scheme, encoded) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut name = STANDARD.decode(encoded.trim()).ok()?;
    let colon = name.iter().position(|byte| *byte == b':')?;
    let password = name.split_off(colon).split_off(1);
    Some((String::from_utf8(name).ok()?, password))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;
    use openstack::{CloudConfig, Identity, RetryPolicy, Session};

    use super::*;

    fn door() -> CredentialSource {
        let (parts, ()) = http::Request::new(()).into_parts();
        crate::limits::Limiter::new(crate::Limits::default()).door(&parts)
    }

    async fn call(auth: &Auth, authorization: Option<&str>) -> Option<Option<String>> {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().unwrap());
        }
        let caller = auth.identify(&headers, &door()).await;
        caller.ok().map(|caller| caller.name().map(str::to_owned))
    }

    fn some() -> Auth {
        let hash = bcrypt::hash("x", 4).unwrap();
        Auth::HttpBasic(Arc::new(Htpasswd::parse(&format!("admin:{hash}")).unwrap()))
    }

    #[test]
    fn without_authentication_only_loopback_is_served() {
        for address in ["127.0.0.1:6385", "[::1]:6385", "[::ffff:127.0.0.1]:6385"] {
            let address = address.parse().unwrap();
            for auth in [Auth::None, some()] {
                assert_eq!(auth.check_listener(address, Scheme::Http, PlainHttp::Loopback), Ok(()));
            }
        }
        for address in ["0.0.0.0:6385", "[::]:6385", "10.0.0.1:6385"] {
            let address = address.parse().unwrap();
            for scheme in [Scheme::Http, Scheme::Https] {
                let got = Auth::None.check_listener(address, scheme, PlainHttp::Anywhere);
                assert_eq!(got, Err(ListenerRefused::NoAuthentication { address }));
            }
        }
    }

    #[test]
    fn passwords_without_tls_need_plain_http_anywhere() {
        let address = "10.0.0.1:6385".parse().unwrap();
        let check = |scheme, plain| some().check_listener(address, scheme, plain);
        assert_eq!(
            check(Scheme::Http, PlainHttp::Loopback),
            Err(ListenerRefused::Unencrypted { address })
        );
        assert_eq!(check(Scheme::Http, PlainHttp::Anywhere), Ok(()));
        assert_eq!(check(Scheme::Https, PlainHttp::Loopback), Ok(()));
    }

    #[tokio::test]
    async fn without_keystone_there_is_a_password_prompt_and_every_project_exists() {
        for auth in [Auth::None, some()] {
            assert_eq!(auth.challenge("Baremetal API"), "Basic realm=\"Baremetal API\"");
            assert_eq!(auth.check_project(&Caller::anyone(), "owner", "p").await, Ok(()));
        }
    }

    /// A Keystone at an address where nothing listens.
    fn unreachable_keystone() -> Auth {
        let clouds = "clouds: {c: {auth: {auth_url: 'http://127.0.0.1:1/', username: u, password: p, \
                      project_name: p, user_domain_name: d, project_domain_name: d}}}";
        let config = CloudConfig::from_clouds_yaml(clouds, None).unwrap();
        let url = "https://keystone.example/".parse().unwrap();
        let patience = RetryPolicy { attempts: 1, ..config.patience };
        let session = Session::new(CloudConfig { patience, ..config }).unwrap();
        Auth::Keystone(Arc::new(Keystone::new(session, &url, Duration::ZERO)))
    }

    #[tokio::test]
    async fn keystone_is_asked_for_projects_other_than_the_callers_own() {
        let keystone = unreachable_keystone();
        assert_eq!(keystone.challenge("any"), "Keystone uri=\"https://keystone.example\"");
        let identity = Identity { project_id: Some("own".to_owned()), ..Identity::default() };
        let caller = Caller::known(Arc::new(identity), None);
        assert_eq!(keystone.check_project(&caller, "owner", "own").await, Ok(()));
        let refused = keystone.check_project(&caller, "owner", "other").await.unwrap_err();
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test]
    async fn a_disconnected_client_keeps_its_guessing_permit() {
        let hash = bcrypt::hash("x", 13).unwrap();
        let users = Arc::new(Htpasswd::parse(&format!("admin:{hash}")).unwrap());
        let (auth, all) = (Auth::HttpBasic(users.clone()), users.guesses.available_permits());
        let guess = format!("Basic {}", STANDARD.encode("admin:wrong"));
        let guessing = tokio::spawn(async move { call(&auth, Some(&guess)).await });
        while users.guesses.available_permits() == all {
            tokio::task::yield_now().await;
        }
        guessing.abort();
        assert!(guessing.await.unwrap_err().is_cancelled());
        assert_eq!(users.guesses.available_permits(), all - 1, "the guess is being tried");
        let _turns = users.guesses.acquire_many(u32::try_from(all).unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn only_a_verified_name_is_let_in() {
        let hash = bcrypt::hash("pass:word", 4).unwrap();
        let users = Htpasswd::parse(&format!("admin:{hash}")).unwrap();
        let auth = Auth::HttpBasic(Arc::new(users));
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));

        for _ in 0..2 {
            let good = basic("admin:pass:word");
            assert_eq!(call(&auth, Some(&good)).await, Some(Some("admin".to_owned())));
        }
        for bad in
            [basic("admin:"), basic("admin:password"), basic("root:pass:word"), basic("admin")]
        {
            assert_eq!(call(&auth, Some(&bad)).await, None);
        }
        assert_eq!(call(&auth, None).await, None);
        for bad in ["Basic", "Basic !!", "Bearer abc", ""] {
            assert_eq!(call(&auth, Some(bad)).await, None);
        }
        assert_eq!(call(&Auth::None, None).await, Some(None));
    }
}
