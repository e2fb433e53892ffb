//! Answers `GET /loadbalancers/{id}/status` with the status tree.

use serde_json::{Value, json};

use super::find;
use super::sort::ResourceType;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Kind, Object};
use crate::world::World;

pub(super) fn tree(world: &World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let balancer = find(world, asked, ResourceType::of("loadbalancers")?, id)?;
    let of = |kind: Kind| world.store.with_text(kind, "balancer", id);
    let pool = |pool: &Object| {
        let mut body = short(pool);
        let members =
            of(Kind::Member).filter(|member| member.note("pool") == pool.id).map(|member| {
                let mut body = short(member);
                body["address"] = json!(member.text("address"));
                body["protocol_port"] = json!(member.number("protocol_port"));
                body
            });
        body["members"] = json!(members.collect::<Vec<_>>());
        if let Some(monitor) =
            of(Kind::HealthMonitor).find(|monitor| monitor.note("pool") == pool.id)
        {
            let mut short = short(monitor);
            short["type"] = json!(monitor.text("type"));
            body["health_monitor"] = short;
        }
        body
    };
    let listeners = of(Kind::Listener).map(|listener| {
        let mut body = short(listener);
        let pools =
            of(Kind::Pool).filter(|pool| pool.id == listener.text("default_pool_id")).map(pool);
        body["pools"] = json!(pools.collect::<Vec<_>>());
        body
    });
    let mut body = short(balancer);
    body["listeners"] = json!(listeners.collect::<Vec<_>>());
    Ok(Answer::ok(json!({"statuses": {"loadbalancer": body}})))
}

fn short(object: &Object) -> Value {
    json!({
        "id": object.id, "name": object.text("name"), "provisioning_status": object.text("provisioning_status"),
        "operating_status": object.text("operating_status"),
    })
}
