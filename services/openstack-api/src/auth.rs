//! How callers prove who they are.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::limits::Door;
use crate::{ApiError, Caller, Htpasswd, Keystone, Scheme};

/// How callers prove who they are.
#[derive(Clone, Debug)]
pub enum Auth {
    /// Not at all: for a listener that only this machine can reach.
    None,
    /// By HTTP basic authentication (RFC 7617).
    HttpBasic(Arc<Htpasswd>),
    /// By a token of Keystone's.
    Keystone(Arc<Keystone>),
}

/// Where passwords and tokens may pass in the clear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlainHttp {
    /// Within this machine.
    #[default]
    Loopback,
    /// On any network: something else guards it.
    Anywhere,
}

/// A listener that must not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exposed {
    /// Anyone on the network could do anything.
    #[error(
        "{address} can be reached from the network and no authentication is configured: listen on 127.0.0.1, or set auth"
    )]
    Open {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// Anyone on the way could read passwords and tokens.
    #[error(
        "{address} can be reached from the network, and passwords and tokens would pass in the clear: set certificate and key, listen on 127.0.0.1, or set plain_http = \"anywhere\""
    )]
    Clear {
        /// Where it was to listen.
        address: SocketAddr,
    },
}

impl Auth {
    /// Whether a listener at `address` may be opened: without authentication only on loopback, and in the clear elsewhere
    /// only where that was asked for.
    pub fn check_listener(
        &self,
        address: SocketAddr,
        scheme: Scheme,
        plain: PlainHttp,
    ) -> Result<(), Exposed> {
        if address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        match (self, scheme, plain) {
            (Auth::None, ..) => Err(Exposed::Open { address }),
            (_, Scheme::Http, PlainHttp::Loopback) => Err(Exposed::Clear { address }),
            (_, Scheme::Https, _) | (_, _, PlainHttp::Anywhere) => Ok(()),
        }
    }

    /// What is said to those who are not let in: `WWW-Authenticate`.
    pub fn challenge(&self, realm: &str) -> String {
        match self {
            Auth::None | Auth::HttpBasic(_) => format!("Basic realm=\"{realm}\""),
            // As keystonemiddleware says it.
            Auth::Keystone(keystone) => format!("Keystone uri=\"{}\"", keystone.url()),
        }
    }

    /// Refuses a project in this field that there is not. Without a Keystone any word is one, and so it is where the one that is
    /// asked does not let us look.
    ///
    /// # Errors
    ///
    /// That there is none, or that nobody can tell now.
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

    /// Who sent these headers.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        door: &Door,
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
    door: &Door,
) -> Result<Caller, ApiError> {
    let (name, password) = credentials(headers).ok_or_else(ApiError::unauthorized)?;
    if users.is_known(&name, &password) {
        return Ok(Caller::named(name));
    }
    // However many requests show it at once, it is tried once if it is right.
    let _alone = users.alone(&name, &password).await;
    if users.is_known(&name, &password) {
        return Ok(Caller::named(name));
    }
    let guess = door.queue(Some(&name))?.turn().await;
    let (claimed, file) = (name.clone(), users.clone());
    let turn = users.guesses.clone().acquire_owned().await;
    let trying = tokio::task::spawn_blocking(move || {
        // It goes on when whoever guessed hangs up, and counts until then.
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

/// Name and password of an `Authorization: Basic` header.
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
    use super::*;

    fn door() -> Door {
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
                assert_eq!(got, Err(Exposed::Open { address }));
            }
        }
    }

    #[test]
    fn passwords_pass_in_the_clear_only_where_that_was_asked_for() {
        let address = "10.0.0.1:6385".parse().unwrap();
        let check = |scheme, plain| some().check_listener(address, scheme, plain);
        assert_eq!(check(Scheme::Http, PlainHttp::Loopback), Err(Exposed::Clear { address }));
        assert_eq!(check(Scheme::Http, PlainHttp::Anywhere), Ok(()));
        assert_eq!(check(Scheme::Https, PlainHttp::Loopback), Ok(()));
    }

    #[tokio::test]
    async fn who_hangs_up_does_not_guess_more_at_once() {
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
    async fn only_a_proven_name_is_let_in() {
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
