//! Formats times, sizes and states. Pure.

use jiff::{SignedDuration, Timestamp};

/// The time since `then`; empty if `then` is no time.
pub(super) fn ago(then: &str, now: Timestamp) -> String {
    let Ok(then) = then.parse::<Timestamp>() else { return String::new() };
    let past = now.duration_since(then);
    if past < SignedDuration::from_secs(1) {
        "now".to_owned()
    } else {
        format!("{} ago", readable::duration(past))
    }
}

/// The duration since `then`; empty if `then` is no time.
pub(super) fn age(then: &str, now: Timestamp) -> String {
    let Ok(then) = then.parse::<Timestamp>() else { return String::new() };
    readable::duration(now.duration_since(then))
}

/// The time until `then`.
pub(super) fn left(then: &str, now: Timestamp) -> String {
    let Ok(then) = then.parse::<Timestamp>() else { return String::new() };
    let left = then.duration_since(now);
    if left.is_positive() { readable::duration(left) } else { "none".to_owned() }
}

/// The time of day, UTC.
pub(super) fn clock(time: &str) -> String {
    time.parse::<Timestamp>().map(|at| at.strftime("%H:%M:%S").to_string()).unwrap_or_default()
}

/// The date and time as RFC 3339, to the second.
pub(super) fn moment(time: &str) -> String {
    time.parse::<Timestamp>().map(readable::time).unwrap_or_default()
}

/// A number of bytes with a unit that fits, to about three digits.
pub(crate) fn bytes(count: f64) -> String {
    let mut left = count;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if left < 1024.0 {
            let digits = usize::from(left < 10.0 && left.fract() >= 0.05);
            return format!("{left:.digits$} {unit}");
        }
        left /= 1024.0;
    }
    format!("{left:.0} PiB")
}

/// The tone of a state: `good`, `busy`, `warn`, `bad` or `calm`. Nodes, clusters, VMs and conditions have different words for states, so
/// the tone depends on parts of the word.
pub(crate) fn tone(state: &str) -> &'static str {
    let state = state.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| state.contains(word));
    let is = |words: &[&str]| words.contains(&state.as_str());
    if has(&["fail", "error", "stuck", "unhealthy", "critical"])
        || is(&["false", "refused", "stays", "down"])
    {
        "bad"
    } else if has(&[
        "hold",
        "maintenance",
        "rescue",
        "unknown",
        "warn",
        "expired",
        "suspended",
        "disabled",
    ]) {
        "warn"
    } else if has(&["wait", "in_progress", "building", "build", "under_way"])
        || state.ends_with("ing")
        || is(&["rebuild", "moves", "waits"])
    {
        "busy"
    } else if has(&["complete", "healthy"])
        || is(&[
            "active",
            "available",
            "true",
            "there",
            "ok",
            "up",
            "power on",
            "info",
            "joined",
            "enabled",
            "drained",
        ])
    {
        "good"
    } else {
        "calm"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_to_two_units() {
        let now: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        for (then, want) in [
            ("2026-11-23T12:00:00Z", "now"),
            ("2026-11-23T11:59:48Z", "12 s ago"),
            ("2026-11-23T11:56:50Z", "3 min 10 s ago"),
            ("2026-11-23T11:20:50+00:00", "39 min ago"),
            ("2026-11-23T02:30:00Z", "9 h 30 min ago"),
            ("2026-11-20T12:00:00Z", "3 d ago"),
            ("gone", ""),
        ] {
            assert_eq!(ago(then, now), want, "{then}");
        }
        assert_eq!(age("2026-11-23T11:56:50Z", now), "3 min 10 s");
        assert_eq!(age("2026-11-23T12:00:01Z", now), "0 s");
        assert_eq!(left("2026-11-24T13:00:00Z", now), "1 d 1 h");
        assert_eq!(left("2026-11-22T13:00:00Z", now), "none");
        assert_eq!(clock("2026-11-22T13:00:07.25Z"), "13:00:07");
        assert_eq!(moment("2026-11-22T14:00:07.123456+01:00"), "2026-11-22T13:00:07Z");
    }

    #[test]
    fn sizes_have_three_digits_at_most() {
        for (count, want) in
            [(0.0, "0 B"), (1536.0, "1.5 KiB"), (8589934592.0, "8 GiB"), (34359738368.0, "32 GiB")]
        {
            assert_eq!(bytes(count), want);
        }
    }

    #[test]
    fn every_state_has_its_tone() {
        for (state, want) in [
            ("active", "good"),
            ("CREATE_COMPLETE", "good"),
            ("clean failed", "bad"),
            ("UNHEALTHY", "bad"),
            ("wait call-back", "busy"),
            ("CREATE_IN_PROGRESS", "busy"),
            ("deploying", "busy"),
            ("enroll", "calm"),
            ("deploy hold", "warn"),
            ("SHUTOFF", "calm"),
            ("awaiting_service", "busy"),
            ("joined", "good"),
            ("disabled", "warn"),
            ("stays", "bad"),
        ] {
            assert_eq!(tone(state), want, "{state}");
        }
    }
}
