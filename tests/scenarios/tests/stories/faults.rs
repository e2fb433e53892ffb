//! Each way in which a deployment fails: the operator gets an explanation, the machine is not touched, and a new request succeeds once the
//! cause is gone.

use bmc_emulator::{ReportedPower, StatusFault};
use lab::{Image, ImageFault, Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::{Content, FaultSet, Stage};

/// A machine that is ready to be deployed.
struct Story {
    lab: Lab,
    machine: RackedMachine,
    node: Node,
}

impl Story {
    async fn begin(settings: Settings, blueprint: Machine) -> Story {
        let lab = Lab::start_with(settings).await;
        let machine = lab.rack(blueprint).await;
        let node = lab.available(&machine).await;
        Story { lab, machine, node }
    }

    /// Deploys: the node fails with all of `words` and an advice, and the machine is not touched afterwards.
    async fn fails(&self, words: &[&str]) {
        let error = self.lab.provision(self.node, "active").await.fails("deploy failed").await;
        for word in words {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
        assert!(error.contains("Hint: "), "{error:?} does not say what to do");
        let asked = self.machine.chassis().log().len();
        let power = *self.machine.chassis().power().borrow();

        // A second machine goes through cleaning, so that time passes.
        let neighbour = self.lab.rack(Machine::redfish("neighbour")).await;
        self.lab.available(&neighbour).await;
        let log = self.machine.chassis().log();
        assert_eq!(&log[asked..], [], "a failed machine gets no power request");
        assert_eq!(*self.machine.chassis().power().borrow(), power);
        assert!(
            !self.machine.disks().iter().any(Content::is_bootable),
            "nothing boots of what failed: {:?}",
            self.machine.disks()
        );
    }

    /// The BMC refuses the password and ends all open sessions.
    fn forget_and_refuse(&self) {
        self.machine.chassis().faults().update(|faults| {
            faults.refuse_credentials = true;
            faults.forget_sessions = true;
        });
    }

    /// Deploys again, and checks that the deployment succeeds.
    async fn succeeds(&self) {
        let node = self.lab.provision(self.node, "active").await.reaches("active").await;
        assert_eq!(node.last_error, None);
        let mut stage = self.machine.stage();
        stage.wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    }
}

#[tokio::test]
async fn a_wrong_checksum_is_reported_and_can_be_corrected() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    let right = story.lab.image().clone();
    story.lab.choose(story.node, &Image { checksum: "0".repeat(64), ..right.clone() }).await;
    story.fails(&["writing the image failed", "checksum", &right.checksum, &"0".repeat(64)]).await;
    story.lab.choose(story.node, &right).await;
    story.succeeds().await;
}

#[tokio::test]
async fn an_image_with_a_wrong_byte_never_boots() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    story.lab.images().misbehave("system.raw", ImageFault::WrongByte);
    story.fails(&["writing the image failed", "checksum"]).await;
    story.lab.images().misbehave("system.raw", ImageFault::None);
    story.succeeds().await;
}

#[tokio::test]
async fn a_truncated_image_is_reported_and_can_be_corrected() {
    let story = Story::begin(Settings::default(), Machine::ipmi("m")).await;
    story.lab.images().misbehave("system.raw", ImageFault::Truncated);
    story.fails(&["writing the image failed", "broke off"]).await;
    story.lab.images().misbehave("system.raw", ImageFault::None);
    story.succeeds().await;
}

#[tokio::test]
async fn a_refusing_image_server_is_reported_and_can_be_corrected() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    story.lab.images().misbehave("system.raw", ImageFault::Refused);
    story.fails(&["writing the image failed", "503"]).await;
    story.lab.images().misbehave("system.raw", ImageFault::None);
    story.succeeds().await;
}

#[tokio::test]
async fn an_unreachable_image_server_is_reported_and_can_be_corrected() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    story.lab.images().stop().await;
    story.fails(&["writing the image failed", "cannot be downloaded", "refused"]).await;
    story.lab.images().start_again().await;
    story.succeeds().await;
}

#[tokio::test]
async fn a_disk_that_is_too_small_is_reported_and_can_be_corrected() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    story.machine.misbehave(|faults| faults.disk_full_after = Some(100_000));
    story.fails(&["writing the image failed", "larger than the disk"]).await;
    story.machine.misbehave(|faults| faults.disk_full_after = None);
    story.succeeds().await;
}

#[tokio::test]
async fn our_agent_refuses_an_image_with_a_backing_file() {
    let story = Story::begin(Settings::default(), Machine::redfish("m").with_our_agent()).await;
    let bad = story.lab.images().put("layered.qcow2", "qcow2", layered_qcow2());
    story.lab.choose(story.node, &bad).await;
    story.fails(&["writing the image failed", "backing file"]).await;
    let right = story.lab.image().clone();
    story.lab.choose(story.node, &right).await;
    story.succeeds().await;
}

