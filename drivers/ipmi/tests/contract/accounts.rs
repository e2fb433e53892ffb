//! Tests of accounts that cannot log in, or lack privileges.

use std::time::Duration;

use bmc::BmcError;
use ipmi::{CipherSuite, Connector, Privilege, Target};

use crate::ipmi_sim::IpmiSim;

async fn refusal(target: Target) -> BmcError {
    let connector = Connector::bind().await.unwrap();
    connector.client(target).device_id().await.unwrap_err()
}

#[tokio::test]
async fn a_wrong_password_is_unauthorized() {
    let Some(sim) = IpmiSim::start() else { return };
    let target = Target { password: "guess".to_owned().into(), ..sim.endpoint().target() };
    let error = refusal(target).await;
    assert!(matches!(error, BmcError::Unauthorized { .. }), "{error:?}");
}

#[tokio::test]
async fn an_unknown_user_is_unauthorized() {
    let Some(sim) = IpmiSim::start() else { return };
    let target = Target { username: "nobody".to_owned(), ..sim.endpoint().target() };
    let error = refusal(target).await;
    assert!(matches!(error, BmcError::Unauthorized { .. }), "{error:?}");
}

#[tokio::test]
async fn a_request_beyond_the_accounts_privilege_is_unauthorized() {
    let Some(sim) = IpmiSim::start() else { return };
    let target = sim.endpoint().target();
    let reader = Target { username: "reader".to_owned(), privilege: Privilege::User, ..target };
    let connector = Connector::bind().await.unwrap();
    let bmc = connector.bmc(reader);
    assert!(bmc.power.state().await.is_ok());
    let error = bmc.power.request(hardware::PowerChange::On).await.unwrap_err();
    assert!(matches!(error, BmcError::Unauthorized { .. }), "{error:?}");
}

#[tokio::test]
async fn the_password_of_the_account_is_changed() {
    let Some(sim) = IpmiSim::start() else { return };
    let target = sim.endpoint().target();
    let connector = Connector::bind().await.unwrap();
    let account = connector.bmc(target.clone()).account.unwrap();
    assert!(account.try_password().await.unwrap());
    let new = "Aa1-Bb2-Cc3-Dd4-";
    assert!(account.password_length().await.unwrap().contains(&new.len()));
    account.set_password(new).await.unwrap();
    assert!(!account.try_password().await.unwrap());
    let account = connector.bmc(Target { password: new.into(), ..target }).account.unwrap();
    assert!(account.try_password().await.unwrap());
}

#[tokio::test]
async fn a_password_too_long_for_ipmi_is_refused_before_sending() {
    let target = Target {
        address: ([127, 0, 0, 1], 9).into(),
        username: "admin".to_owned(),
        password: "123456789012345678901".to_owned().into(),
        cipher_suite: None,
        privilege: Privilege::Operator,
        timeout: Duration::from_secs(60),
    };
    let error = refusal(target).await.to_string();
    let want = "this BMC cannot take a password of more than 20 bytes, the limit of IPMI";
    assert_eq!(error, want);
}

#[tokio::test]
async fn the_weaker_suite_is_used_only_if_allowed() {
    let Some(sim) = IpmiSim::start() else { return };
    let either = Target { cipher_suite: None, ..sim.endpoint().target() };
    let connector = Connector::bind().await.unwrap();
    assert!(connector.client(either.clone()).device_id().await.is_ok());

    // ipmi_sim does not report an unsupported suite; it stays silent.
    let timeout = Duration::from_secs(2);
    let suite = Some(CipherSuite::Seventeen);
    let error = refusal(Target { cipher_suite: suite, timeout, ..either }).await;
    let BmcError::Unreachable { source, .. } = error else { panic!("{error:?}") };
    let want = "it is there, but does not answer a request to open a session; it may not know the \
        cipher suite";
    assert_eq!(source.to_string(), want);
}

#[tokio::test]
async fn a_missing_bmc_is_unreachable_in_time() {
    let Some(sim) = IpmiSim::start() else { return };
    let target = Target { timeout: Duration::from_millis(700), ..sim.endpoint().target() };
    drop(sim);
    let error = refusal(target).await;
    assert!(matches!(error, BmcError::Unreachable { .. }), "{error:?}");
    assert!(error.is_transient());
}
