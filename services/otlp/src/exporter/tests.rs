use std::sync::Mutex;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use metrics::Metrics;
use spans::SpanKind;
use tokio::net::TcpListener;

use super::*;
use crate::message::{ExportAnswer, ExportRequest, PartialSuccess};

/// How long anything in these tests may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A collector with a list of answers; after the last one it takes everything.
#[derive(Clone)]
struct TestCollector {
    answers: Arc<Mutex<Vec<Response>>>,
    seen: mpsc::UnboundedSender<ExportRequest>,
}

async fn export(State(it): State<TestCollector>, headers: HeaderMap, body: Bytes) -> Response {
    assert_eq!(headers[CONTENT_TYPE], "application/x-protobuf");
    it.seen.send(ExportRequest::decode(body).unwrap()).unwrap();
    let next = it.answers.lock().unwrap().pop();
    next.unwrap_or_else(|| StatusCode::OK.into_response())
}

/// A tracer whose spans go to a collector with these answers, the last one first.
struct Site {
    tracer: Tracer,
    seen: mpsc::UnboundedReceiver<ExportRequest>,
    metrics: Metrics,
    running: RunningExporter,
}

impl Site {
    async fn start(answers: Vec<Response>) -> Site {
        let (sender, seen) = mpsc::unbounded_channel();
        let state = TestCollector { answers: Arc::new(Mutex::new(answers)), seen: sender };
        let router = Router::new().route("/v1/traces", post(export)).with_state(state);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let (tracer, exporter, metrics) = program(&format!("http://{address}/v1/traces"));
        Site { tracer, seen, metrics, running: exporter.start() }
    }

    async fn next(&mut self) -> ExportRequest {
        timeout(PATIENCE, self.seen.recv()).await.unwrap().unwrap()
    }

    /// Stops the exporter, and asserts how many spans had which end.
    async fn ends(self, want: &[(&str, usize)]) {
        timeout(PATIENCE, self.running.end()).await.unwrap();
        assert_counted(&self.metrics, want);
    }
}

fn program(endpoint: &str) -> (Tracer, Exporter, Metrics) {
    let config: TracesConfig = toml::from_str(&format!("endpoint = '{endpoint}'")).unwrap();
    let mut page = Metrics::new("test", "0");
    let program = TracedProgram { name: "baremetald", version: "1.2", instance: "r1".to_owned() };
    let (tracer, exporter) = open(&config, program, page.traces()).unwrap();
    (tracer, exporter, page)
}

#[track_caller]
fn assert_counted(metrics: &Metrics, want: &[(&str, usize)]) {
    let page = metrics.text().unwrap();
    let counted: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("bedplate_trace_spans_total")).collect();
    for (outcome, count) in want {
        let line = format!("{{outcome=\"{outcome}\"}} {count}");
        assert!(counted.contains(&&*line), "no {line} in {counted:?}");
    }
    assert_eq!(counted.len(), want.len(), "{counted:?}");
}

fn work(tracer: &Tracer, count: usize) {
    for _ in 0..count {
        drop(tracer.begin(None, SpanKind::Internal, || "work"));
    }
}

fn spans_of(request: &ExportRequest) -> usize {
    request.resource_spans.iter().flat_map(|it| &it.scope_spans).map(|it| it.spans.len()).sum()
}

#[tokio::test]
async fn a_full_batch_is_sent_at_once_and_the_rest_at_the_end() {
    let mut site = Site::start(Vec::new()).await;
    work(&site.tracer, BATCH);
    let request = site.next().await;
    assert_eq!(spans_of(&request), BATCH);
    let resource = request.resource_spans[0].resource.clone().unwrap();
    let names: Vec<&str> = resource.attributes.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(
        names,
        ["service.name", "service.namespace", "service.version", "service.instance.id"]
    );
    work(&site.tracer, 3);
    site.ends(&[("sent", BATCH + 3)]).await;
}

#[tokio::test]
async fn an_overloaded_collector_gets_the_same_batch_again() {
    let busy = |status: StatusCode| (status, [(RETRY_AFTER, "0")]).into_response();
    let answers = vec![busy(StatusCode::SERVICE_UNAVAILABLE), busy(StatusCode::TOO_MANY_REQUESTS)];
    let mut site = Site::start(answers).await;
    work(&site.tracer, BATCH);
    let first = site.next().await;
    assert_eq!(site.next().await, first);
    assert_eq!(site.next().await, first);
    site.ends(&[("sent", BATCH)]).await;
}

#[tokio::test]
async fn refused_spans_are_counted_and_not_sent_again() {
    let partial = PartialSuccess { rejected_spans: 5 };
    let partial = ExportAnswer { partial_success: Some(partial) }.encode_to_vec();
    let answers = vec![partial.into_response(), StatusCode::BAD_REQUEST.into_response()];
    let mut site = Site::start(answers).await;
    work(&site.tracer, BATCH);
    site.next().await;
    work(&site.tracer, BATCH);
    site.next().await;
    site.ends(&[("refused", BATCH + 5), ("sent", BATCH - 5)]).await;
}

#[tokio::test]
async fn spans_beyond_the_queue_are_dropped_without_a_wait() {
    // Nothing takes spans out of the queue.
    let (tracer, exporter, metrics) = program("http://127.0.0.1:1/v1/traces");
    work(&tracer, QUEUE + 10);
    assert_counted(&metrics, &[("dropped", 10)]);
    // A daemon that stops does not wait for an absent collector.
    timeout(PATIENCE, exporter.start().end()).await.unwrap();
    assert_counted(&metrics, &[("dropped", QUEUE + 10)]);
}
