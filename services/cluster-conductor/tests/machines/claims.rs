//! Claims: each can be redeemed once, in time, and by its member only.

use cluster_conductor::{Answer, SourceAddress, StepReport};
use cluster_core::DesiredState;
use cluster_store::{BootstrapReport, ClusterChange};
use serde_json::Value;

use crate::given::{ClusterFixture, file, pass};

fn is_config(answer: &Answer) -> bool {
    matches!(answer, Answer::Config(_))
}

/// Returns the claim's id and the report token from a config.
fn reporter(config: &Value) -> (String, String) {
    let curl = file(config, "/etc/bedplate/report.curl").unwrap();
    let value = |begin: &str| {
        let line = curl.lines().find_map(|line| line.strip_prefix(begin)).unwrap();
        line.trim_end_matches('"').to_owned()
    };
    (value("data = \"claim="), value("header = \"Authorization: Bearer "))
}

fn reported(step: &str, result: &str) -> StepReport {
    let status = Some(if result == "success" { 0 } else { 1 });
    StepReport { step: step.to_owned(), result: result.to_owned(), status }
}

#[tokio::test]
async fn the_user_data_is_the_same_until_its_claim_is_redeemed() {
    let mut given = ClusterFixture::labelled(&[]).await;
    let first = given.user_data("default-worker-0").await.unwrap();
    given.restart();
    assert_eq!(given.user_data("default-worker-0").await.unwrap().text(), first.text());
    assert_ne!(given.user_data("default-worker-1").await.unwrap().text(), first.text());
    let claim = given.claim("default-worker-0").await;
    assert!(is_config(&given.redeem(&claim, "10.0.0.20").await));
    assert_ne!(given.user_data("default-worker-0").await.unwrap().text(), first.text());
    // The new server has another claim, which can be redeemed.
    assert!(is_config(&given.redeem(&given.claim("default-worker-0").await, "10.0.0.20").await));
}

#[tokio::test]
async fn a_second_use_of_a_claim_is_refused_and_raises_an_event() {
    let given = ClusterFixture::labelled(&[]).await;
    let claim = given.claim("default-worker-0").await;
    let Answer::Config(config) = given.redeem(&claim, "10.0.0.20").await else { panic!("none") };
    let (id, token) = reporter(&serde_json::from_str(&config).unwrap());
    // A lost answer is given again.
    pass(60);
    assert_eq!(given.redeem(&claim, "10.0.0.20").await, Answer::Config(config));
    assert!(given.conductor.note_report(&id, &token, &reported("join", "exit-code")).await);
    assert_eq!(given.redeem(&claim, "10.0.0.20").await, Answer::Nothing);
    assert_eq!(given.redeem(&claim, "10.0.0.20").await, Answer::Nothing);
    assert_eq!(
        given.events().await,
        [
            "info ClaimRedeemed: 10.0.0.20 fetched the config (default-worker-0)",
            "info ClaimRedeemedAgain: 10.0.0.20 fetched the config again, as after a lost answer (default-worker-0)",
            "warning ClaimReused: 10.0.0.20 tried to fetch the config, which was handed out before: somebody may have \
             read the member's user-data (default-worker-0)",
        ]
    );
}

#[tokio::test]
async fn a_claim_is_redeemed_five_times_at_most_before_its_member_reports() {
    let given = ClusterFixture::labelled(&[]).await;
    let claim = given.claim("default-worker-0").await;
    let mut answers = Vec::new();
    for _ in 0..40 {
        answers.push(given.redeem(&claim, "10.0.0.20").await);
    }
    let (handed_out, refused) = answers.split_at(5);
    assert!(handed_out.iter().all(is_config));
    assert!(refused.iter().all(|answer| *answer == Answer::Nothing));
    let reason = |event: &String| event.split(':').next().unwrap_or_default().to_owned();
    let events: Vec<_> = given.events().await.iter().map(reason).collect();
    assert_eq!(
        events,
        [
            "info ClaimRedeemed",
            "info ClaimRedeemedAgain",
            "info ClaimRedeemedAgain",
            "info ClaimRedeemedAgain",
            "info ClaimRedeemedAgain",
            "warning ClaimAskedTooOften",
        ]
    );
}