/// The header of a qcow2 image (version 3) with /etc/shadow as its backing file.
fn layered_qcow2() -> Vec<u8> {
    let name = b"/etc/shadow";
    let mut image = b"QFI\xfb".to_vec();
    image.extend(3_u32.to_be_bytes());
    image.extend(112_u64.to_be_bytes());
    image.extend((name.len() as u32).to_be_bytes());
    image.extend(16_u32.to_be_bytes());
    image.extend((1_u64 << 20).to_be_bytes());
    // No encryption; one entry in the first-level table, at the second cluster; references at the third.
    image.extend(0_u32.to_be_bytes());
    image.extend(1_u32.to_be_bytes());
    image.extend((1_u64 << 16).to_be_bytes());
    image.extend((2_u64 << 16).to_be_bytes());
    image.extend(1_u32.to_be_bytes());
    image.extend(0_u32.to_be_bytes());
    image.extend(0_u64.to_be_bytes());
    // Features: none; reference counts of 16 bits; this header's length.
    image.extend([0; 24]);
    image.extend(4_u32.to_be_bytes());
    image.extend(104_u32.to_be_bytes());
    image.resize(112, 0);
    image.extend(name);
    image.resize(4 << 16, 0);
    image
}

#[tokio::test]
async fn a_refused_bmc_password_is_reported_and_can_be_corrected() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    story.forget_and_refuse();
    story.fails(&["rejected our credentials", "correct user, password"]).await;
    story.machine.chassis().faults().clear();
    story.succeeds().await;
}

#[tokio::test]
async fn a_refused_ipmi_password_is_reported_and_can_be_corrected() {
    let story = Story::begin(Settings::default(), Machine::ipmi("m")).await;
    story.forget_and_refuse();
    story.fails(&["correct user, password"]).await;
    story.machine.chassis().faults().clear();
    story.succeeds().await;
}

#[tokio::test]
async fn a_bmc_that_answers_503_is_retried_and_then_reported() {
    let settings = Settings { power_timeout: "3s", bmc_timeout: "3s", ..Settings::default() };
    let story = Story::begin(settings, Machine::redfish("m")).await;
    let busy = StatusFault { status: 503, ..StatusFault::default() };
    story.machine.chassis().faults().update(|faults| faults.status.push(busy));
    story.fails(&["503", "the BMC"]).await;
    story.machine.chassis().faults().clear();
    story.succeeds().await;
}

/// Others have taken every session of the BMC, so each request carries the password.
#[tokio::test]
async fn a_redfish_bmc_without_a_free_session_is_used_without_one() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    story.machine.chassis().faults().update(|faults| {
        faults.sessions_full = true;
        faults.forget_sessions = true;
    });
    story.succeeds().await;
}

#[tokio::test]
async fn an_ipmi_bmc_without_a_free_session_is_reported_and_can_be_corrected() {
    let settings = Settings { power_timeout: "3s", bmc_timeout: "3s", ..Settings::default() };
    let story = Story::begin(settings, Machine::ipmi("m")).await;
    story.machine.chassis().faults().update(|faults| {
        faults.sessions_full = true;
        faults.forget_sessions = true;
    });
    story.fails(&["the BMC at", "is busy"]).await;
    story.machine.chassis().faults().clear();
    story.succeeds().await;
}

#[tokio::test]
async fn a_bmc_that_is_busy_for_a_while_is_tolerated() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    let busy = StatusFault { status: 503, times: Some(5), ..StatusFault::default() };
    story.machine.chassis().faults().update(|faults| faults.status.push(busy));
    story.succeeds().await;
}

#[tokio::test]
async fn a_machine_that_never_calls_back_is_reported_with_its_traces() {
    let settings = Settings { boot_timeout: "5s", ..Settings::default() };
    let story = Story::begin(settings, Machine::redfish("m")).await;
    story.machine.misbehave(|faults| faults.never_call_back = true);
    story.fails(&["never called back", "boot script", "console"]).await;
    story.machine.misbehave(|faults| faults.never_call_back = false);
    story.succeeds().await;
}

/// An agent reports but does not execute commands: the history of the node says so soon, and the work fails long before the timeout of a
/// command.
async fn is_reported_and_can_be_corrected(refuse: impl Fn(&mut FaultSet), words: &[&str]) {
    // Several reports of the agent: by them the conductor knows that it is not silent.
    let settings = Settings { silence_timeout: "20s", ..Settings::default() };
    let story = Story::begin(settings, Machine::redfish("m")).await;
    story.machine.misbehave(refuse);
    let words = [&["the agent reports, but ", "listing the deploy steps"], words].concat();
    story.fails(&words).await;
    let history = story.lab.history(story.node).await;
    let words = "the agent reports, but calls to it fail: ";
    let reported = history.iter().filter(|it| it.severity == "INFO" && it.event.starts_with(words));
    assert_eq!(reported.count(), 1, "{history:?}");
    story.machine.misbehave(|faults| *faults = FaultSet::default());
    story.succeeds().await;
}

