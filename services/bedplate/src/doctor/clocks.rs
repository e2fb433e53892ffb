//! Checks that clocks agree: tokens and certificates are valid between two times, and a wrong clock rejects them.

use std::time::Duration;

use api_client::baremetald::Node;
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use reqwest::Client;
use reqwest::header::DATE;
use serde_json::Value;
use tokio::task::JoinSet;

use super::finding::{Check, Findings};

/// The permitted difference between the clocks of servers.
const SERVERS_APART: SignedDuration = SignedDuration::from_secs(30);
/// The permitted difference of a BMC's clock, which only dates its own log and certificates.
const BMCS_APART: SignedDuration = SignedDuration::from_mins(10);
/// The timeout of a request for the time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of BMCs that are asked concurrently.
const AT_ONCE: usize = 32;

/// Compares the clock of `who` with this computer's clock.
pub(crate) fn compare(
    who: &str,
    theirs: Option<Timestamp>,
    ours: Timestamp,
    findings: &mut Findings,
) {
    let Some(theirs) = theirs else {
        return findings.skipped(Check::Clocks, format!("{who} sends no time"));
    };
    let apart = theirs.duration_since(ours);
    if apart.abs() <= SERVERS_APART {
        return findings.ok(Check::Clocks, format!("the clocks of {who} and this machine agree"));
    }
    let next = "synchronise both clocks by NTP; check with `timedatectl status`";
    findings.fail(Check::Clocks, difference(who, apart), next);
}

fn difference(who: &str, apart: SignedDuration) -> String {
    let word = if apart.is_negative() { "behind" } else { "ahead of" };
    format!("the clock of {who} is {} {word} this machine's", readable::duration(apart.abs()))
}

/// RFC 9110 §6.6.1: the time of a server, from the header `Date` of any response, and the time of this computer.
pub(crate) async fn of_server(client: &Client, url: &str) -> Option<(Timestamp, Timestamp)> {
    let answer = client.get(url).timeout(ANSWER_TIMEOUT).send().await.ok()?;
    let ours = Timestamp::now();
    let date = answer.headers().get(DATE)?.to_str().ok()?;
    Some((rfc2822::parse(date).ok()?.timestamp(), ours))
}

/// DSP0266 §6.3: asks BMCs for the Redfish service root, which needs no authentication, and compares the date of the response.
pub(crate) async fn of_bmcs(nodes: &[Node], findings: &mut Findings) {
    // The request contains no secret and only the date of the response is used, so the certificates need no verification.
    let client = Client::builder().no_proxy().tls_danger_accept_invalid_certs(true).build();
    let Ok(client) = client else {
        return findings
            .skipped(Check::Clocks, "BMCs are not checked: cannot set up an HTTP client");
    };
    let mut asked = JoinSet::new();
    let (mut apart, mut answered) = (Vec::new(), 0_usize);
    let mut note = |seen: Option<(String, SignedDuration)>| {
        let Some((name, by)) = seen else { return };
        answered += 1;
        if by.abs() > BMCS_APART {
            apart.push(difference(&format!("{name}'s BMC"), by));
        }
    };
    let speaks_redfish = |node: &&Node| matches!(node.driver.as_deref(), Some("redfish" | "idrac"));
    for node in nodes.iter().filter(speaks_redfish) {
        let address = node.driver_info.get("redfish_address").and_then(Value::as_str);
        let Some(address) = address else { continue };
        let scheme = if address.contains("://") { "" } else { "https://" };
        let url = format!("{scheme}{}/redfish/v1/", address.trim_end_matches('/'));
        let (client, name) = (client.clone(), node.label().to_owned());
        if asked.len() >= AT_ONCE
            && let Some(Ok(seen)) = asked.join_next().await
        {
            note(seen);
        }
        asked.spawn(async move {
            let (theirs, ours) = of_server(&client, &url).await?;
            Some((name, theirs.duration_since(ours)))
        });
    }
    while let Some(Ok(seen)) = asked.join_next().await {
        note(seen);
    }
    match (answered, apart.is_empty()) {
        (0, _) => findings.skipped(Check::Clocks, "no BMC sent its time"),
        (answered, true) => findings
            .ok(Check::Clocks, format!("the clocks of {answered} BMCs agree with this machine")),
        (_, false) => {
            let next =
                "configure a time server in the BMC: its event log has wrong times until then";
            findings.warn(Check::Clocks, apart.join("; "), next);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::doctor::tests::lines;

    #[test]
    fn clocks_of_servers_may_be_half_a_minute_apart() {
        let ours: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let judged = |theirs: &str| {
            let mut findings = Findings::default();
            compare("Keystone", theirs.parse().ok(), ours, &mut findings);
            lines(&findings)
        };
        assert_eq!(
            judged("2026-01-02T03:04:30Z"),
            ["fine: the clocks of Keystone and this machine agree"]
        );
        assert_eq!(
            judged("2026-01-02T03:03:05Z"),
            ["wrong: the clock of Keystone is 1 min behind this machine's"]
        );
        assert_eq!(
            judged("2026-01-02T04:04:05Z"),
            ["wrong: the clock of Keystone is 1 h ahead of this machine's"]
        );
        assert_eq!(judged(""), ["skipped: Keystone sends no time"]);
    }

    /// An HTTP server whose responses have this date.
    async fn dated(date: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ndate: {date}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        format!("http://{address}")
    }

    #[tokio::test]
    async fn a_bmc_whose_clock_was_never_set_is_doubtful() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let node = |address: String| {
            let node = json!({"name": "r1u1", "driver": "redfish", "driver_info": {"redfish_address": address}});
            serde_json::from_value::<Node>(node).unwrap()
        };
        let mut findings = Findings::default();
        of_bmcs(&[node(dated("Thu, 01 Jan 1970 00:01:00 GMT").await)], &mut findings).await;
        let [line] = &lines(&findings)[..] else { panic!() };
        assert!(line.starts_with("doubtful: the clock of r1u1's BMC is "), "{line}");
        let mut findings = Findings::default();
        of_bmcs(&[node("http://127.0.0.1:1".to_owned())], &mut findings).await;
        assert_eq!(lines(&findings), ["skipped: no BMC sent its time"]);
    }
}