#[tokio::test]
async fn a_claim_is_refused_from_other_addresses_unless_they_are_allowed() {
    let given = ClusterFixture::labelled(&[]).await;
    let claim = given.claim("default-worker-0").await;
    assert_eq!(given.redeem(&claim, "10.0.0.21").await, Answer::Nothing);
    let events = given.events().await;
    assert!(events[0].starts_with("warning ClaimFromElsewhere: 10.0.0.21 tried"), "{events:?}");
    // The address of the cluster's router, as an IPv4-mapped address of a dual-stack listener.
    assert!(is_config(&given.redeem(&claim, "::ffff:203.0.113.1").await));

    let given = ClusterFixture::new(&[], SourceAddress::Any).await;
    let claim = given.claim("default-worker-0").await;
    assert!(is_config(&given.redeem(&claim, "192.0.2.1").await));
    assert_eq!(given.redeem(&claim, "192.0.2.2").await, Answer::Nothing);
}

#[tokio::test]
async fn one_of_many_concurrent_callers_gets_the_config() {
    let given = ClusterFixture::new(&[], SourceAddress::Any).await;
    let claim = given.claim("default-worker-0").await;
    let from: Vec<String> = (0..16).map(|n| format!("192.0.2.{n}")).collect();
    let asked = from.iter().map(|from| given.redeem(&claim, from));
    let answers = futures::future::join_all(asked).await;
    assert_eq!(answers.iter().filter(|it| is_config(it)).count(), 1);
    assert_eq!(answers.iter().filter(|it| **it == Answer::Nothing).count(), 15);
}

#[tokio::test]
async fn an_expired_or_invalid_claim_is_refused() {
    let given = ClusterFixture::labelled(&[]).await;
    let claim = given.claim("default-worker-0").await;
    let other = given.claim("default-worker-1").await;
    for (id, token) in [
        (claim.0.as_str(), other.1.as_str()),
        (&claim.0, ""),
        ("00000000-0000-4000-8000-000000000000", &claim.1),
        ("../reports", &claim.1),
    ] {
        let answer = given.conductor.redeem(id, token, "10.0.0.20".parse().unwrap()).await;
        assert_eq!(answer, Answer::Nothing);
    }
    assert_eq!(given.events().await, Vec::<String>::new());
    pass(3600);
    assert_eq!(given.redeem(&claim, "10.0.0.20").await, Answer::Nothing);
    let events = given.events().await;
    assert!(events[0].starts_with("warning ClaimExpired: 10.0.0.20 "), "{events:?}");
    assert_ne!(given.claim("default-worker-0").await, claim);
}

#[tokio::test]
async fn a_cluster_being_deleted_hands_out_no_config() {
    let mut given = ClusterFixture::labelled(&[]).await;
    let claim = given.claim("default-worker-0").await;
    given.cluster.desire = DesiredState::Gone;
    given.store.change_cluster(&ClusterChange::of(given.cluster.clone())).await.unwrap();
    assert_eq!(given.redeem(&claim, "10.0.0.20").await, Answer::Nothing);
}

#[tokio::test]
async fn a_report_needs_the_token_that_only_the_config_contains() {
    let given = ClusterFixture::labelled(&[]).await;
    let claim = given.claim("default-master-0").await;
    let config = given.config("default-master-0", "10.0.0.10").await;
    let (id, token) = reporter(&config);
    assert_eq!(id, claim.0);
    let note =
        async |token: &str, said: StepReport| given.conductor.note_report(&id, token, &said).await;
    assert!(!note(&claim.1, reported("mark", "success")).await);
    let said = async || given.store.machines_of(given.cluster.id).await.unwrap()[0].said.clone();
    assert_eq!(said().await, None);
    assert!(note(&token, reported("control-plane\n<b>", "exit-code")).await);
    let Some(BootstrapReport { step, failed, message, .. }) = said().await else {
        panic!("nothing")
    };
    assert_eq!(
        (step.as_str(), failed, message.as_str()),
        ("control-planeb", true, "exit-code, status 1")
    );
    assert!(note(&token, reported("control-plane", "success")).await);
    assert!(!said().await.unwrap().failed);
    let heard = &given.store.machines_of(given.cluster.id).await.unwrap()[0];
    assert_eq!(heard.redeemed_by, Some("10.0.0.10".parse().unwrap()));
}
