//! Single actions on a VM.

use cluster_core::{FlavorSize, VmActionKind, VmFlavor, VmPhase};
use openstack_emulator::{Act, Rule};

use crate::given::VmFixture;

pub(crate) fn larger() -> VmFlavor {
    let size = FlavorSize { vcpus: 2, ram_mib: 4096, disk_gib: 40, gpus: 0 };
    VmFlavor { id: "4".to_owned(), name: "m1.medium".to_owned(), size }
}

#[tokio::test]
async fn a_vm_is_stopped_started_rebooted_and_resized() {
    let given = VmFixture::vm(|vm| vm).await;
    let working = given.process();
    given.until_whole().await;
    given.action(VmActionKind::Stop).await;
    given.until_phase(VmPhase::Stopped).await;
    given.action(VmActionKind::Start).await;
    given.until_phase(VmPhase::Active).await;
    for kind in [VmActionKind::RebootSoft, VmActionKind::RebootHard] {
        given.action(kind).await;
        given.until_done().await;
    }
    given.action(VmActionKind::Resize(larger())).await;
    let vm = given.until_done().await;
    assert_eq!((vm.flavor.name.as_str(), vm.phase()), ("m1.medium", VmPhase::Active));
    let reasons = given.reasons().await;
    assert_eq!(reasons.iter().filter(|it| *it == "ActionDone").count(), 5, "{reasons:?}");
    let asked = given.cloud.count(|it| it.method == "POST" && it.path.ends_with("/action"));
    assert_eq!(asked, 6, "each once, and that the size is kept");
    given.delete().await;
    given.until_gone().await;
    working.kill().await;
}

#[tokio::test]
async fn an_action_that_nova_refuses_is_reported_and_not_repeated() {
    let given = VmFixture::vm(|vm| vm).await;
    let working = given.process();
    given.until_whole().await;
    let refusal =
        Act::Answer { status: 403, retry_after: None, message: Some("not like this".to_owned()) };
    let rule = given.cloud.misbehave(Rule::new("POST", "/compute/**/action", refusal));
    given.action(VmActionKind::Resize(larger())).await;
    let vm = given.until_done().await;
    assert_eq!((vm.phase(), vm.flavor.name.as_str()), (VmPhase::Active, "m1.small"));
    let reported = given.events().await;
    let reported = reported.iter().find(|it| it.reason == "ActionRefused").unwrap();
    assert!(reported.message.contains("not like this"), "{reported:?}");
    assert_eq!(given.cloud.hits(rule), 1);
    working.kill().await;
}

#[tokio::test]
async fn an_action_that_never_arrived_is_sent_again() {
    let given = VmFixture::vm(|vm| vm).await;
    let working = given.process();
    given.until_whole().await;
    let rule = Rule::new("POST", "/compute/**/action", Act::Close).times(1);
    given.cloud.misbehave(rule);
    given.action(VmActionKind::RebootSoft).await;
    given.until_done().await;
    assert!(given.reasons().await.contains(&"ActionDone".to_owned()));
    working.kill().await;
}
