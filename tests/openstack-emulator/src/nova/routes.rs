//! Routes Nova's requests.

use serde_json::json;

use super::server::{actions, server};
use super::types::{AGGREGATE, FLAVOR, SERVER, SERVER_GROUP};
use super::{
    action, aggregate, attach, compute, console, create, diagnostics, flavor, group, keypair, life,
    limits, list, parts, view,
};
use crate::handlers::{Form, Handlers};
use crate::list::{Links, Lists, PLAIN};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::world::World;

const SERVERS: Handlers = Handlers {
    update: "PUT",
    statuses: [202, 200, 204],
    form: Form::Wrapped,
    brief: true,
    lists: list::SERVERS,
    sees: |_, asked, _, one| asked.sees(&one.project),
    shown: |world, asked, _, one| view::detail(world, asked, one),
    // The answer to a create does not show the server.
    create: |_, _, _, _| Err(ApiError::unknown_path()),
    change: |world, _, _, id, given| {
        parts::update(world, id, given);
        Ok(())
    },
    delete: |world, asked, _, id| life::delete(world, asked, id),
};

const FLAVORS: Handlers = Handlers {
    update: "",
    statuses: [200, 200, 202],
    lists: Lists {
        is_filter: |_, _, key| Ok(["minRam", "minDisk"].contains(&key)),
        passes: |one, key, values| values.iter().all(|value| flavor::passes(one, key, value)),
        index: |_, _| Vec::new(),
        sees: |_, asked, _, one| flavor::is_open(asked, one),
        ..PLAIN
    },
    sees: |_, asked, _, one| flavor::is_open(asked, one),
    shown: |_, asked, _, one| flavor::shown(asked, one),
    create: |world, _, _, given| flavor::create(world, given),
    delete: GROUPS.delete,
    ..SERVERS
};

const GROUPS: Handlers = Handlers {
    update: "",
    statuses: [200, 200, 204],
    brief: false,
    lists: list::GROUPS,
    shown: |_, asked, of, one| of.view(asked, one),
    create: |world, asked, _, given| group::create(world, asked, given),
    delete: |world, _, of, id| {
        world.store.remove(of.kind, id);
        Ok(())
    },
    ..SERVERS
};

/// Only administrators use aggregates.
const AGGREGATES: Handlers = Handlers {
    statuses: [200, 200, 200],
    lists: Lists { is_filter: |_, _, _| Ok(false), links: Links::Never, ..PLAIN },
    sees: |_, _, _, _| true,
    shown: |_, _, _, one| aggregate::shown(one),
    create: |world, asked, _, given| aggregate::create(world, asked, given),
    delete: |world, _, _, id| aggregate::delete(world, id),
    ..GROUPS
};

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let method = asked.method.as_str();
    if method != "GET" {
        asked.writer()?;
    }
    match (method, path) {
        ("POST", ["servers"]) => create::create(world, asked),
        ("GET", ["servers"] | ["servers", "detail"]) => {
            list::check(asked)?;
            SERVERS.answer(world, asked, &SERVER, &path[1..])
        }
        (_, ["servers", _]) => SERVERS.answer(world, asked, &SERVER, &path[1..]),
        (_, ["servers", id, rest @ ..]) => one(world, asked, id, rest),
        (_, ["flavors", id, "os-extra_specs"]) => flavor::extra_specs(world, asked, id),
        (_, ["flavors", rest @ ..]) => {
            match method {
                "POST" => asked.admin("os_compute_api:os-flavor-manage:create")?,
                "DELETE" => asked.admin("os_compute_api:os-flavor-manage:delete")?,
                _ => {}
            }
            FLAVORS.answer(world, asked, &FLAVOR, rest)
        }
        (_, ["os-keypairs", rest @ ..]) => keypair::answer(world, asked, rest),
        (_, ["os-server-groups", rest @ ..]) => GROUPS.answer(world, asked, &SERVER_GROUP, rest),
        ("GET", ["limits"]) => limits::absolute(world, asked),
        (_, ["os-quota-sets", rest @ ..]) => limits::quotas(world, asked, rest),
        ("GET", ["os-availability-zone"]) => compute::zones(world, false),
        ("GET", ["os-availability-zone", "detail"]) => {
            asked.admin("os_compute_api:os-availability-zone:detail")?;
            compute::zones(world, true)
        }
        ("GET", ["os-hypervisors", rest @ ..]) => compute::hypervisors(world, asked, rest),
        (_, ["os-services", rest @ ..]) => compute::services(world, asked, rest),
        (_, ["os-aggregates", rest @ ..]) => {
            asked.admin("os_compute_api:os-aggregates:index")?;
            match (method, rest) {
                ("POST", [id, "action"]) => {
                    aggregate::act(world, asked, id)?;
                    AGGREGATES.one(world, asked, &AGGREGATE, id, 200)
                }
                _ => AGGREGATES.answer(world, asked, &AGGREGATE, rest),
            }
        }
        ("GET", ["extensions"]) => Ok(Answer::ok(json!({"extensions": []}))),
        _ => Err(ApiError::unknown_path()),
    }
}

/// Answers requests for a part of one server.
fn one(world: &mut World, asked: &ApiRequest, id: &str, rest: &[&str]) -> ApiAnswer {
    let server = server(world, asked, id)?;
    match (asked.method.as_str(), rest) {
        ("POST", ["action"]) => action::answer(world, asked, id),
        // These replaced actions with microversion 2.6.
        ("POST", ["remote-consoles"]) if asked.since(6) => console::remote(world, asked, id),
        ("GET", ["diagnostics"]) => diagnostics::show(world, asked, id),
        (_, ["metadata", rest @ ..]) => parts::metadata(world, asked, id, rest),
        (_, ["tags", rest @ ..]) if asked.since(26) => parts::tags(world, asked, id, rest),
        ("GET", ["ips"]) => Ok(Answer::ok(json!({"addresses": view::addresses(world, server)}))),
        ("GET", ["ips", network, ..]) => {
            Ok(Answer::ok(json!({*network: view::addresses(world, server)[*network]})))
        }
        ("GET", ["os-security-groups"]) => parts::security_groups(world, server),
        ("GET", ["os-instance-actions", rest @ ..]) => actions(world, id, rest),
        (_, ["os-interface", rest @ ..]) => attach::interfaces(world, asked, id, rest),
        (_, ["os-volume_attachments", rest @ ..]) => attach::volumes(world, asked, id, rest),
        _ => Err(ApiError::unknown_path()),
    }
}
