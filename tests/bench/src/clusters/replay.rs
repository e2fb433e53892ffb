//! Replays the calls of clusters with a client that does nothing else: no database, no second look, and each call as soon as the calls it
//! needs
//! were answered.
//!
//! The result is the critical path of many clusters at once, because it includes the time of the cloud and of the client library on this
//! host.
//! The servers have prepared configs in their user data and become clusters without clusterd, so the load of 800 guests on this host is
//! part
//! of the path. The replay runs in a process of its own, as clusterd does.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, join_all, try_join_all};
use openstack::compute::server_groups::{self, Policy};
use openstack::compute::servers::{self, Boot, ConfigDrive, NewServer};
use openstack::compute::{flavors, limits};
use openstack::dns::recordsets::{self, NewRecordset};
use openstack::dns::zones;
use openstack::identity::application_credentials::{self, NewApplicationCredential};
use openstack::image::images;
use openstack::load_balancer::listeners::NewListener;
use openstack::load_balancer::load_balancers::{self, NewLoadBalancer};
use openstack::load_balancer::monitors::NewMonitor;
use openstack::load_balancer::pools::{NewMember, NewPool};
use openstack::network::networks::{self, NewNetwork};
use openstack::network::ports::{self, NewPort, Port};
use openstack::network::security_groups::{self, Remote, RuleSpec};
use openstack::network::subnets::{self, NewSubnet};
use openstack::network::{floating_ips, quotas, routers};
use openstack::{CloudConfig, CloudError, Session, block_storage, dns, load_balancer};
use serde::{Deserialize, Serialize};

use super::cloud::{USER, ZONE};
use super::configs::user_data;
use crate::emulation::{Emulation, say};
use crate::process;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Replayed {
    /// Seconds until the last server was accepted.
    pub(crate) asked: f64,
    /// Seconds until all calls were answered.
    pub(crate) all: f64,
    /// Seconds of CPU time that the client spent.
    pub(crate) cpu: f64,
}

/// Starts the process that replays, and waits until it ends.
pub(crate) async fn replay(
    clouds_yaml: &Path,
    count: usize,
    (masters, workers): (usize, usize),
) -> anyhow::Result<Replayed> {
    let arguments = [
        "replay".to_owned(),
        clouds_yaml.to_string_lossy().into_owned(),
        count.to_string(),
        masters.to_string(),
        workers.to_string(),
    ];
    let (_emulation, said) = Emulation::start(&arguments).await?;
    serde_json::from_str(&said).with_context(|| format!("the replay says {said:?}"))
}

/// Requests the clusters and prints how long that took.
pub(crate) fn run(
    clouds_yaml: &Path,
    count: usize,
    masters: usize,
    workers: usize,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let stem = |number: usize| format!("replay-{number}");
    let data = (0..count).map(|number| user_data(&stem(number), (masters, workers)));
    let data = data.collect::<anyhow::Result<Vec<_>>>()?;
    let before = process::cpu(std::process::id())?;
    let replayed = runtime.block_on(async {
        let session = Session::new(CloudConfig::read(clouds_yaml, Some(USER))?)?;
        let begun = Instant::now();
        let clusters = data.into_iter().enumerate().map(|(number, data)| {
            let session = session.clone();
            let stem = stem(number);
            tokio::spawn(async move { cluster(&session, &stem, (masters, data), begun).await })
        });
        let mut asked: f64 = 0.0;
        for ended in join_all(clusters).await {
            asked = asked.max(ended?.map_err(anyhow::Error::msg)?);
        }
        anyhow::Ok(Replayed { asked, all: begun.elapsed().as_secs_f64(), cpu: 0.0 })
    })?;
    let cpu = (process::cpu(std::process::id())? - before).as_secs_f64();
    say(&serde_json::to_string(&Replayed { cpu, ..replayed })?)?;
    Ok(())
}

/// A call whose answer several other calls wait for.
type Step<'a, T> = Shared<BoxFuture<'a, Result<T, Arc<CloudError>>>>;

fn step<'a, T: Clone>(
    call: impl Future<Output = Result<T, Arc<CloudError>>> + Send + 'a,
) -> Step<'a, T> {
    call.boxed().shared()
}

