//! A reservation in the form that lessees see: without the details of the BMC, and without the causes of BMC failures.

use baremetal_core::{Allocation, AllocationUuid, Node, NodeName, NodeUuid, State};
use hardware::PowerState;
use lease::RequiredState;
use openstack_api::{JsonShape, Time, shaped};
use serde::Serialize;

use super::super::lease_term;
use crate::app::App;

const STATES: [&str; 6] = ["installing", "active", "ended", "failed", "leaving", "gone"];

shaped! {
    /// A reservation in the form that clients see.
    #[derive(Serialize)]
    pub(super) struct View<'a> {
        uuid: AllocationUuid,
        name: Option<&'a NodeName> = JsonShape::text().or_null(),
        project: Option<&'a str>,
        user: Option<&'a str>,
        state: &'static str = JsonShape::enumeration(STATES),
        resource_class: Option<&'a str>,
        traits: Vec<&'a str>,
        image: Option<&'a str>,
        node: Option<Machine<'a>>,
        lease: Option<lease_term::LeaseView>,
        created_at: Time,
    }
}

shaped! {
    #[derive(Serialize)]
    struct Machine<'a> {
        uuid: NodeUuid,
        name: Option<&'a NodeName> = JsonShape::text().or_null(),
        power_state: Option<PowerState> = JsonShape::text().or_null(),
        provision_state: &'static str,
    }
}

impl<'a> View<'a> {
    /// Combines an allocation with its node.
    pub(super) fn of(app: &App, it: &'a Allocation, node: Option<&'a Node>) -> Self {
        let lending = node.and_then(|node| node.lending.as_ref());
        let (schedule, now) = (app.conductor.schedule(), (app.clock)());
        let reservation = it.reservation.as_ref();
        View {
            uuid: it.id,
            name: it.name.as_ref(),
            project: it.owner.as_deref(),
            user: reservation.and_then(|it| it.user.as_deref()),
            state: node.map_or("gone", state),
            resource_class: it.resource_class.as_deref(),
            traits: it.traits.iter().map(String::as_str).collect(),
            image: reservation.map(|it| it.image.as_str()),
            node: node.map(|node| Machine {
                uuid: node.id,
                name: node.name.as_ref(),
                power_state: node.power_state,
                provision_state: node.provision_state.as_str(),
            }),
            lease: lending.map(|lending| lease_term::LeaseView::of(lending, schedule, now)),
            created_at: Time(it.created_at),
        }
    }
}

fn state(node: &Node) -> &'static str {
    match node.provision_state {
        State::Deploying | State::DeployWait | State::DeployHold => "installing",
        State::Active if node.leads_to() == Some(State::Available) => "leaving",
        State::Active
        | State::Servicing
        | State::ServiceWait
        | State::ServiceHold
        | State::Rescuing
        | State::RescueWait
        | State::Rescued
        | State::Unrescuing => match node.wanted_by_lease() {
            RequiredState::AsRequested => "active",
            RequiredState::Off | RequiredState::Deleted => "ended",
        },
        State::DeployFailed
        | State::ServiceFailed
        | State::RescueFailed
        | State::UnrescueFailed
        | State::Error => "failed",
        State::Deleting => "leaving",
        // An operator has changed the state of the node by hand.
        State::Enroll
        | State::Verifying
        | State::Manageable
        | State::Inspecting
        | State::InspectWait
        | State::InspectFailed
        | State::Cleaning
        | State::CleanWait
        | State::CleanFailed
        | State::CleanHold
        | State::Available
        | State::Adopting
        | State::AdoptFailed => "leaving",
    }
}
