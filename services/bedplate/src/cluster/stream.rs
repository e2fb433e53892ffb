//! Parses Server-Sent Events (WHATWG HTML, 9.2.6).

use anyhow::Context;
use reqwest::Response;
use serde_json::Value;

/// The maximum length of a line, in bytes.
const LONGEST_LINE: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The `Last-Event-ID` of the next stream.
    pub(super) id: Option<String>,
    /// The kind of event.
    pub(super) name: String,
    pub(super) data: Value,
}

pub(super) struct Stream {
    response: Response,
    reader: Reader,
    read: std::collections::VecDeque<Event>,
}

/// The part of a stream that is not a complete event yet.
#[derive(Default)]
struct Reader {
    bytes: Vec<u8>,
    id: Option<String>,
    name: String,
    data: String,
}

impl Stream {
    pub(super) fn of(response: Response) -> Stream {
        Stream { response, reader: Reader::default(), read: std::collections::VecDeque::new() }
    }

    /// Waits for the next event; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Ok(Some(event));
            }
            let chunk = self.response.chunk().await.context("the event stream was interrupted")?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.read.extend(self.reader.feed(&chunk)?);
        }
    }
}

impl Reader {
    /// Returns the events that these bytes complete.
    fn feed(&mut self, bytes: &[u8]) -> anyhow::Result<Vec<Event>> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            events.extend(self.line(line.trim_end_matches(['\r', '\n']))?);
        }
        anyhow::ensure!(self.bytes.len() <= LONGEST_LINE, "a line of the event stream is too long");
        Ok(events)
    }

    fn line(&mut self, line: &str) -> anyhow::Result<Option<Event>> {
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            // Comments and unknown fields.
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> anyhow::Result<Option<Event>> {
        let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        if data.is_empty() {
            return Ok(None);
        }
        let data = serde_json::from_str(&data).context("an event is not JSON")?;
        Ok(Some(Event { id: self.id.clone(), name, data }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_parsed_wherever_the_bytes_are_split() {
        let bytes = b": alive\n\nid: 7\nevent: warning\ndata: {\"a\":\ndata: 1}\r\n\r\nevent: gone\ndata: {}\n\nid: 9\n";
        let of = |id: &str, name: &str, data| Event {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            data,
        };
        let want = [of("7", "warning", json!({"a": 1})), of("7", "gone", json!({}))];
        for cut in 0..bytes.len() {
            let mut reader = Reader::default();
            let (one, other) = bytes.split_at(cut);
            let mut events = reader.feed(one).unwrap();
            events.extend(reader.feed(other).unwrap());
            assert_eq!(events, want, "cut at {cut}");
        }
    }
}
