//! The sensors of machines.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::label::label_text;

/// The most samples of one node.
const MOST_SAMPLES: usize = 200;
/// The most metric families. BMCs choose the names of sensors, and IPMI's names become names of families.
const MOST_FAMILIES: usize = 200;

/// The last readings of sensors. Clones are the same readings.
#[derive(Clone, Debug, Default)]
pub struct SensorGauges {
    /// The nodes by their ids, in the order of the page.
    nodes: Arc<Mutex<BTreeMap<u128, NodeSensors>>>,
}

/// The readings of one node.
#[derive(Clone, Debug)]
pub struct NodeSensors {
    pub uuid: String,
    pub name: Option<String>,
    pub instance: Option<String>,
    /// When the sensors were read, in seconds since 1970.
    pub read_at: i64,
    pub samples: Vec<SensorSample>,
}

/// One number of one sensor.
#[derive(Clone, Debug, PartialEq)]
pub struct SensorSample {
    /// The name of the metric, of letters, digits and underscores.
    pub family: String,
    /// The id of the sensor, unique in the machine.
    pub sensor: String,
    /// The name of the label with the part at which the sensor is, and its value.
    pub place: (&'static str, String),
    /// The word of IPMI for the comparison with thresholds.
    pub status: Option<&'static str>,
    pub value: f64,
}

impl SensorGauges {
    /// Replaces the readings of a node.
    pub fn note(&self, node: u128, mut sensors: NodeSensors) {
        let samples = &mut sensors.samples;
        samples.sort_by(|a, b| (&a.family, &a.sensor).cmp(&(&b.family, &b.sensor)));
        // A BMC may give two sensors one name, and a page with the same series twice is refused as a whole.
        samples.dedup_by(|a, b| (&a.family, &a.sensor) == (&b.family, &b.sensor));
        samples.truncate(MOST_SAMPLES);
        samples.shrink_to_fit();
        self.nodes().insert(node, sensors);
    }

    /// Forgets the readings of a node that another conductor reads.
    pub fn forget(&self, node: u128) {
        self.nodes().remove(&node);
    }

    /// Forgets the readings before this time, in seconds since 1970.
    pub fn forget_before(&self, time: i64) {
        self.nodes().retain(|_, sensors| sensors.read_at >= time);
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<u128, NodeSensors>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

impl Collector for SensorGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let nodes = self.nodes();
        let mut families: BTreeMap<&str, Vec<(&NodeSensors, &SensorSample)>> = BTreeMap::new();
        for node in nodes.values() {
            for sample in &node.samples {
                families.entry(&sample.family).or_default().push((node, sample));
            }
        }
        for (family, samples) in families.into_iter().take(MOST_FAMILIES) {
            let help = "Sensors of machines, as the BMC reported them last.";
            let mut metric = encoder.encode_descriptor(family, help, None, MetricType::Gauge)?;
            for (node, sample) in samples {
                let labels = sample.labels(node);
                metric.encode_family(&labels)?.encode_gauge(&sample.value)?;
            }
        }
        if nodes.is_empty() {
            return Ok(());
        }
        let (name, help) = (
            "baremetal_last_payload_timestamp_seconds",
            "When the sensors of a node were read, in seconds since 1970.",
        );
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for node in nodes.values() {
            let labels = node.labels();
            metric.encode_family(&labels)?.encode_gauge(&node.read_at)?;
        }
        Ok(())
    }
}

type Labels = Vec<(&'static str, String)>;

impl NodeSensors {
    fn labels(&self) -> Labels {
        // Without an instance, ironic-prometheus-exporter shows the node in its place.
        let instance = self.instance.as_ref().unwrap_or(&self.uuid);
        let mut labels =
            vec![("node_uuid", self.uuid.clone()), ("instance_uuid", instance.clone())];
        labels.extend(self.name.as_ref().map(|name| ("node_name", label_text(name))));
        labels
    }
}

impl SensorSample {
    fn labels(&self, node: &NodeSensors) -> Labels {
        let mut labels = node.labels();
        labels.push(("sensor_id", label_text(&self.sensor)));
        let (key, place) = &self.place;
        labels.push((*key, label_text(place)));
        labels.extend(self.status.map(|status| ("status", status.to_owned())));
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    fn sample(family: &str, sensor: &str, value: f64) -> SensorSample {
        SensorSample {
            family: family.to_owned(),
            sensor: sensor.to_owned(),
            place: ("physical_context", "CPU \"1\"".to_owned()),
            status: None,
            value,
        }
    }

    fn node(read_at: i64, samples: Vec<SensorSample>) -> NodeSensors {
        let uuid = "1be26c0b".to_owned();
        NodeSensors { uuid, name: Some("r1u7".to_owned()), instance: None, read_at, samples }
    }

    fn lines(page: &str) -> Vec<&str> {
        page.lines().filter(|line| line.starts_with("baremetal_")).collect()
    }

    #[test]
    fn each_series_comes_once_with_its_last_value() {
        let mut metrics = Metrics::new("test", "0");
        let sensors = metrics.sensors();
        sensors.note(1, node(100, vec![sample("baremetal_temp_cpu_celsius", "0@1", 90.0)]));
        let twice = vec![
            sample("baremetal_temp_cpu_celsius", "0@1", 41.5),
            sample("baremetal_temp_cpu_celsius", "0@1", 43.0),
        ];
        sensors.note(1, node(200, twice));
        let page = metrics.text().unwrap();
        assert_eq!(
            lines(&page),
            [
                r#"baremetal_temp_cpu_celsius{node_uuid="1be26c0b",instance_uuid="1be26c0b",node_name="r1u7",sensor_id="0@1",physical_context="CPU \"1\""} 41.5"#,
                r#"baremetal_last_payload_timestamp_seconds{node_uuid="1be26c0b",instance_uuid="1be26c0b",node_name="r1u7"} 200"#,
            ]
        );
        sensors.forget_before(201);
        assert_eq!(lines(&metrics.text().unwrap()), Vec::<&str>::new());
    }

    #[test]
    fn a_bmc_with_many_sensors_does_not_make_a_large_page() {
        let mut metrics = Metrics::new("test", "0");
        let sensors = metrics.sensors();
        for id in 0..3 {
            let many = (0..1000).map(|n| sample(&format!("baremetal_{id}_{n}"), "0@1", 1.0));
            sensors.note(id, node(100, many.collect()));
        }
        let page = metrics.text().unwrap();
        assert_eq!(lines(&page).len(), MOST_FAMILIES + 3);
    }
}
