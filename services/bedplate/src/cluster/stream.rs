//! Server-Sent Events, as they are read (WHATWG HTML, 9.2.6).

use anyhow::Context;
use reqwest::Response;
use serde_json::Value;

/// The longest line that is believed.
const LONGEST_LINE: usize = 1 << 20;

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// What the next stream is to begin after.
    pub(super) id: Option<String>,
    /// What kind of event it is.
    pub(super) name: String,
    /// What it says.
    pub(super) data: Value,
}

/// A stream that is open.
pub(super) struct Stream {
    response: Response,
    reader: Reader,
    read: std::collections::VecDeque<Event>,
}

/// What was read of a stream and is no event yet.
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

    /// The next event; `None` where the stream ends.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Ok(Some(event));
            }
            let chunk = self.response.chunk().await.context("the stream of events broke off")?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.read.extend(self.reader.feed(&chunk)?);
        }
    }
}

impl Reader {
    /// The events that are complete with these bytes.
    fn feed(&mut self, bytes: &[u8]) -> anyhow::Result<Vec<Event>> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            events.extend(self.line(line.trim_end_matches(['\r', '\n']))?);
        }
        anyhow::ensure!(self.bytes.len() <= LONGEST_LINE, "a line of the events has no end");
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
            // Comments, and what nobody knows.
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
    fn events_are_read_wherever_the_bytes_are_cut() {
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
