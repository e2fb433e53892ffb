//! The histograms of latencies.

use std::hash::Hash;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

/// The upper bounds of the buckets, in seconds: from a read of the database to a firmware that starts slowly.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

/// A histogram for each set of labels.
pub(crate) type Durations<L> = Family<L, Histogram>;

/// Makes the histograms of one latency.
pub(crate) fn durations<L: Clone + Hash + Eq>() -> Durations<L> {
    Family::new_with_constructor(histogram as fn() -> Histogram)
}

/// Makes the histogram of a latency without labels.
pub(crate) fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}
