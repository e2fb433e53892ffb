//! Changes of boot settings.

use hardware::{BootMode, BootSetting, BootSettings};

use super::*;
use crate::{BootSettingRequest, BootSettingStage, request_boot_setting};

const UEFI: BootSetting = BootSetting::Mode(BootMode::Uefi);

fn requested(wanted: BootSetting) -> Node {
    let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    request_boot_setting(&node, wanted, T0).unwrap().0
}

fn in_stage(stage: BootSettingStage) -> Node {
    let request = BootSettingRequest { wanted: UEFI, stage, since: T0 };
    Node { boot_setting_request: Some(request), ..requested(UEFI) }
}

fn reports(power: PowerState, mode: BootMode) -> Observed {
    let settings = BootSettings { mode: Some(mode), secure_boot: Some(false) };
    let boot_settings = BootSettingsSeen::Are(settings);
    Observed { power: PowerSeen::Is(power), boot_settings, ..seen() }
}

/// The node after a decision that writes it.
#[track_caller]
fn written(node: &Node, seen: &Observed) -> Node {
    planned(node, seen, T0).change.expect("a change").node
}

#[test]
fn the_bmc_is_asked_unless_it_reports_the_value_already() {
    let node = requested(UEFI);
    let bios = || reports(PowerState::Off, BootMode::Bios);
    check(&node, bios(), 0, expect!["Act(ChangeBootSetting(Mode(Uefi)))"]);
    let done = written(&node, &reports(PowerState::Off, BootMode::Uefi));
    assert_eq!((done.boot_setting_request, done.boot_mode), (None, Some(BootMode::Uefi)));
    assert_eq!((done.secure_boot, done.power_request), (Some(false), None));

    let secure = requested(BootSetting::SecureBoot(true));
    check(&secure, bios(), 0, expect!["Act(ChangeBootSetting(SecureBoot(true)))"]);
    let on = BootSettings { mode: None, secure_boot: Some(true) };
    let on = Observed { boot_settings: BootSettingsSeen::Are(on), ..bios() };
    assert_eq!(written(&secure, &on).secure_boot, Some(true));
}

#[test]
fn a_machine_is_restarted_if_the_accepted_change_is_not_in_force() {
    let accepted = concluded(&requested(UEFI), &ActionOutcome::BootSettingAccepted, T0);
    let accepted = accepted.change.unwrap().node;
    assert_eq!(accepted, in_stage(BootSettingStage::Accepted));
    for power in [PowerState::On, PowerState::Off] {
        let node = written(&accepted, &reports(power, BootMode::Bios));
        let stage = node.boot_setting_request.as_ref().unwrap().stage;
        assert_eq!(stage, BootSettingStage::Restarted { before: power });
        let deadline = T0 + timeouts().power;
        let restart = crate::PowerRequest::new(PowerChange::ForceRestart, deadline);
        assert_eq!(node.power_request, Some(restart));
        // The change of power is carried out first.
        check(
            &node,
            reports(PowerState::On, BootMode::Bios),
            0,
            expect!["Act(RequestPower(ForceOff))"],
        );
    }
}

#[test]
fn each_stage_of_a_change_has_its_own_timeout() {
    let later = T0 + Duration::from_secs(50);
    let since =
        |change: Option<NodeUpdate>| change.unwrap().node.boot_setting_request.unwrap().since;
    let accepted = concluded(&requested(UEFI), &ActionOutcome::BootSettingAccepted, later);
    assert_eq!(since(accepted.change), later);
    let bios = reports(PowerState::On, BootMode::Bios);
    let restarted = planned(&in_stage(BootSettingStage::Accepted), &bios, later);
    assert_eq!(since(restarted.change), later);
}

#[test]
fn after_the_restart_the_machine_gets_its_power_state_again() {
    let was = |before| in_stage(BootSettingStage::Restarted { before });
    let after = |before| written(&was(before), &reports(PowerState::On, BootMode::Uefi));
    assert_eq!(after(PowerState::On).power_request, None);
    let off = after(PowerState::Off);
    let off = (off.power_request.map(|it| it.remaining), off.boot_setting_request);
    assert_eq!(off, (Some(vec![PowerChange::ForceOff]), None));
}

#[test]
fn a_bmc_that_ignores_the_change_is_reported_after_the_boot_timeout() {
    let node = in_stage(BootSettingStage::Restarted { before: PowerState::On });
    let bios = || reports(PowerState::On, BootMode::Bios);
    check(&node, bios(), 600, expect!["Wait(1 s)"]);
    check(
        &node,
        bios(),
        601,
        expect![
            "GiveUp(BmcFailed: the BMC accepted a change of the boot mode to uefi, but reports the boot mode bios 600 s after a restart of the machine)"
        ],
    );
    let watched = Observed { watching_since: T0 + Duration::from_secs(500), ..bios() };
    check(&node, watched, 601, expect!["Wait(1 s)"]);
}

