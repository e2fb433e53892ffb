//! The id of a request.

use jiff::Timestamp;
use uuid::{Builder, Uuid};

/// The id of a request, for logs and support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(Uuid);

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "req-{}", self.0)
    }
}

impl RequestId {
    /// Makes an id that sorts after the ids of earlier milliseconds (RFC 9562, version 7), so that an index on ids grows at its end.
    pub(crate) fn new(now: Timestamp) -> Self {
        let millis = now.as_millisecond().unsigned_abs();
        // In a version 4 UUID all bytes but two are fully random.
        let [a, b, c, d, e, f, _, g, _, h, i, j, ..] = Uuid::new_v4().into_bytes();
        let random = [a, b, c, d, e, f, g, h, i, j];
        RequestId(Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_ordered_by_time_and_unique() {
        let at = |millis: i64| Timestamp::from_millisecond(1_767_323_045_000 + millis).unwrap();
        let id = |millis| RequestId::new(at(millis)).to_string();
        assert!(id(1) < id(2) && id(2) < id(1000));
        assert_ne!(id(1), id(1));
        let read = Uuid::parse_str(id(3).strip_prefix("req-").unwrap()).unwrap();
        assert_eq!(read.get_version_num(), 7);
    }
}
