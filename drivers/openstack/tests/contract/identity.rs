//! Stories about Keystone.

use jiff::{SignedDuration, Timestamp};
use openstack::identity::application_credentials::{self, NewApplicationCredential};
use openstack::identity::endpoints::{self, NewEndpoint};
use openstack::identity::trusts::{self, NewTrust};
use openstack::identity::{regions, services, tokens};
use openstack::network::networks;
use openstack::{Auth, CloudConfig, CloudError, Interface, Scope, Session};
use secrecy::SecretString;
use serde_json::json;

use crate::given;

#[tokio::test]
async fn a_session_knows_its_user_and_scope() {
    let (Some(alice), Some(bob)) = (given::session("alice"), given::session("bob")) else { return };
    let (alice, bob) = (alice.identity().await.unwrap(), bob.identity().await.unwrap());
    assert_eq!(alice.user_name, "alice");
    assert!(alice.roles.iter().any(|role| role == "member"), "{alice:?}");
    assert_ne!(alice.project_id, bob.project_id);
    assert!(alice.expires_at.unwrap() > Timestamp::now());
}

/// Requests a separate token, like one that a caller of our services sends.
async fn token(config: &CloudConfig, password: &str) -> SecretString {
    let url = format!("{}/auth/tokens", config.auth_url.as_str().trim_end_matches('/'));
    let alice = json!({"name": "alice", "domain": {"name": "Default"}, "password": password});
    let identity = json!({"methods": ["password"], "password": {"user": alice}});
    let project = json!({"name": "tenant-a", "domain": {"name": "Default"}});
    let body = json!({"auth": {"identity": identity, "scope": {"project": project}}});
    let answer = openstack_client().post(url).json(&body).send().await.unwrap();
    answer.headers()["x-subject-token"].to_str().unwrap().into()
}

fn openstack_client() -> reqwest::Client {
    let provider = rustls::crypto::ring::default_provider();
    let config = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(config).no_proxy().build().unwrap()
}

#[tokio::test]
async fn a_valid_token_is_recognized_and_an_invalid_one_is_not() {
    let (Some(admin), Some(config)) = (given::session("admin"), given::config("alice")) else {
        return;
    };
    let Auth::Password { password, .. } = &config.auth else { panic!("alice has a password") };
    let token = token(&config, secrecy::ExposeSecret::expose_secret(password)).await;
    let known = tokens::validate(&admin, &token).await.unwrap().expect("alice's token");
    assert_eq!(known.user_name, "alice");
    assert_eq!(known.project_name.as_deref(), Some("tenant-a"));
    assert!(known.roles.iter().any(|role| role == "member"), "{known:?}");
    assert_eq!(tokens::validate(&admin, &"no-such-token".into()).await.unwrap(), None);
}

#[tokio::test]
async fn an_application_credential_works_until_it_is_deleted() {
    let (Some(alice), Some(config)) = (given::session("alice"), given::config("alice")) else {
        return;
    };
    let (name, _tidy) = given::named("alice");
    let new = NewApplicationCredential {
        name: name.clone(),
        description: "a contract test's".to_owned(),
        secret: "chosen-by-us".into(),
        roles: vec!["member".to_owned()],
        access_rules: Vec::new(),
        expires_at: Some(Timestamp::now() + SignedDuration::from_hours(1)),
    };
    let made = application_credentials::create(&alice, &new).await.unwrap();
    assert_eq!(made.project_id, alice.identity().await.unwrap().project_id);
    assert!(made.expires_at.is_some());
    let again = application_credentials::create(&alice, &new).await.unwrap_err();
    assert!(again.is_conflict(), "{again:?}");
    let found = application_credentials::find(&alice, &name).await.unwrap().unwrap();
    assert_eq!(found.id, made.id);
    assert_eq!(application_credentials::find(&alice, "no-such-name").await.unwrap(), None);

    let as_it = |secret: &str| {
        let mut config = config.clone();
        let credential = made.id.clone();
        config.auth = Auth::ApplicationCredential { credential, user: None, secret: secret.into() };
        Session::new(config).unwrap()
    };
    let it = as_it("chosen-by-us");
    let who = it.identity().await.unwrap();
    assert_eq!(who.user_name, "alice");
    assert!(who.roles.iter().any(|role| role == "member"), "{who:?}");
    assert!(!who.roles.iter().any(|role| role.starts_with("load-balancer")), "{who:?}");
    networks::external(&it).await.unwrap();
    let wrong = as_it("guessed").identity().await.unwrap_err();
    assert!(matches!(wrong, CloudError::Unauthorized(_)), "{wrong:?}");
    assert!(!format!("{wrong:?} {wrong}").contains("guessed"));

    application_credentials::delete(&alice, &made.id).await.unwrap();
    application_credentials::delete(&alice, &made.id).await.unwrap();
    let ended = as_it("chosen-by-us").identity().await.unwrap_err();
    assert!(matches!(ended, CloudError::Unauthorized(_) | CloudError::NotFound(_)), "{ended:?}");
}