#[test]
fn a_bmc_that_does_not_answer_is_retried_until_the_timeout() {
    let node = requested(UEFI);
    let failed = |transient| Observed { power: PowerSeen::Failed(problem(transient)), ..seen() };
    check(&node, failed(true), 60, expect!["Wait(1 s)"]);
    check(&node, failed(true), 61, expect!["GiveUp(BmcUnreachable: cannot reach the BMC)"]);
    check(&node, failed(false), 0, expect!["GiveUp(BmcUnreachable: cannot reach the BMC)"]);
    let no_settings = || Observed { power: PowerSeen::Is(PowerState::On), ..seen() };
    check(&node, no_settings(), 60, expect!["Wait(1 s)"]);
    check(
        &node,
        no_settings(),
        61,
        expect!["GiveUp(BmcUnreachable: the BMC did not report its boot settings in time)"],
    );
    let refused = ActionOutcome::Failed(problem(false));
    let after = concluded(&node, &refused, T0).change.unwrap().node;
    assert_eq!((after.boot_setting_request, after.failure.is_some()), (None, true));
    let busy = concluded(&node, &ActionOutcome::Failed(problem(true)), T0);
    assert_eq!((busy.change, busy.next_turn), (None, Requeue::After(Duration::from_secs(1))));
}

#[test]
fn a_machine_that_must_stay_on_is_not_restarted() {
    let bios = || reports(PowerState::On, BootMode::Bios);
    let stays = Node { disable_power_off: true, ..in_stage(BootSettingStage::Accepted) };
    check(
        &stays,
        bios(),
        0,
        expect![
            "GiveUp(NeedsRestart: the BMC applies a change of the boot mode to uefi when the machine starts again, and the node has disable_power_off set)"
        ],
    );
    let mut host = in_stage(BootSettingStage::Accepted);
    host.provision_state = State::Active;
    host.instance_info.insert("hypervisor_hostname".to_owned(), "h1".into());
    check(
        &host,
        bios(),
        0,
        expect![
            "GiveUp(NeedsRestart: the BMC applies a change of the boot mode to uefi when the machine starts again, and a restart would stop the servers of compute host h1)"
        ],
    );
}

#[test]
fn verification_records_the_boot_settings() {
    let node = Node { provision_state: State::Verifying, ..at(Task::TryBmc, None) };
    let done = written(&node, &reports(PowerState::On, BootMode::Uefi));
    assert_eq!((done.boot_mode, done.secure_boot), (Some(BootMode::Uefi), Some(false)));
}

#[test]
fn a_task_asks_for_a_boot_setting_only_if_the_bmc_reports_another_one() {
    let uefi = || reports(PowerState::Off, BootMode::Uefi);
    let secure = |on| at(Task::SetBoot(BootSetting::SecureBoot(on)), None);
    check(&secure(true), uefi(), 0, expect!["Act(ChangeBootSetting(SecureBoot(true)))"]);
    check(&secure(false), uefi(), 0, expect!["NextTask"]);
    check(&at(Task::SetBoot(UEFI), None), uefi(), 0, expect!["NextTask"]);
    let none = || {
        let boot_settings = BootSettingsSeen::Are(BootSettings::default());
        Observed { boot_settings, ..uefi() }
    };
    check(&secure(false), none(), 0, expect!["NextTask"]);
    check(&secure(true), none(), 0, expect!["Act(ChangeBootSetting(SecureBoot(true)))"]);

    let accepted = concluded(&secure(true), &ActionOutcome::BootSettingAccepted, T0);
    assert_eq!(text(&secure(true), &accepted), "NextTask");
    let refused = concluded(&secure(true), &ActionOutcome::Failed(problem(false)), T0);
    assert_eq!(text(&secure(true), &refused), "GiveUp(BmcUnreachable: cannot reach the BMC)");
}

#[test]
fn a_started_machine_has_the_boot_timeout_to_apply_a_setting() {
    let secure = at(Task::ConfirmBoot(BootSetting::SecureBoot(true)), None);
    let off = || reports(PowerState::On, BootMode::Uefi);
    check(&secure, off(), 600, expect!["Wait(1 s)"]);
    check(
        &secure,
        off(),
        601,
        expect![
            "GiveUp(BmcFailed: the machine was started to change the secure boot to on, and its BMC still reports secure boot off after 600 s)"
        ],
    );
    let watched = Observed { watching_since: T0 + Duration::from_secs(1), ..off() };
    check(&secure, watched, 601, expect!["Wait(1 s)"]);
    check(&at(Task::ConfirmBoot(UEFI), None), off(), 0, expect!["NextTask"]);
}

#[test]
fn a_task_waits_for_a_bmc_that_does_not_report_its_boot_settings() {
    let unseen = || Observed { power: PowerSeen::Is(PowerState::On), ..seen() };
    let failed = |transient| Observed { power: PowerSeen::Failed(problem(transient)), ..seen() };
    for task in [Task::SetBoot(UEFI), Task::ConfirmBoot(UEFI)] {
        let node = at(task, None);
        check(&node, unseen(), 60, expect!["Wait(1 s)"]);
        check(
            &node,
            unseen(),
            61,
            expect!["GiveUp(BmcUnreachable: the BMC did not report its boot settings in time)"],
        );
        check(&node, failed(true), 60, expect!["Wait(1 s)"]);
        check(&node, failed(false), 0, expect!["GiveUp(BmcUnreachable: cannot reach the BMC)"]);
    }
}
