//! Tests with BMCs that send wrong, endless or misleading answers, or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::fixture::{Fixture, PASSWORD, empty, json, refusal, silent};
use axum::response::{IntoResponse, Response};
use bmc::{Bmc, BmcError};
use hardware::{AllowedHosts, PowerChange, PowerState};
use redfish::{Auth, Connector, Target, Trust};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const TREE: &str = include_str!("trees/dell.json");
const SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";

/// Returns the error of reading the power state if the system's resource answers with `answer`.
async fn state_when(answer: impl Fn() -> Response + Send + 'static) -> BmcError {
    let fixture = Fixture::serve(TREE, move |asked, _| (asked.path == SYSTEM).then(&answer)).await;
    fixture.bmc(Auth::Basic).power.state().await.unwrap_err()
}

#[tokio::test]
async fn redirects_are_refused() {
    let away =
        || (axum::http::StatusCode::FOUND, [("location", "http://10.9.9.9/")]).into_response();
    let error = state_when(away).await;
    assert_eq!(
        error.to_string(),
        format!("the BMC refused GET {SYSTEM}: 302 Found (redirects are not followed)")
    );
}

#[tokio::test]
async fn endless_bodies_are_cut_off() {
    let flood = || "x".repeat(2 << 20).into_response();
    let error = state_when(flood).await;
    assert_eq!(
        error.to_string(),
        format!("cannot read the BMC's answer to GET {SYSTEM}: it is larger than 1 MiB")
    );
}

#[tokio::test]
async fn an_unreadable_answer_is_malformed() {
    for body in ["", "<html>", "[1]", "{\"a\""] {
        let error = state_when(move || body.into_response()).await;
        assert!(matches!(error, BmcError::Malformed { .. }), "{body}: {error:?}");
    }
}

#[tokio::test]
async fn a_null_power_state_is_transient() {
    let error = state_when(|| json(200, json!({"PowerState": null}))).await;
    assert!(matches!(error, BmcError::Busy { .. }) && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn links_to_another_host_are_not_followed() {
    let trap = Fixture::serve(TREE, silent).await;
    let elsewhere = trap.address.join(SYSTEM).unwrap();
    let fixture = Fixture::serve(TREE, move |asked, _| {
        (asked.path == "/redfish/v1/Systems")
            .then(|| json(200, json!({"Members": [{"@odata.id": elsewhere}]})))
    })
    .await;
    let error = fixture.bmc(Auth::Basic).power.state().await.unwrap_err();
    assert!(error.to_string().ends_with("the link leads to another host than the BMC"), "{error}");

    let elsewhere = trap.address.join("/reset").unwrap();
    let fixture = Fixture::serve(TREE, move |asked, tree| {
        tree.get_mut(SYSTEM).unwrap()["Actions"]["#ComputerSystem.Reset"]["target"] =
            json!(elsewhere);
        (asked.method == "POST").then(|| empty(204))
    })
    .await;
    let refused = fixture.bmc(Auth::Basic).power.request(PowerChange::ForceOff).await;
    assert!(matches!(refused, Err(BmcError::Unsupported { .. })), "{refused:?}");
    assert!(trap.asked().is_empty());
    assert_eq!(fixture.changes(), "");
}

#[tokio::test]
async fn retry_after_is_respected() {
    let fixture = Fixture::serve(TREE, |asked, _| {
        (asked.path == SYSTEM).then(|| {
            (
                [("retry-after", "30")],
                refusal(503, "Base.1.8.ServiceTemporarilyUnavailable", "starting"),
            )
                .into_response()
        })
    })
    .await;
    let bmc = fixture.bmc(Auth::Basic);
    let first = bmc.power.state().await.unwrap_err();
    assert!(first.to_string().contains("starting (the BMC asks for a retry in 30 s)"), "{first}");
    let second = bmc.power.state().await.unwrap_err();
    assert!(second.to_string().contains("no requests for another"), "{second}");
    assert!(matches!(second, BmcError::Busy { .. }));
    assert_eq!(fixture.count("GET", SYSTEM), 1);
}

#[tokio::test]
async fn silence_is_unreachable_after_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let error = bmc_at(&address).power.state().await.unwrap_err();
    let BmcError::Unreachable { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "no answer within 0.2 s");
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = bmc_at(&address).power.state().await.unwrap_err();
    let BmcError::Unreachable { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut peer, _) = listener.accept().await.unwrap();
        let _ = peer.read(&mut [0; 1024]).await;
        let _ = peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"Sys").await;
    });
    let error = bmc_at(&address).power.state().await.unwrap_err();
    server.await.unwrap();
    assert!(matches!(error, BmcError::Unreachable { .. }), "{error:?}");
}

