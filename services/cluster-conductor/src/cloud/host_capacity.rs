//! Checks whether the cloud's hosts have capacity for the servers that are still to be created, as far as Placement answers.

use std::collections::BTreeMap;

use cluster_core::{ClusterObservation, DesiredObjects, Key, Problem, ResourceSpec};
use openstack::CloudError;
use openstack::compute::flavors::Flavor;
use openstack::placement::candidates::{self, Need};

use super::error::Result;
use super::lookups::CloudLookups;

/// How many allocation candidates Placement may return per server. Placement may list a host several times, once for each way to divide it,
/// which must not hide the other hosts.
const CANDIDATES_PER_HOST: u32 = 16;

/// Returns the missing capacity as a problem that stops the creation; `None` when everything may fit, or Placement does not answer.
///
/// Checks each flavor separately, so it can miss a combined shortage but never reports a false one.
pub(crate) async fn missing_capacity(
    site: &CloudLookups<'_>,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
) -> Result<Option<Problem>> {
    let mut wanted: BTreeMap<(&str, bool), u32> = BTreeMap::new();
    let missing = shape.iter().filter(|(key, _)| !seen.objects.contains_key(*key));
    for (key, object) in missing.filter(|(key, _)| matches!(key, Key::Server(_))) {
        let ResourceSpec::Server { flavor: Some(flavor), disks, .. } = &object.thing else {
            continue;
        };
        // A server in back-off is created by a later turn.
        if !seen.held.contains_key(key) {
            let boots_from_volume = disks.iter().any(|disk| disk.purpose == "boot");
            *wanted.entry((flavor, boots_from_volume)).or_default() += 1;
        }
    }
    for ((given, boots_from_volume), count) in wanted {
        let need = need(site.flavor(given).await?, boots_from_volume);
        if need.resources.is_empty() {
            continue;
        }
        let limit = count.saturating_mul(CANDIDATES_PER_HOST);
        let hosts = match candidates::list(site.own, &need, limit).await {
            Ok(hosts) => hosts,
            // Placement usually answers administrators only. Other errors do not matter either: Nova reports a real problem.
            Err(error) => {
                log(&error);
                return Ok(None);
            }
        };
        let room: u64 = hosts.iter().map(|host| host.holds(&need)).sum();
        if room < u64::from(count) {
            return Ok(Some(no_room(given, count, room)));
        }
    }
    Ok(None)
}

fn log(error: &CloudError) {
    tracing::debug!("cannot read the capacity of the hosts: {error}");
}

fn no_room(flavor: &str, count: u32, room: u64) -> Problem {
    Problem {
        reason: "NoRoom".to_owned(),
        message: format!(
            "nothing more is created, because the cloud's hosts lack capacity; needed: {count} servers of flavor {flavor} ({room} fit)"
        ),
        next_action: "wait until capacity is free, resize the cluster, or use another flavor"
            .to_owned(),
        is_final: false,
    }
}

