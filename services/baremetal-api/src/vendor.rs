//! `/v1/nodes/{node}/vendor_passthru` and `/v1/drivers/{driver}/vendor_passthru`: the methods of vendor interfaces.

use std::collections::BTreeMap;

use axum::response::{IntoResponse, Response};
use baremetal_conductor::VendorResult;
use baremetal_core::{VendorAnswer, VendorMethod, check_vendor_call, driver_call_refused};
use hardware::{Subscription, SubscriptionList};
use http::{Method, StatusCode};
use openstack_api::{Caller, JsonShape, PathParam, Query, Route, Routes, StrictJson, json};
use serde::Serialize;
use serde_json::{Map, Value, json as value};

use crate::app::App;
use crate::error::Error;
use crate::request::Request;
use crate::{driver, rule};

/// A route for each HTTP method by which a vendor method can be called.
macro_rules! each_http_method {
    ($summary:expr, $handler:ident, $complete:ident) => {
        [
            Route::get($summary, $handler),
            Route::post($summary, $handler),
            Route::put($summary, $handler),
            Route::patch($summary, $handler),
            Route::delete($summary, $handler),
        ]
        .map($complete)
    };
}

/// The routes of vendor methods.
pub(crate) fn routes() -> Routes<App> {
    let list = |route: Route<App>| route.with_rule(rule::ADMINISTER).returns(methods_shape());
    let call = "Call a vendor method of a node";
    let refuse = "Refuse to call a vendor method of a driver";
    Routes::new("vendor")
        .at(
            "/v1/nodes/{node}/vendor_passthru/methods",
            [list(Route::get("List the vendor methods of a node", list_of_node))],
        )
        .at(
            "/v1/nodes/{node}/vendor_passthru/{method}",
            each_http_method!(call, call_in_path, calls),
        )
        .at(
            "/v1/nodes/{node}/vendor_passthru",
            each_http_method!(call, call_in_query, calls).map(named_in_query),
        )
        .at(
            "/v1/drivers/{driver}/vendor_passthru/methods",
            [list(Route::get("List the vendor methods of a driver", list_of_driver))],
        )
        .at(
            "/v1/drivers/{driver}/vendor_passthru/{method}",
            each_http_method!(refuse, refuse_in_path, refuses),
        )
        .at(
            "/v1/drivers/{driver}/vendor_passthru",
            each_http_method!(refuse, refuse_in_query, refuses).map(named_in_query),
        )
}

/// Completes a route that calls a vendor method.
fn calls(route: Route<App>) -> Route<App> {
    route
        .with_rule(rule::ADMINISTER)
        .reads_if_sent(JsonShape::any_object())
        .refuses([StatusCode::CONFLICT, StatusCode::BAD_GATEWAY])
        .returns(JsonShape::anything())
        .or_answers(StatusCode::ACCEPTED)
}

/// Completes a route that calls nothing, because no driver has methods.
fn refuses(route: Route<App>) -> Route<App> {
    route.with_rule(rule::ADMINISTER).answers(StatusCode::NO_CONTENT)
}

fn named_in_query(route: Route<App>) -> Route<App> {
    route.query_parameters(["method"])
}

/// The JSON shape of a list of methods.
fn methods_shape() -> JsonShape {
    JsonShape::map(JsonShape::object([
        ("async", JsonShape::boolean()),
        ("attach", JsonShape::boolean()),
        ("description", JsonShape::text()),
        ("http_methods", JsonShape::list(JsonShape::text())),
        ("require_exclusive_lock", JsonShape::boolean()),
    ]))
}

/// A vendor method in the form that clients see.
#[derive(Serialize)]
struct View {
    r#async: bool,
    /// Whether the answer is a file. No method answers with a file.
    attach: bool,
    description: &'static str,
    http_methods: &'static [&'static str],
    require_exclusive_lock: bool,
}

fn listed(methods: &[VendorMethod]) -> Response {
    let views = methods.iter().map(|method| {
        let view = View {
            r#async: method.answers == VendorAnswer::Later,
            attach: false,
            description: method.description,
            http_methods: method.http_methods,
            require_exclusive_lock: method.needs_idle_node,
        };
        (method.name, view)
    });
    json(StatusCode::OK, &views.collect::<BTreeMap<_, _>>())
}