#[tokio::test]
async fn a_trust_lets_bob_act_for_alice_until_it_is_deleted() {
    let (Some(alice), Some(bob)) = (given::session("alice"), given::session("bob")) else { return };
    let bob_id = bob.identity().await.unwrap().user_id;
    let ends = Some(Timestamp::now() + SignedDuration::from_hours(1));
    let new = NewTrust {
        trustee_user_id: bob_id.clone(),
        roles: vec!["member".to_owned()],
        expires_at: ends,
    };
    let trust = trusts::create(&alice, &new).await.unwrap();
    let found = trusts::find(&alice, &bob_id).await.unwrap();
    assert!(found.iter().any(|one| one.id == trust.id), "{found:?}");
    assert_eq!(trusts::show(&alice, &trust.id).await.unwrap().unwrap().id, trust.id);

    let mut config = given::config("bob").unwrap();
    let Auth::Password { scope, .. } = &mut config.auth else { panic!("bob has a password") };
    *scope = Scope::Trust { id: trust.id.clone() };
    let as_alice = Session::new(config.clone()).unwrap();
    let who = as_alice.identity().await.unwrap();
    assert_eq!(who.project_id, alice.identity().await.unwrap().project_id);
    assert_eq!(who.user_name, "alice", "the trustee acts as the trustor");
    networks::external(&as_alice).await.unwrap();

    trusts::delete(&alice, &trust.id).await.unwrap();
    trusts::delete(&alice, &trust.id).await.unwrap();
    Session::new(config).unwrap().identity().await.unwrap_err();
}

#[tokio::test]
async fn a_service_is_registered_moved_and_removed() {
    let (Some(admin), Some(alice)) = (given::session("admin"), given::session("alice")) else {
        return;
    };
    let (kind, _tidy) = given::named("admin");
    assert_eq!(services::find(&admin, &kind).await.unwrap(), []);
    let refused = services::create(&alice, &kind, "n", "").await.unwrap_err();
    assert!(matches!(refused, CloudError::Forbidden(_)), "{refused:?}");
    let made = services::create(&admin, &kind, "n", "a contract test's").await.unwrap();
    assert!(made.enabled && made.name == "n", "{made:?}");
    let region = regions::list(&admin).await.unwrap().remove(0).id;
    let new = NewEndpoint {
        service_id: made.id.clone(),
        interface: Interface::Public,
        region_id: region.clone(),
        url: "https://one.example/v1".to_owned(),
    };
    let nowhere = NewEndpoint { region_id: given::name(), ..new.clone() };
    let refused = endpoints::create(&admin, &nowhere).await.unwrap_err();
    assert!(matches!(refused, CloudError::Refused(_)), "{refused:?}");
    let endpoint = endpoints::create(&admin, &new).await.unwrap();
    endpoints::set_url(&admin, &endpoint.id, "https://two.example").await.unwrap();
    services::enable(&admin, &made.id).await.unwrap();
    let found = endpoints::list(&admin, &made.id).await.unwrap();
    assert_eq!((found.len(), found[0].url.as_str()), (1, "https://two.example"));
    assert_eq!(
        (found[0].interface.as_str(), found[0].region_id.as_ref()),
        ("public", Some(&region))
    );

    endpoints::delete(&admin, &endpoint.id).await.unwrap();
    services::delete(&admin, &made.id).await.unwrap();
    services::delete(&admin, &made.id).await.unwrap();
    assert_eq!(services::find(&admin, &kind).await.unwrap(), []);
}