/// Requests one cluster, whose first `masters` servers are the control plane. Returns when the last server was accepted, in seconds from
/// `begun`.
async fn cluster(
    session: &Session,
    stem: &str,
    (masters, user_data): (usize, Vec<Vec<u8>>),
    begun: Instant,
) -> Result<f64, String> {
    let name = |what: &str| format!("{stem}-{what}");
    let zone = step(async {
        let found = zones::find(session, &format!("{ZONE}.")).await?;
        Ok(found.map(|it| it.id).unwrap_or_default())
    });
    let names_fit = async {
        let zone = zone.clone().await?;
        Ok::<_, Arc<CloudError>>(dns::limits::recordsets(session, &zone).await?)
    };
    let fits = step(async {
        let looks = async {
            Ok(tokio::try_join!(
                flavors::list(session),
                limits::show(session),
                quotas::show(session),
                load_balancer::quotas::load_balancers(session),
                block_storage::limits::show(session),
            )?)
        };
        let ((flavors, ..), _) = tokio::try_join!(looks, names_fit)?;
        let small = flavors.into_iter().find(|it| it.name == "m1.small");
        Ok(small.map(|it| it.id).unwrap_or_default())
    });
    let image = step(async {
        let found = images::find(session, "fedora-coreos").await?;
        Ok(found.into_iter().next().map(|it| it.id).unwrap_or_default())
    });
    let network = step(async {
        fits.clone().await?;
        let new = NewNetwork { name: name("network"), description: stem.to_owned(), mtu: None };
        Ok(networks::create(session, &new).await?.id)
    });
    let subnet = step(async {
        let new = NewSubnet {
            name: name("subnet"),
            network_id: network.clone().await?,
            cidr: "10.0.0.0/24".to_owned(),
            dns_nameservers: Vec::new(),
        };
        Ok(subnets::create(session, &new).await?.id)
    });
    let external = step(async {
        fits.clone().await?;
        let found = networks::external(session).await?;
        Ok(found.into_iter().next().map(|it| it.id).unwrap_or_default())
    });
    let leg = step(async {
        let router =
            routers::create(session, &name("router"), Some(&external.clone().await?)).await?;
        Ok(routers::add_subnet(session, &router.id, &subnet.clone().await?).await?)
    });
    let groups = step(async {
        fits.clone().await?;
        let of = ["node", "control-plane"].map(|role| {
            let name = name(role);
            async move { security_groups::create(session, &name, "").await }
        });
        let made = try_join_all(of).await?;
        Ok(made.into_iter().map(|it| it.id).collect::<Vec<String>>())
    });
    let rules = step(async {
        let groups = groups.clone().await?;
        let [of_nodes, of_masters] = [&groups[0], &groups[1]];
        let tcp = |first, last| RuleSpec {
            protocol: Some("tcp".to_owned()),
            port_range_min: Some(first),
            port_range_max: Some(last),
            ..RuleSpec::everything(Remote::Prefix("0.0.0.0/0".to_owned()))
        };
        let rules = [
            (of_nodes, RuleSpec::everything(Remote::Group(of_nodes.clone()))),
            (of_nodes, tcp(30000, 32767)),
            (of_nodes, RuleSpec { protocol: Some("udp".to_owned()), ..tcp(30000, 32767) }),
            (of_nodes, tcp(22, 22)),
            (of_masters, tcp(6443, 6443)),
        ];
        let each = rules.iter().map(|(group, pass)| security_groups::allow(session, group, pass));
        try_join_all(each).await?;
        Ok(())
    });
    let port = |name: String, groups: Option<Vec<String>>| {
        let (network, subnet) = (network.clone(), subnet.clone());
        async move {
            let new = NewPort {
                name,
                network_id: network.await?,
                subnet_id: Some(subnet.await?),
                address: None,
                security_groups: groups,
                allowed_address_pairs: Vec::new(),
            };
            Ok::<Port, Arc<CloudError>>(ports::create(session, &new).await?)
        }
    };
    let balancer_port = step(port(name("vip-port"), None));
    let machine_ports = step(async {
        let groups = groups.clone().await?;
        let each = (0..user_data.len()).map(|at| {
            let own = if at < masters { groups.clone() } else { groups[..1].to_vec() };
            port(name(&format!("machine-{at}")), Some(own))
        });
        try_join_all(each).await
    });
    let server_groups = step(async {
        fits.clone().await?;
        let of = ["masters", "workers"].map(|role| {
            let name = name(role);
            let policy = Policy::from("soft-anti-affinity".to_owned());
            async move { server_groups::create(session, &name, &policy).await }
        });
        let made = try_join_all(of).await?;
        Ok(made.into_iter().map(|it| it.id).collect::<Vec<String>>())
    });
    let servers = async {
        let (ports, _, groups) =
            tokio::try_join!(machine_ports.clone(), balancer_port.clone(), server_groups.clone())?;
        let (flavor_id, image) = tokio::try_join!(fits.clone(), image.clone())?;
        let each = ports.iter().zip(user_data.clone()).enumerate().map(|(at, (port, data))| {
            let new = NewServer {
                name: port.name.clone(),
                tags: vec![stem.to_owned()],
                flavor_id: flavor_id.clone(),
                boot: Boot::Image { id: image.clone() },
                disks: Vec::new(),
                ports: vec![port.id.clone()],
                user_data: Some(data),
                config_drive: ConfigDrive::Always,
                key_name: None,
                availability_zone: None,
                server_group: Some(groups[usize::from(at >= masters)].clone()),
                hints: BTreeMap::new(),
                metadata: BTreeMap::new(),
            };
            async move { servers::create(session, &new).await }
        });
        try_join_all(each).await?;
        Ok::<f64, Arc<CloudError>>(begun.elapsed().as_secs_f64())
    };
    let balancer = async {
        let (ports, own) = tokio::try_join!(machine_ports.clone(), balancer_port.clone())?;
        let members = ports[..masters].iter().filter_map(address).map(|address| NewMember {
            name: String::new(),
            address,
            protocol_port: 6443,
            subnet_id: None,
        });
        let new = NewLoadBalancer {
            name: name("balancer"),
            vip_port_id: Some(own.id.clone()),
            listeners: vec![listener(members.collect())],
            ..NewLoadBalancer::default()
        };
        load_balancers::create(session, &new).await?;
        Ok::<(), Arc<CloudError>>(())
    };
    let names = async {
        let (own, external, (), zone) =
            tokio::try_join!(balancer_port.clone(), external.clone(), leg.clone(), zone.clone())?;
        let description = name("address");
        let floating =
            floating_ips::create(session, &external, &description, Some(&own.id)).await?;
        let each = ["api", "*.apps"].map(|host| {
            let new = NewRecordset {
                name: format!("{host}.{stem}.{ZONE}."),
                kind: "A".to_owned(),
                records: vec![floating.address.to_string()],
                description: stem.to_owned(),
                ttl: None,
            };
            let zone = &zone;
            async move { recordsets::create(session, zone, &new).await }
        });
        try_join_all(each).await?;
        Ok::<(), Arc<CloudError>>(())
    };
    let credential = async {
        fits.clone().await?;
        let new = NewApplicationCredential {
            name: name("credential"),
            description: String::new(),
            secret: "0123456789abcdef".into(),
            roles: vec!["member".to_owned()],
            access_rules: Vec::new(),
            expires_at: None,
        };
        application_credentials::create(session, &new).await?;
        Ok::<(), Arc<CloudError>>(())
    };
    let all = tokio::try_join!(servers, rules.clone(), balancer, names, credential);
    all.map(|(asked, ..)| asked).map_err(|error| format!("{stem}: {error}"))
}

fn address(port: &Port) -> Option<IpAddr> {
    port.fixed_ips.first().map(|it| it.ip_address)
}

/// The listener of the Kubernetes API, with its pool and health monitor.
fn listener(members: Vec<NewMember>) -> NewListener {
    NewListener {
        name: "api".to_owned(),
        protocol: "TCP".to_owned(),
        protocol_port: 6443,
        allowed_cidrs: Vec::new(),
        timeout_client_data: Some(600_000),
        timeout_member_data: Some(600_000),
        default_pool: Some(NewPool {
            name: "api".to_owned(),
            protocol: "TCP".to_owned(),
            lb_algorithm: "ROUND_ROBIN".to_owned(),
            members,
            healthmonitor: Some(NewMonitor {
                name: "api".to_owned(),
                kind: "TCP".to_owned(),
                delay: 5,
                timeout: 3,
                max_retries: 2,
                max_retries_down: 2,
                url_path: None,
                expected_codes: None,
            }),
        }),
    }
}
