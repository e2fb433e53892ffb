//! A session as text that only the cookie of the session opens: sealed by AES-256-GCM with a key that derives from the cookie.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::session::{Credential, Session};

/// The purpose of the key.
const PURPOSE: &[u8] = b"bedplate console session";

/// The operating system provides no randomness, or the session is too large.
#[derive(Debug, thiserror::Error)]
#[error("cannot seal the session")]
pub(crate) struct SealFailed;

/// The fields of a session. Its lifetime is stored beside it.
#[derive(Serialize, Deserialize)]
struct Content {
    name: String,
    account: String,
    project: Option<String>,
    /// The user name of a password; `None` for a token.
    user: Option<String>,
    secret: String,
    former_tokens: Vec<String>,
    baremetal: Option<Url>,
    clusters: Option<Url>,
}

/// The id under which the session of a cookie is stored.
pub(crate) fn id(cookie: &str) -> String {
    hex::encode(digest(&SHA256, cookie.as_bytes()))
}

/// Seals a session for its cookie.
pub(crate) fn seal(cookie: &str, session: &Session) -> Result<String, SealFailed> {
    seal_text(cookie, serde_json::to_vec(&content(session)).map_err(|_| SealFailed)?)
}

fn seal_text(cookie: &str, mut text: Vec<u8>) -> Result<String, SealFailed> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).map_err(|_| SealFailed)?;
    let key = key(cookie).ok_or(SealFailed)?;
    let (used, about) = (Nonce::assume_unique_for_key(nonce), Aad::from(id(cookie)));
    key.seal_in_place_append_tag(used, about, &mut text).map_err(|_| SealFailed)?;
    Ok(hex::encode(nonce) + &hex::encode(text))
}

/// Opens a session that was sealed for this cookie.
pub(crate) fn open(cookie: &str, sealed: &str) -> Option<Session> {
    let mut sealed = hex::decode(sealed).ok()?;
    let (nonce, text) = sealed.split_at_mut_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let text = key(cookie)?.open_in_place(nonce, Aad::from(id(cookie)), text).ok()?;
    let content: Content = serde_json::from_slice(text).ok()?;
    let secret = SecretString::from(content.secret);
    Some(Session {
        name: content.name,
        account: content.account,
        project: content.project,
        credential: match content.user {
            Some(user) => Credential::Password(user, secret),
            None => Credential::Token(secret),
        },
        former_tokens: content.former_tokens.into_iter().map(SecretString::from).collect(),
        baremetal: content.baremetal,
        clusters: content.clusters,
        lifetime: None,
    })
}

fn key(cookie: &str) -> Option<LessSafeKey> {
    let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, cookie.as_bytes()), PURPOSE);
    Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, derived.as_ref()).ok()?))
}

fn content(session: &Session) -> Content {
    let (user, secret) = match &session.credential {
        Credential::Password(user, password) => (Some(user.clone()), password),
        Credential::Token(token) => (None, token),
    };
    let text = |secret: &SecretString| secret.expose_secret().to_owned();
    Content {
        name: session.name.clone(),
        account: session.account.clone(),
        project: session.project.clone(),
        user,
        secret: text(secret),
        former_tokens: session.former_tokens.iter().map(text).collect(),
        baremetal: session.baremetal.clone(),
        clusters: session.clusters.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(credential: Credential) -> Session {
        Session {
            name: "Ann".to_owned(),
            account: "ann".to_owned(),
            project: Some("p".to_owned()),
            credential,
            former_tokens: vec!["former".into()],
            baremetal: Some(Url::parse("http://machines/").unwrap()),
            clusters: None,
            lifetime: None,
        }
    }

    #[test]
    fn a_session_is_opened_by_its_cookie_alone() {
        let credentials =
            [Credential::Token("t0ken".into()), Credential::Password("ann".into(), "pass".into())];
        for credential in credentials {
            let before = session(credential);
            let sealed = seal("cookie", &before).unwrap();
            assert_ne!(sealed, seal("cookie", &before).unwrap(), "each has its own nonce");
            let after = open("cookie", &sealed).unwrap();
            assert_eq!((after.name, after.account), (before.name, before.account));
            assert_eq!((after.project, after.baremetal), (before.project, before.baremetal));
            assert_eq!(after.former_tokens[0].expose_secret(), "former");
            match (after.credential, before.credential) {
                (Credential::Token(after), Credential::Token(before)) => {
                    assert_eq!(after.expose_secret(), before.expose_secret());
                }
                (Credential::Password(user, after), Credential::Password(_, before)) => {
                    assert_eq!(user, "ann");
                    assert_eq!(after.expose_secret(), before.expose_secret());
                }
                (Credential::Token(_) | Credential::Password(..), _) => panic!("another kind"),
            }
            assert!(open("other", &sealed).is_none());
            assert!(open("cookie", &format!("{sealed}00")).is_none());
            assert!(open("cookie", "00").is_none());
        }
    }

    /// The session of the cookie `cookie` as version 0.1.0 sealed it. Consoles of several versions share their sessions.
    const OF_VERSION_0_1: &str = "000102030405060708090a0ba502fe0d565b761664f278f4e3fe8dfa6d1d5b3f3e620ed1c1bbc16622dce61f\
        22e7bba8cbda4f34932fff38faca3f8b79816b11d042fccf86ce39d06c48e4fe678655ba09995c393edbfc63\
        c0a977c824b6c4aa7f4cdda8d6df36f012217996ab539fa1ab1f50cadda64c1b29538a516aa1c62369bbec8b\
        da055a51e1f8d467099be2c673b9cafa89a3db68e62a45ab31d571fb87434b4a47aa3fdf2421852abcd558";

    #[test]
    fn a_session_of_a_console_of_another_version_is_opened() {
        let opened = open("cookie", OF_VERSION_0_1).unwrap();
        assert_eq!((opened.name.as_str(), opened.project.as_deref()), ("Ann", Some("p")));
        assert!(matches!(opened.credential, Credential::Token(_)));
        // A newer console may write more, and a field may be missing.
        let mut content =
            serde_json::to_value(content(&session(Credential::Token("t0ken".into())))).unwrap();
        content["newer"] = true.into();
        content.as_object_mut().unwrap().remove("clusters");
        let sealed = seal_text("cookie", content.to_string().into_bytes()).unwrap();
        assert_eq!(open("cookie", &sealed).unwrap().account, "ann");
    }
}
