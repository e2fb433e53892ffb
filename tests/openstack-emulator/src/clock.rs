//! The clock of a cloud: applies each event when it is due.

use crate::object::Kind;
use crate::shared::Shared;
use crate::world::{Event, World};
use crate::{designate, neutron, nova, octavia};

/// Runs all events that are due.
pub(crate) fn settle(world: &mut World) {
    while let Some(event) = world.take_due() {
        world.changes += 1;
        happen(world, event);
    }
}

fn happen(world: &mut World, event: Event) {
    match event {
        Event::Built(server) => nova::built(world, &server),
        Event::Settled(balancer) => octavia::settled(world, &balancer),
        Event::Acted(server, status, power) => nova::acted(world, &server, &status, power),
        Event::Migrated(server) => nova::migrated(world, &server),
        Event::Imaged(server, image, status) => {
            nova::snapshot_went_on(world, &server, &image, status.as_deref());
        }
        Event::Set(kind, id, fields) => {
            if let Some(object) = world.store.get_mut(kind, &id) {
                for (field, value) in fields {
                    object.set(&field, value);
                }
            }
        }
        Event::Gone(Kind::Server, id) => nova::gone(world, &id),
        Event::Gone(Kind::Zone, id) => designate::zone_gone(world, &id),
        Event::Gone(Kind::Port, id) => neutron::delete_port(world, &id),
        Event::Gone(kind, id) => {
            world.store.remove(kind, &id);
        }
    }
}

/// Runs the events of the world when they are due, for ever.
pub(crate) async fn run(shared: &Shared) {
    loop {
        let next = shared.with(|world| {
            settle(world);
            world.next_due()
        });
        shared.called();
        match next {
            Some(at) => tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = shared.until_changed() => {}
            },
            None => shared.until_changed().await,
        }
    }
}