/// Computes the least that Nova requests from Placement for one server of a flavor.
///
/// Nova's documentation, "Extra Specs": `resources:CLASS` replaces the amount of the flavor, and dedicated processors (`hw:cpu_policy`) are
/// another resource class.
fn need(flavor: &Flavor, boots_from_volume: bool) -> Need {
    let disk = if boots_from_volume { 0 } else { flavor.disk };
    let mut need = Need::of(flavor.vcpus, flavor.ram, disk);
    for (key, value) in &flavor.extra_specs {
        if key == "hw:cpu_policy" && value != "shared" {
            need.resources.remove("VCPU");
        } else if let Some(class) = key.strip_prefix("resources:") {
            match value.parse() {
                Ok(0) | Err(_) => need.resources.remove(class),
                Ok(amount) => need.resources.insert(class.to_owned(), amount),
            };
        } else if let Some(name) = key.strip_prefix("trait:")
            && value == "required"
        {
            need.traits.push(name.to_owned());
        }
    }
    need
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};

    use cluster_core::{
        BackingOff, CloudObject, CloudObjectDetails, CloudObjectState, DesiredObject, ServerVolume,
    };
    use jiff::Timestamp;
    use openstack::{CloudConfig, Session};
    use openstack_emulator::{Emulator, Hypervisor, Settings};
    use tracing::field::Field;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;
    use crate::cloud::emulated::emulated_cloud;

    #[test]
    fn a_flavor_needs_what_nova_asks_placement_for() {
        let specs = [
            ("resources:PGPU", "1"),
            ("resources:VCPU", "0"),
            ("trait:CUSTOM_A10", "required"),
            ("trait:CUSTOM_SLOW", "forbidden"),
        ];
        let specs = specs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let flavor = Flavor {
            id: "g1".to_owned(),
            name: "g1".to_owned(),
            vcpus: 4,
            ram: 8192,
            disk: 40,
            extra_specs: specs.into(),
        };
        let resources = |need: &Need| {
            let each = need.resources.iter().map(|(class, amount)| format!("{class}:{amount}"));
            each.collect::<Vec<_>>().join(",")
        };
        let whole = need(&flavor, false);
        assert_eq!(resources(&whole), "DISK_GB:40,MEMORY_MB:8192,PGPU:1");
        assert_eq!(whole.traits, ["CUSTOM_A10"]);
        assert_eq!(resources(&need(&flavor, true)), "MEMORY_MB:8192,PGPU:1");
        let with = |key: &str, value: &str| {
            let specs = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            resources(&need(&Flavor { extra_specs: specs, ..flavor.clone() }, false))
        };
        let shared = "DISK_GB:40,MEMORY_MB:8192,VCPU:4";
        assert_eq!(with("hw:cpu_policy", "dedicated"), "DISK_GB:40,MEMORY_MB:8192");
        assert_eq!(with("hw:cpu_policy", "shared"), shared);
        assert_eq!(with("hw:mem_page_size", "large"), shared);
    }

    /// The servers of this many members, with disks for these purposes.
    fn servers(number: u32, purposes: &[&'static str]) -> DesiredObjects {
        let disk = |purpose: &&'static str| ServerVolume { purpose, size: 10, kind: None };
        let server = |number: u32| {
            let thing = ResourceSpec::Server {
                image: "i".to_owned(),
                flavor: Some("m1.small".to_owned()),
                keypair: None,
                availability_zone: None,
                disks: purposes.iter().map(disk).collect(),
            };
            let key = format!("server/default-worker-{number}").parse().unwrap();
            (key, DesiredObject { name: String::new(), thing, needs: BTreeSet::new() })
        };
        (0..number).map(server).collect()
    }

    #[tokio::test]
    async fn the_disks_of_the_hosts_limit_the_servers_that_do_not_boot_from_volumes() {
        // The flavor has a disk of 20 GiB.
        let host = Hypervisor {
            name: "compute-1".to_owned(),
            zone: "nova".to_owned(),
            vcpus: 8,
            memory_mb: 65_536,
            disk_gb: 50,
            gpus: 0,
        };
        let settings = Settings { hypervisors: vec![host], ..Settings::default() };
        let emulator = Emulator::start(settings).await.unwrap();
        let clouds = emulator.cloud.clouds_yaml();
        let config = CloudConfig::from_clouds_yaml(&clouds, Some("admin")).unwrap();
        let session = Session::new(config).unwrap();
        let lacks = async |shape: DesiredObjects, seen: &ClusterObservation| {
            let site = CloudLookups::new((&session, &session), None, Arc::default());
            let problem = missing_capacity(&site, &shape, seen).await.unwrap();
            problem.map(|it| it.message.rsplit_once("needed: ").unwrap().1.to_owned())
        };
        let two_fit = Some("3 servers of flavor m1.small (2 fit)".to_owned());
        let mut seen = ClusterObservation::default();
        assert_eq!(lacks(servers(2, &[]), &seen).await, None);
        assert_eq!(lacks(servers(3, &[]), &seen).await, two_fit);
        assert_eq!(lacks(servers(3, &["etcd"]), &seen).await, two_fit);
        assert_eq!(lacks(servers(3, &["etcd", "boot"]), &seen).await, None);
        // A server that exists, or is created later, needs no room now.
        let first: Key = "server/default-worker-0".parse().unwrap();
        let held = BackingOff { times: 1, why: String::new(), until: Timestamp::MAX };
        seen.held.insert(first.clone(), held);
        assert_eq!(lacks(servers(3, &[]), &seen).await, None);
        let state = CloudObjectState::Ready;
        let (id, facts) = ("1".to_owned(), CloudObjectDetails::None);
        let found = CloudObject { id, state, address: None, facts };
        seen = ClusterObservation { objects: [(first, found)].into(), ..Default::default() };
        assert_eq!(lacks(servers(3, &[]), &seen).await, None);
    }

    /// Keeps the messages of the log.
    #[derive(Clone, Default)]
    struct Messages(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Messages {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            event.record(&mut |field: &Field, value: &dyn Debug| {
                if field.name() == "message" {
                    self.0.lock().unwrap().push(format!("{value:?}"));
                }
            });
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[tokio::test]
    async fn a_placement_that_refuses_tenants_stops_nothing_and_is_logged() {
        let (_emulator, session) = emulated_cloud().await;
        let messages = Messages::default();
        let _logging = tracing::subscriber::set_default(messages.clone());
        let site = CloudLookups::new((&session, &session), None, Arc::default());
        let seen = ClusterObservation::default();
        let lacks = missing_capacity(&site, &servers(1, &[]), &seen).await.unwrap();
        assert_eq!(lacks, None);
        let messages = messages.0.lock().unwrap();
        let told = messages.iter().filter(|it| it.starts_with("cannot read the capacity of the"));
        assert_eq!(told.count(), 1, "{messages:?}");
    }
}
