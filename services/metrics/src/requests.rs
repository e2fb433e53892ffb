//! The requests to an API.

use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

use crate::durations::{Durations, durations};

/// The route of all requests that no route takes.
const UNROUTED: &str = "unrouted";
/// The status of a request whose client disconnected before the answer.
const ABANDONED: &str = "abandoned";

/// Counts the requests to an API, and measures their latency. Clones count the same requests.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Durations<RouteLabels>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: String,
}

/// A request in progress. It is counted when this value is dropped.
#[derive(Debug)]
pub struct RequestTimer {
    metrics: RequestMetrics,
    labels: RouteLabels,
    status: &'static str,
    begun: Instant,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        RequestMetrics { requests: Family::default(), durations: durations() }
    }
}

impl RequestMetrics {
    /// Starts to measure a request. `route` is the template of the route that takes the request, not its path.
    pub fn begin(&self, method: &str, route: Option<&str>) -> RequestTimer {
        let route = route.unwrap_or(UNROUTED).to_owned();
        RequestTimer {
            metrics: self.clone(),
            labels: RouteLabels { method: known_method(method), route },
            status: ABANDONED,
            begun: Instant::now(),
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_http_requests",
            "Requests to the API, by method, template of the route and class of the status",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "bedplate_http_request_duration",
            "Time until the head of the answer",
            Unit::Seconds,
            self.durations.clone(),
        );
    }
}

impl RequestTimer {
    /// Records the status of the answer, and counts the request.
    pub fn answered(mut self, status: u16) {
        self.status = status_class(status);
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        let RouteLabels { method, route } = self.labels.clone();
        let labels = RequestLabels { method, route, status: self.status };
        self.metrics.requests.get_or_create(&labels).inc();
        let durations = self.metrics.durations.get_or_create(&self.labels);
        durations.observe(self.begun.elapsed().as_secs_f64());
    }
}

/// The method as a label. A client may send any word as a method.
fn known_method(method: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or("other")
}

fn status_class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::Metrics;

    #[test]
    fn a_request_is_counted_once_by_words_of_the_program() {
        let mut metrics = Metrics::new("test", "0");
        let requests = metrics.requests();
        requests.begin("GET", Some("/v1/nodes/{ident}")).answered(200);
        requests.begin("GET", Some("/v1/nodes/{ident}")).answered(204);
        requests.begin("GET", Some("/v1/nodes/{ident}")).answered(404);
        requests.begin("BREW", None).answered(404);
        drop(requests.begin("POST", Some("/v1/nodes")));
        let page = metrics.text().unwrap();
        let counted = |name: &str| {
            let mut lines: Vec<&str> = page.lines().filter(|it| it.starts_with(name)).collect();
            lines.sort_unstable();
            lines.join("\n")
        };
        expect![[r#"
            bedplate_http_requests_total{method="GET",route="/v1/nodes/{ident}",status="2xx"} 2
            bedplate_http_requests_total{method="GET",route="/v1/nodes/{ident}",status="4xx"} 1
            bedplate_http_requests_total{method="POST",route="/v1/nodes",status="abandoned"} 1
            bedplate_http_requests_total{method="other",route="unrouted",status="4xx"} 1"#]]
        .assert_eq(&counted("bedplate_http_requests_total"));
        expect![[r#"
            bedplate_http_request_duration_seconds_count{method="GET",route="/v1/nodes/{ident}"} 3
            bedplate_http_request_duration_seconds_count{method="POST",route="/v1/nodes"} 1
            bedplate_http_request_duration_seconds_count{method="other",route="unrouted"} 1"#]]
        .assert_eq(&counted("bedplate_http_request_duration_seconds_count"));
    }
}
