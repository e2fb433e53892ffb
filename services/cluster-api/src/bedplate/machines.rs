//! `/bedplate/v1/clusters/{cluster}/machines`: the members of a cluster.

use std::sync::Arc;

use axum::response::Response;
use cluster_core::{MemberCertificates, MemberName, NodeGroup};
use openstack_api::{
    JsonShape, ListPart, Listing, PartRequest, PathParam, Route, Routes, Shaped, Time, shaped,
};
use serde::Serialize;

use crate::app::App;
use crate::error::{Error, Result};
use crate::request::Request;

/// Returns the route of the members of a cluster.
pub(super) fn routes() -> Routes<App> {
    Routes::new("bedplate").at(
        "/bedplate/v1/clusters/{cluster}/machines",
        [Route::get("List a cluster's members", list).returns(shape())],
    )
}

/// The response schema of the list of members.
fn shape() -> JsonShape {
    JsonShape::object([("machines", JsonShape::list(Shown::shape()))])
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        name: String,
        nodegroup: &'a str,
        role: &'a str,
        server_id: Option<&'a str>,
        address: Option<String>,
        /// When the first of the certificates ends that the member has reported.
        certificates_end_at: Option<Time>,
    }
}

/// `GET /bedplate/v1/clusters/{cluster}/machines`: the members of a cluster.
async fn list(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    let groups = request.app.store.groups_of(cluster.id).await?;
    let reader = Arc::new((request.app.store.clone(), cluster, groups));
    openstack_api::list(Listing::whole("machines"), move |asked: PartRequest<usize>| {
        let reader = reader.clone();
        Box::pin(async move {
            let (store, cluster, groups) = &*reader;
            let (from, most) = (asked.after.unwrap_or(0), asked.elements as usize);
            let members = members(groups, from, most);
            let refs: Vec<MemberName> =
                members.iter().map(|(_, machine)| machine.clone()).collect();
            let servers = store.servers_of(cluster.id, refs).await?;
            let shown = members.iter().map(|(group, machine)| Shown {
                name: machine.to_string(),
                nodegroup: group.name.as_str(),
                role: group.role.as_str(),
                server_id: servers.get(machine).map(String::as_str),
                address: cluster.machine_addresses.get(machine).map(ToString::to_string),
                certificates_end_at: cluster.certificates.get(machine).map(end),
            });
            let more = (members.len() == most).then_some(from + most);
            let last = members.last().map(|(_, machine)| (members.len(), machine.to_string()));
            Ok::<_, Error>(ListPart::chosen(shown, last, more)?)
        })
    })
    .await
}

fn end(held: &MemberCertificates) -> Time {
    Time(held.first.ends_at)
}

/// Returns so many members of the groups, from this place on, each with its group.
fn members(groups: &[NodeGroup], from: usize, most: usize) -> Vec<(&NodeGroup, MemberName)> {
    let all = groups.iter().flat_map(|group| group.refs().map(move |machine| (group, machine)));
    all.skip(from).take(most).collect()
}
