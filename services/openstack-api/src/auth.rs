//! Who is asking.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::{ApiError, Htpasswd};

/// How callers prove who they are.
#[derive(Clone, Debug)]
pub enum Auth {
    /// Not at all: for a listener that only this machine can reach.
    None,
    /// By HTTP basic authentication (RFC 7617).
    HttpBasic(Arc<Htpasswd>),
}

/// Anyone on the network could do anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address} can be reached from the network and no authentication is configured: listen on 127.0.0.1 or name a password file"
)]
pub struct Exposed {
    /// Where it was to listen.
    pub address: SocketAddr,
}

impl Auth {
    /// Whether a listener at `address` may be opened: without authentication only on loopback.
    pub fn check_listener(&self, address: SocketAddr) -> Result<(), Exposed> {
        match self {
            Auth::None if !address.ip().to_canonical().is_loopback() => Err(Exposed { address }),
            Auth::None | Auth::HttpBasic(_) => Ok(()),
        }
    }
}

/// Someone who may call. There is no other way to make one than to have been let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name that was proven; `None` where nobody asks for one.
    name: Option<String>,
}

impl Caller {
    /// The name that was proven; `None` where nobody asks for one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Auth::HttpBasic(users) = Auth::from_ref(state) else {
            return Ok(Caller { name: None });
        };
        let (name, password) = credentials(&parts.headers).ok_or_else(ApiError::unauthorized)?;
        if users.is_known(&name, &password) {
            return Ok(Caller { name: Some(name) });
        }
        let (claimed, file) = (name.clone(), users.clone());
        let _turn = users.guesses.acquire().await;
        let verified = tokio::task::spawn_blocking(move || file.verify(&claimed, &password)).await;
        if verified.unwrap_or(false) {
            Ok(Caller { name: Some(name) })
        } else {
            Err(ApiError::unauthorized())
        }
    }
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
    use axum::body::Body;
    use http::Request;

    use super::*;

    #[derive(Clone)]
    struct State(Auth);

    impl FromRef<State> for Auth {
        fn from_ref(state: &State) -> Auth {
            state.0.clone()
        }
    }

    async fn call(auth: &Auth, authorization: Option<&str>) -> Option<Option<String>> {
        let mut request = Request::get("/v1/nodes");
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let (mut parts, _) = request.body(Body::empty()).unwrap().into_parts();
        let caller = Caller::from_request_parts(&mut parts, &State(auth.clone())).await;
        caller.ok().map(|caller| caller.name)
    }

    #[test]
    fn without_authentication_only_loopback_is_served() {
        for address in ["127.0.0.1:6385", "[::1]:6385", "[::ffff:127.0.0.1]:6385"] {
            assert_eq!(Auth::None.check_listener(address.parse().unwrap()), Ok(()));
        }
        for address in ["0.0.0.0:6385", "[::]:6385", "10.0.0.1:6385"] {
            assert!(Auth::None.check_listener(address.parse().unwrap()).is_err(), "{address}");
        }
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