#[tokio::test]
async fn an_agent_that_refuses_commands_is_reported_and_can_be_corrected() {
    is_reported_and_can_be_corrected(|faults| faults.agent_refuses = Some(401), &["401"]).await;
}

#[tokio::test]
async fn an_agent_whose_commands_fail_is_reported_and_can_be_corrected() {
    is_reported_and_can_be_corrected(|faults| faults.agent_refuses = Some(503), &["503"]).await;
}

#[tokio::test]
async fn an_unreachable_agent_is_reported_and_can_be_corrected() {
    is_reported_and_can_be_corrected(
        |faults| faults.agent_does_not_listen = true,
        &["cannot call the agent"],
    )
    .await;
}

#[tokio::test]
async fn an_agent_with_another_certificate_is_reported_and_can_be_corrected() {
    is_reported_and_can_be_corrected(
        |faults| faults.agent_shows_another_certificate = true,
        &["is pinned"],
    )
    .await;
}

#[tokio::test]
async fn a_restart_during_the_image_is_reported_and_can_be_corrected() {
    let settings = Settings { silence_timeout: "2s", ..Settings::default() };
    let story = Story::begin(settings, Machine::redfish("m")).await;
    let step = "write_image".to_owned();
    story.machine.misbehave(|faults| faults.reboot_in_step = Some(step));
    story.fails(&["fell silent", "writing the image", "reboot"]).await;
    story.succeeds().await;
}

#[tokio::test]
async fn a_failed_clean_step_keeps_the_machine_unavailable() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("m")).await;
    machine.put_on_disk(0, Content::leftover());
    let node = lab.manageable(&machine).await;
    let step = "erase_devices_metadata".to_owned();
    machine.misbehave(|faults| faults.fail_step = Some(step));
    let error = lab.provision(node, "provide").await.fails("clean failed").await;
    let failed = "running the clean step deploy.erase_devices_metadata failed";
    assert!(error.contains(failed), "{error}");

    machine.misbehave(|faults| faults.fail_step = None);
    assert_eq!(lab.node(node).await.fault.as_deref(), Some("clean failure"));
    lab.provision(node, "manage").await.reaches("manageable").await;
    lab.end_maintenance(node).await;
    lab.provision(node, "provide").await.reaches("available").await;
    assert!(machine.disks_are_blank());
}

#[tokio::test]
async fn a_machine_whose_agent_answers_is_not_taken_for_one_that_is_off() {
    let lab = Lab::start_with(Settings { power_timeout: "3s", ..Settings::default() }).await;
    let machine = lab.rack(Machine::redfish("m")).await;
    let node = lab.manageable(&machine).await;
    machine.misbehave(|faults| faults.agent_is_silent = true);
    let cleaned = lab.provision(node, "provide").await;
    lab.reaches(node, "clean wait").await;
    machine.chassis().faults().update(|it| it.reported_power = Some(ReportedPower::Off));
    machine.misbehave(|faults| faults.agent_is_silent = false);
    let error = cleaned.fails("clean failed").await;
    assert!(error.contains("the agent on the machine still answers"), "{error}");
    assert!(machine.chassis().power().borrow().on, "nothing has switched the machine off");

    machine.chassis().faults().clear();
    lab.provision(node, "manage").await.reaches("manageable").await;
    lab.end_maintenance(node).await;
    lab.provision(node, "provide").await.reaches("available").await;
    assert!(!machine.chassis().power().borrow().on);
    assert!(machine.disks_are_blank());
}

#[tokio::test]
async fn a_lossy_network_only_delays_a_machine() {
    let story = Story::begin(Settings::default(), Machine::redfish("m")).await;
    story.machine.misbehave(|faults| {
        faults.duplicate_dhcp = true;
        faults.delay_dhcp_millis = Some(100);
        faults.break_downloads = 2;
    });
    story.succeeds().await;
}

#[tokio::test]
async fn a_bmc_without_a_working_login_is_reported_at_once() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("m")).await;
    machine.chassis().faults().update(|faults| faults.refuse_credentials = true);
    let node = lab.enroll(&machine).await;
    let error = lab.provision(node, "manage").await.fails("enroll").await;
    assert!(error.contains("rejected our credentials"), "{error}");
    machine.chassis().faults().clear();
    lab.provision(node, "manage").await.reaches("manageable").await;
}
