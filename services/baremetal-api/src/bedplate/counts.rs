//! `/bedplate/v1/counts`: counts nodes by state, and names some that are in progress or failed. The cost does not grow with the number of
//! nodes.

use std::collections::BTreeMap;

use axum::response::Response;
use baremetal_core::{Node, NodeFilter, NodeSort, NodeUuid, Page};
use http::StatusCode;
use openstack_api::{Caller, Relation, Route, Routes, Shaped, Time, json, shaped};
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::node::last_error;
use crate::request::{Request, relation, visible_project};
use crate::rule;

/// The most nodes named in each group.
const MAX_NAMED: u32 = 12;

pub(crate) fn routes() -> Routes<App> {
    let count = Route::get("Count nodes by state, and list some that need attention", show)
        .with_rule(rule::READ)
        .returns(Body::shape());
    Routes::new("bedplate").at("/bedplate/v1/counts", [count])
}

shaped! {
    #[derive(Serialize)]
    struct Body<'a> {
        total: u64,
        states: Vec<InState>,
        under_way: Group<'a>,
        stuck: Group<'a>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct InState {
        provision_state: &'static str,
        count: u64,
    }
}

shaped! {
    /// A group of nodes: how many there are, and the first of them.
    #[derive(Serialize)]
    struct Group<'a> {
        count: u64,
        nodes: Vec<Brief<'a>>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct Brief<'a> {
        uuid: NodeUuid,
        name: Option<&'a str>,
        provision_state: &'static str,
        since: Time,
        /// `None` if the caller is only the lessee.
        last_error: Option<String>,
    }
}

/// `GET /bedplate/v1/counts`: counts the nodes that the caller may see.
async fn show(request: Request) -> Result<Response> {
    let seen_by = visible_project(&request.caller);
    let is = |busy, failed| NodeFilter {
        busy,
        failed,
        seen_by: seen_by.clone(),
        ..NodeFilter::default()
    };
    let by_age = |descending| Page {
        limit: MAX_NAMED,
        marker: None,
        sort: NodeSort::ProvisionUpdatedAt,
        descending,
    };
    let tallies = request.app.store.tally_nodes(seen_by.as_deref()).await?;
    // The longest-running nodes in progress deserve attention first; of the failed nodes, the most recent ones.
    let busy = request.app.store.list_nodes(&is(Some(true), None), &by_age(false)).await?;
    let stuck = request.app.store.list_nodes(&is(Some(false), Some(true)), &by_age(true)).await?;
    let brief = |node| brief(&request.caller, node);
    let count = |fits: fn(bool, bool) -> bool| {
        tallies.iter().filter(|it| fits(it.is_busy, it.is_failed)).map(|it| it.count).sum()
    };
    let mut states: BTreeMap<&'static str, u64> = BTreeMap::new();
    for tally in &tallies {
        *states.entry(tally.state.as_str()).or_default() += tally.count;
    }
    let in_state = |(provision_state, count)| InState { provision_state, count };
    let body = Body {
        total: count(|_, _| true),
        under_way: Group { count: count(|busy, _| busy), nodes: busy.iter().map(brief).collect() },
        stuck: Group {
            count: count(|busy, failed| failed && !busy),
            nodes: stuck.iter().map(brief).collect(),
        },
        states: states.into_iter().map(in_state).collect(),
    };
    Ok(json(StatusCode::OK, &body))
}

fn brief<'a>(caller: &Caller, node: &'a Node) -> Brief<'a> {
    let is_lent = relation(caller, node) == Some(Relation::Lessee);
    Brief {
        uuid: node.id,
        name: node.name.as_ref().map(|name| name.as_str()),
        provision_state: node.provision_state.as_str(),
        since: Time(node.provision_updated_at.unwrap_or(node.created_at)),
        last_error: last_error(node).filter(|_| !is_lent),
    }
}