fn bmc_at(address: &str) -> Bmc {
    Connector::new(b"", AllowedHosts::anywhere()).unwrap().bmc(Target {
        address: address.parse().unwrap(),
        system: None,
        username: "root".to_owned(),
        password: PASSWORD.into(),
        auth: Auth::Auto,
        trust: Trust::Authorities,
        timeout: Duration::from_millis(200),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bmc_sees_one_request_at_a_time() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, peak) = (now.clone(), most.clone());
    let app = axum::Router::new().fallback(move || {
        let (now, most) = (counted.clone(), peak.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            json(200, json!({"PowerState": "On", "Systems": {"@odata.id": "/s"}}))
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let bmc = Connector::new(b"", AllowedHosts::anywhere()).unwrap().bmc(Target {
        address: address.parse().unwrap(),
        system: Some("/s".to_owned()),
        username: String::new(),
        password: "".into(),
        auth: Auth::Basic,
        trust: Trust::Unverified,
        timeout: Duration::from_secs(5),
    });
    let asking = (0..20).map(|_| {
        let bmc = bmc.clone();
        tokio::spawn(async move { bmc.power.state().await.unwrap() })
    });
    for asked in asking.collect::<Vec<_>>() {
        assert_eq!(asked.await.unwrap(), PowerState::On);
    }
    server.abort();
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn several_systems_need_a_configured_path() {
    let fixture = Fixture::serve(TREE, |asked, _| {
        let two =
            json!({"Members": [{"@odata.id": "/redfish/v1/Systems/1"}, {"@odata.id": SYSTEM}]});
        (asked.path == "/redfish/v1/Systems").then(|| json(200, two))
    })
    .await;
    let error = fixture.bmc(Auth::Basic).power.state().await.unwrap_err();
    assert!(error.to_string().contains("which of its 2 systems is meant"), "{error}");

    let named = Target { system: Some(SYSTEM.to_owned()), ..fixture.target(Auth::Basic) };
    let bmc = Connector::new(b"", AllowedHosts::anywhere()).unwrap().bmc(named);
    assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
}

#[tokio::test]
async fn a_moved_resource_is_discovered_again() {
    const NEW: &str = "/redfish/v1/Systems/New";
    let moved = Arc::new(AtomicBool::new(false));
    let has_moved = moved.clone();
    let fixture = Fixture::serve(TREE, move |asked, tree| {
        let at = if has_moved.load(Ordering::SeqCst) { NEW } else { SYSTEM };
        if at == NEW
            && let Some(system) = tree.remove(SYSTEM)
        {
            tree.insert(NEW.to_owned(), system);
        }
        let listed = json!({"Members": [{"@odata.id": at}]});
        (asked.path == "/redfish/v1/Systems").then(|| json(200, listed))
    })
    .await;
    let bmc = fixture.bmc(Auth::Basic);
    assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
    moved.store(true, Ordering::SeqCst);
    assert!(bmc.power.state().await.is_err());
    assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
}

#[tokio::test]
async fn no_connection_goes_to_a_host_that_is_not_allowed() {
    let fixture = Fixture::serve(TREE, silent).await;
    let elsewhere = AllowedHosts::within(Some(vec!["192.0.2.0/24".parse().unwrap()]));
    let port = fixture.target(Auth::Basic).address.port().unwrap();
    for (host, allowed, why) in [
        ("127.0.0.1", AllowedHosts::default(), "127.0.0.1 is a loopback address"),
        ("[::ffff:127.0.0.1]", AllowedHosts::default(), "is a loopback address"),
        ("localhost", AllowedHosts::default(), "localhost is a loopback address"),
        ("169.254.169.254", AllowedHosts::default(), "is a link-local address"),
        // The name passes the first check; its addresses are checked when they are resolved.
        ("localhost", elsewhere.clone(), "1 is not in the list of allowed hosts"),
        ("127.0.0.1", elsewhere, "127.0.0.1 is not in the list of allowed hosts"),
    ] {
        for trust in [Trust::Authorities, Trust::Pinned([0; 32]), Trust::Unverified] {
            let address = format!("http://{host}:{port}").parse().unwrap();
            let target = Target { address, trust, ..fixture.target(Auth::Basic) };
            let bmc = Connector::new(b"", allowed.clone()).unwrap().bmc(target);
            let error = bmc.power.state().await.unwrap_err();
            assert!(matches!(error, BmcError::Unsupported { .. }), "{host}: {error:?}");
            assert!(error.to_string().ends_with(why), "{error}");
        }
    }
    assert_eq!(fixture.asked().len(), 0);
    let here = AllowedHosts::within(Some(vec!["127.0.0.0/8".parse().unwrap()]));
    let bmc = Connector::new(b"", here).unwrap().bmc(fixture.target(Auth::Basic));
    assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
}
