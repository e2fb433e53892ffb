//! Events of a cluster: lists and follows them.

use std::time::Duration;

use anyhow::Context;
use api_client::WithJson;
use api_client::clusterd::Event;
use tokio::time::{sleep, timeout};

use crate::api::Api;
use crate::exit::Exit;
use crate::output::{Answer, Format, elements, line, plain};

use super::stream::Stream;

/// How often a cluster is observed without an event, because its conditions may change without one.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Events within this time cause only one observation.
const TOGETHER: Duration = Duration::from_millis(200);
/// The delay before a new stream is opened after one ended.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The number of events that one request asks for.
const PAGE: usize = 1000;

const HEADER: [&str; 4] = ["Time", "Severity", "Reason", "Message"];

fn path(cluster: &str) -> String {
    format!("/bedplate/v1/clusters/{cluster}/events")
}

/// Lists all events so far.
pub(super) async fn list(api: &Api, cluster: &str) -> anyhow::Result<Answer> {
    let mut all: Vec<WithJson<Event>> = Vec::new();
    loop {
        let last = all.last().and_then(|event| event.id.as_deref());
        let after = last.map_or(String::new(), |last| format!("&marker={last}"));
        let page: Vec<_> = api.all(&format!("{}?limit={PAGE}{after}", path(cluster))).await?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            break;
        }
    }
    let rows: Vec<Vec<String>> = all.iter().map(|event| event_row(event)).collect();
    Ok(Answer::table(elements(all), &HEADER, rows))
}

pub(crate) fn event_row(event: &Event) -> Vec<String> {
    let [severity, reason, message] =
        [&event.severity, &event.reason, &event.message].map(|text| plain(text));
    vec![readable::time(event.at), severity, reason, message]
}

/// Prints all events, past and new, until the cluster is gone.
pub(super) async fn follow(api: &Api, cluster: &str, format: Format) -> anyhow::Result<()> {
    let mut last: Option<String> = None;
    let mut is_first = true;
    loop {
        let mut stream = match api.follow(&path(cluster), last.as_deref()).await {
            Ok(response) => Stream::of(response),
            // A restart of the service must not end the command.
            Err(why) if !is_first && Exit::of(&why) == Exit::Unreachable => {
                sleep(AGAIN_AFTER).await;
                continue;
            }
            Err(why) => return Err(why),
        };
        // A broken stream continues after the last event.
        while let Ok(Some(event)) = stream.next().await {
            let data = serde_json::from_value(event.data).context("an event cannot be read")?;
            write_event(data, format, is_first)?;
            is_first = false;
            last = event.id.or(last);
            if event.name == "gone" {
                return Ok(());
            }
        }
        is_first = false;
        sleep(AGAIN_AFTER).await;
    }
}

fn write_event(event: WithJson<Event>, format: Format, is_first: bool) -> anyhow::Result<()> {
    let words = event_row(&event).join("  ");
    let answer = Answer::sentence(event.json, words);
    match format {
        Format::Table => answer.write(format),
        Format::Json | Format::Yaml => line(&answer.written_again(format, is_first)?),
    }
}

/// Tells when a cluster may have changed.
pub(super) struct ChangeWatcher<'a> {
    api: &'a Api,
    path: String,
    stream: Option<Stream>,
    last: Option<String>,
}

impl<'a> ChangeWatcher<'a> {
    pub(super) fn of(api: &'a Api, cluster: &str) -> ChangeWatcher<'a> {
        ChangeWatcher { api, path: path(cluster), stream: None, last: None }
    }

    /// Waits for an event, or for `LOOK_EVERY`.
    pub(super) async fn wait(&mut self) {
        if self.stream.is_none() {
            // If the service has no free stream, the cluster is observed at intervals instead.
            let answer = self.api.follow(&self.path, self.last.as_deref()).await;
            self.stream = answer.ok().map(Stream::of);
        }
        let Some(stream) = &mut self.stream else { return sleep(AGAIN_AFTER).await };
        let mut patience = LOOK_EVERY;
        while let Ok(next) = timeout(patience, stream.next()).await {
            match next {
                Ok(Some(event)) => self.last = event.id.or(self.last.take()),
                Ok(None) | Err(_) => {
                    self.stream = None;
                    return sleep(AGAIN_AFTER).await;
                }
            }
            patience = TOGETHER;
        }
    }
}
