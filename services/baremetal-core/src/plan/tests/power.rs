//! Changes of power.

use super::*;

#[test]
fn power_off_is_requested_once_and_then_awaited() {
    let node = at(Task::Power(PowerState::Off), None);
    let on = || Observed { power: PowerSeen::Is(PowerState::On), ..seen() };
    check(&node, on(), 0, expect!["Act(RequestPower(ForceOff))"]);

    let mut asked = node.clone();
    asked.work.as_mut().unwrap().asked_at = Some(T0);
    check(&asked, on(), 5, expect!["Wait(1 s)"]);
    check(&asked, on(), 16, expect!["Act(RequestPower(ForceOff))"]);
    check(
        &asked,
        on(),
        61,
        expect![[
            r#"GiveUp(PowerStuck: the BMC accepted "power off", but the machine did not reach that state within 60 s)"#
        ]],
    );
    check(
        &node,
        Observed { power: PowerSeen::Is(PowerState::Off), ..seen() },
        0,
        expect!["NextTask"],
    );
}

#[test]
fn a_machine_whose_agent_answers_is_not_off() {
    let node = at(Task::Power(PowerState::Off), None);
    let agent = || Observed { agent: AgentSeen::Present, ..seen() };
    let off = || Observed { power: PowerSeen::Is(PowerState::Off), ..agent() };
    check(&node, off(), 0, expect!["Act(RequestPower(ForceOff))"]);
    let mut asked = node.clone();
    asked.work.as_mut().unwrap().asked_at = Some(T0);
    check(&asked, off(), 5, expect!["Wait(1 s)"]);
    check(
        &asked,
        off(),
        61,
        expect![[
            r#"GiveUp(PowerStuck: the BMC reports "power off", but the agent on the machine still answers after 60 s)"#
        ]],
    );
    let on = at(Task::Power(PowerState::On), None);
    check(
        &on,
        Observed { power: PowerSeen::Is(PowerState::On), ..agent() },
        0,
        expect!["NextTask"],
    );
}

#[test]
fn a_change_of_power_has_until_its_deadline_and_a_full_timeout_of_watching() {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    let deadline = T0 + Duration::from_secs(60);
    node.power_request = Some(crate::PowerRequest::new(PowerChange::On, deadline));
    let since = |watching_since, power| {
        let watching_since = T0 + Duration::from_secs(watching_since);
        Observed { power, watching_since, ..seen() }
    };
    let off = || PowerSeen::Is(PowerState::Off);
    let silent = || PowerSeen::Failed(problem(true));
    let (asks, waits) = ("Act(RequestPower(On))", "Wait(1 s)");
    let stuck = "GiveUp(PowerStuck: the BMC accepted \"power on\", but the machine did not reach that state within 60 s)";
    let unreachable = "GiveUp(BmcUnreachable: cannot reach the BMC)";
    for (seen, after_secs, want) in [
        (since(0, off()), 60, asks),
        (since(0, off()), 61, stuck),
        (since(30, off()), 90, asks),
        (since(30, off()), 91, stuck),
        (since(0, silent()), 60, waits),
        (since(0, silent()), 61, unreachable),
        (since(30, silent()), 90, waits),
        (since(0, PowerSeen::Failed(problem(false))), 0, unreachable),
        (since(0, PowerSeen::NotAsked), 99, waits),
    ] {
        let now = T0 + jiff::SignedDuration::from_secs(after_secs);
        assert_eq!(text(&node, &planned(&node, &seen, now)), want, "{seen:?} after {after_secs}");
    }
    let asked = planned(&node, &since(0, off()), T0).change.unwrap().node;
    assert_eq!(asked.power_request.as_ref().unwrap().asked_at, Some(T0));
    check(&asked, since(0, off()), 15, expect!["Wait(1 s)"]);
    check(&asked, since(0, off()), 16, expect!["Act(RequestPower(On))"]);
}

#[test]
fn a_restart_is_off_and_then_on() {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    node.power_request =
        Some(crate::PowerRequest::new(PowerChange::ForceRestart, T0 + Duration::from_secs(60)));
    let is = |power| Observed { power: PowerSeen::Is(power), ..seen() };
    assert_eq!(node.target_power_state(), Some(PowerState::On));
    check(&node, is(PowerState::On), 0, expect!["Act(RequestPower(ForceOff))"]);
    check(&node, is(PowerState::Off), 0, expect!["PowerStepDone"]);
    node = power_step_done(&node);
    check(&node, is(PowerState::Off), 0, expect!["Act(RequestPower(On))"]);
}

#[test]
fn a_change_of_power_ends_with_the_work_that_begins_before_it_is_done() {
    let ready = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    let ready = Node { provision_state: State::Available, ..ready };
    let off = crate::request_power(&ready, PowerChange::ForceOff, T0).unwrap();
    assert_eq!(off.target_power_state(), Some(PowerState::Off));
    let deployed = live(&off, Verb::Deploy);
    assert_eq!((deployed.provision_state, deployed.target_power_state()), (State::Active, None));
}

#[test]
fn the_power_state_stays_on_during_a_restart() {
    let restart = crate::PowerRequest::new(PowerChange::SoftRestart, T0);
    let node = Node {
        power_state: Some(PowerState::On),
        power_request: Some(restart),
        ..Node::new(NodeUuid::nil(), Driver::Redfish, T0)
    };
    let off = power_step_done(&node);
    assert_eq!(
        (off.power_state, off.target_power_state()),
        (Some(PowerState::On), Some(PowerState::On))
    );
    let on = power_step_done(&off);
    assert_eq!((on.power_state, on.power_request), (Some(PowerState::On), None));
}