/// `GET /v1/nodes/{node}/vendor_passthru/methods`: lists the vendor methods of a node.
async fn list_of_node(
    request: Request,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    Ok(listed(request.node(&ident).await?.vendor_interface().methods()))
}

/// `GET /v1/drivers/{driver}/vendor_passthru/methods`: lists the vendor methods that need no node. No driver has any.
async fn list_of_driver(
    _caller: Caller,
    PathParam(name): PathParam<String>,
) -> Result<Response, Error> {
    driver::find(&name)?;
    Ok(listed(&[]))
}

/// `* /v1/nodes/{node}/vendor_passthru/{method}`: calls a vendor method of a node.
async fn call_in_path(
    request: Request,
    PathParam((ident, name)): PathParam<(String, String)>,
    http_method: Method,
    body: Option<StrictJson<Map<String, Value>>>,
) -> Result<Response, Error> {
    call_on_node(&request, &ident, Some(&name), &http_method, body).await
}

/// `* /v1/nodes/{node}/vendor_passthru?method=`: calls a vendor method of a node.
async fn call_in_query(
    request: Request,
    PathParam(ident): PathParam<String>,
    http_method: Method,
    mut query: Query,
    body: Option<StrictJson<Map<String, Value>>>,
) -> Result<Response, Error> {
    let name = query.take("method");
    query.finish()?;
    call_on_node(&request, &ident, name.as_deref(), &http_method, body).await
}

async fn call_on_node(
    request: &Request,
    ident: &str,
    name: Option<&str>,
    http_method: &Method,
    body: Option<StrictJson<Map<String, Value>>>,
) -> Result<Response, Error> {
    let node = request.node(ident).await?;
    let arguments = body.map(|StrictJson(body)| body).unwrap_or_default();
    let (method, call) = check_vendor_call(&node, name, http_method.as_str(), &arguments)?;
    let result = request.app.conductor.call_vendor_method(&node, call).await?;
    Ok(match method.answers {
        VendorAnswer::Now => json(StatusCode::OK, &shown(result)),
        VendorAnswer::Later => StatusCode::ACCEPTED.into_response(),
    })
}

fn shown(result: VendorResult) -> Value {
    match result {
        VendorResult::Nothing => Value::Null,
        VendorResult::IsWord(is_word) => is_word.into(),
        VendorResult::Subscription(subscription) => shown_subscription(subscription),
        VendorResult::Subscriptions(list) => shown_list(list),
    }
}

/// A subscription as the BMC shows it, with the properties that Ironic passes on.
fn shown_subscription(subscription: Subscription) -> Value {
    let Subscription { id, context, protocol, destination, event_types } = subscription;
    with_known([
        ("Id", id.map(Value::from)),
        ("Context", context.map(Value::from)),
        ("Protocol", protocol.map(Value::from)),
        ("Destination", destination.map(Value::from)),
        ("EventTypes", event_types.map(Value::from)),
    ])
}

fn shown_list(list: SubscriptionList) -> Value {
    let SubscriptionList { path, schema, name, description, members } = list;
    with_known([
        ("@odata.id", path.map(Value::from)),
        ("@odata.type", schema.map(Value::from)),
        ("Name", name.map(Value::from)),
        ("Description", description.map(Value::from)),
        ("Members@odata.count", Some(members.len().into())),
        ("Members", Some(members.iter().map(|path| value!({"@odata.id": path})).collect())),
    ])
}

/// An object without the properties that the BMC leaves out.
fn with_known<const N: usize>(properties: [(&str, Option<Value>); N]) -> Value {
    let known = properties.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
    known.collect::<Map<_, _>>().into()
}

/// `* /v1/drivers/{driver}/vendor_passthru/{method}`: always refused, because no driver has methods.
async fn refuse_in_path(
    _caller: Caller,
    PathParam((driver, name)): PathParam<(String, String)>,
) -> Result<StatusCode, Error> {
    driver::find(&driver)?;
    Err(driver_call_refused(Some(&name)).into())
}

/// `* /v1/drivers/{driver}/vendor_passthru?method=`: always refused, because no driver has methods.
async fn refuse_in_query(
    _caller: Caller,
    PathParam(driver): PathParam<String>,
    mut query: Query,
) -> Result<StatusCode, Error> {
    let name = query.take("method");
    query.finish()?;
    driver::find(&driver)?;
    Err(driver_call_refused(name.as_deref()).into())
}
