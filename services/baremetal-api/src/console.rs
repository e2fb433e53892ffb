//! `/v1/nodes/{node}/states/console`: whether the console of a node is enabled, and its URL.

use axum::response::Response;
use baremetal_core::{NodeUuid, switch_console};
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, Origin, PathParam, RequiredAccess, Route, Routes, TicketIssuer,
    accepted_at, json,
};
use serde::{Deserialize, Serialize};
use url::{Position, Url};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Error;
use crate::parameters::{Given, Parameters, boolean};
use crate::request::Request;
use crate::rule;

/// The routes of consoles.
pub(crate) fn routes() -> Routes<App> {
    let info = JsonShape::object([
        ("type", JsonShape::enumeration(["websocket", "vnc"])),
        ("url", JsonShape::text()),
    ]);
    let shown = JsonShape::object([
        ("console_enabled", JsonShape::boolean()),
        ("console_info", info.or_null()),
    ]);
    let show = Route::get("Show whether a node's console is enabled, and its URL", show)
        // The URL of a graphical console has a ticket, which is a secret.
        .needs(RequiredAccess::Change);
    let switch = Route::put("Enable or disable a node's console", switch)
        .reads_if_sent(Body::schema())
        .query_parameters(Body::IN_QUERY.iter().copied())
        .answers(StatusCode::ACCEPTED)
        .tells_nothing();
    Routes::new("states").at(
        "/v1/nodes/{node}/states/console",
        [show.with_rule(rule::OPERATE).returns(shown), switch.with_rule(rule::OPERATE)],
    )
}

/// `GET /v1/nodes/{node}/states/console`: shows whether the console is enabled, and its URL.
async fn show(
    request: Request,
    PathParam(ident): PathParam<String>,
    origin: Origin,
    tickets: TicketIssuer,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Info {
        r#type: &'static str,
        url: String,
    }
    #[derive(Serialize)]
    struct Shown {
        console_enabled: bool,
        console_info: Option<Info>,
    }
    let node = request.node(&ident).await?;
    let novnc = request.app.settings.novnc_url.as_ref();
    let info = || match node.console_interface().is_graphical() {
        false => Ok(Info { r#type: "websocket", url: address(&origin, node.id) }),
        true => {
            let path = tickets.issue(&format!("/bedplate/v1/nodes/{}/vnc", node.id))?;
            let page = novnc.and_then(|page| novnc_page(page, &origin, &path));
            let url = page.unwrap_or_else(|| socket_url(&origin, &path));
            Ok::<_, ApiError>(Info { r#type: "vnc", url })
        }
    };
    let console_info = node.console_enabled.then(info).transpose()?;
    Ok(json(StatusCode::OK, &Shown { console_enabled: node.console_enabled, console_info }))
}

/// The WebSocket URL of the console (RFC 6455 §3), at the origin that the client used.
fn address(origin: &Origin, node: NodeUuid) -> String {
    socket_url(origin, &format!("/bedplate/v1/nodes/{node}/console"))
}

fn socket_url(origin: &Origin, path: &str) -> String {
    let origin = origin.as_str();
    let rest = origin.strip_prefix("http").unwrap_or(origin);
    format!("ws{rest}{path}")
}

/// The URL of the operator's noVNC, which opens the WebSocket at `path` (the parameters of `vnc.html`).
fn novnc_page(page: &Url, origin: &Origin, path: &str) -> Option<String> {
    let socket: Url = format!("{origin}{path}").parse().ok()?;
    let whole = &socket[Position::BeforePath..];
    let mut page = page.clone();
    page.query_pairs_mut()
        .append_pair("autoconnect", "true")
        .append_pair("host", socket.host_str()?)
        .append_pair("port", &socket.port_or_known_default()?.to_string())
        .append_pair("encrypt", if socket.scheme() == "https" { "true" } else { "false" })
        .append_pair("path", whole.trim_start_matches('/'));
    Some(page.into())
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// Whether the console can be opened.
    #[serde(deserialize_with = "boolean")]
    enabled: bool,
}

impl Parameters for Body {
    const IN_QUERY: &'static [&'static str] = &["enabled"];
}

/// `PUT /v1/nodes/{node}/states/console`: enables or disables the console before the answer is sent, in any provision state.
async fn switch(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    Given(body): Given<Body>,
) -> Result<Response, Error> {
    let switched = request.change(&ident, |node| {
        let switched = switch_console(node, body.enabled)?;
        if body.enabled {
            request.app.conductor.check_console(node).map_err(ApiError::bad_request)?;
        }
        Ok((switched, None))
    });
    let node = switched.await?;
    if !body.enabled {
        request.app.conductor.end_console(node.id);
    }
    let url = format!("{origin}/v1/nodes/{ident}/states/console");
    Ok(accepted_at(StatusCode::ACCEPTED, &url))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use openstack_api::{Forwarded, Scheme};

    use super::*;

    #[track_caller]
    fn check(page: &str, scheme: Scheme, host: &'static str, want: &str) {
        let headers = HeaderMap::from_iter([(http::header::HOST, host.parse().unwrap())]);
        let origin = Origin::new(&headers, None, scheme, Forwarded::Ignored).unwrap();
        let page = novnc_page(&page.parse().unwrap(), &origin, "/bedplate/v1/nodes/n/vnc?ticket=t");
        assert_eq!(page.unwrap(), want);
    }

    #[test]
    fn the_page_of_novnc_opens_the_websocket_with_the_ticket() {
        let path = "path=bedplate%2Fv1%2Fnodes%2Fn%2Fvnc%3Fticket%3Dt";
        check(
            "https://tools.example/novnc/vnc.html",
            Scheme::Https,
            "api.example",
            &format!(
                "https://tools.example/novnc/vnc.html?autoconnect=true&host=api.example&port=443&encrypt=true&{path}"
            ),
        );
        check(
            "http://tools.example/vnc.html?resize=scale",
            Scheme::Http,
            "[::1]:6385",
            &format!(
                "http://tools.example/vnc.html?resize=scale&autoconnect=true&host=%5B%3A%3A1%5D&port=6385&encrypt=false&{path}"
            ),
        );
    }
}
