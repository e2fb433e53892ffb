//! The user data of servers that become a cluster without clusterd. The whole config is in the user data, and the cluster approves
//! certificate
//! requests itself, as kubeadm sets it up.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use cluster_bootstrap::{
    Approval, CgroupDriver, ClusterDns, ClusterSettings, Endpoint, Member, Name, Overrides,
    PodNetwork, Source, Worker,
};
use cluster_pki::{Validity, make_pki, new_bootstrap_token};
use jiff::Timestamp;

/// The user data of each server of a cluster, control-plane members first.
pub(crate) fn user_data(
    stem: &str,
    (masters, workers): (usize, usize),
) -> anyhow::Result<Vec<Vec<u8>>> {
    let lifetime = Duration::from_secs(24 * 3600);
    let validity = Validity { now: Timestamp::now(), lifetime };
    let name = Name::try_from(stem)?;
    let machine = |number: usize| {
        let address = Ipv4Addr::new(10, 0, 0, u8::try_from(10 + number)?).into();
        anyhow::Ok(Member { name: Name::try_from(format!("{stem}-{number}").as_str())?, address })
    };
    let cluster = ClusterSettings {
        version: "v1.34.1".try_into()?,
        pods: "10.100.0.0/16".parse()?,
        services: "10.254.0.0/16".parse()?,
        domain: "cluster.local".to_owned(),
        endpoint: Endpoint { host: format!("api.{stem}.example"), port: 6443 },
        also_known_as: Vec::new(),
        control_plane: (0..masters).map(machine).collect::<anyhow::Result<_>>()?,
        pod_network: PodNetwork::AddOn,
        dns: ClusterDns::CoreDns,
        source: Source::sample(),
        token: new_bootstrap_token(),
        token_hours: 24,
        pki: make_pki(&name, 0, validity)?,
        cgroups: CgroupDriver::Systemd,
        approval: Approval::Automatic,
        external_cloud_provider: false,
        overrides: Overrides::default(),
        extra: None,
        name,
    };
    let of_masters =
        cluster.control_plane.iter().map(|it| cluster_bootstrap::control_plane(&cluster, &it.name));
    let mut configs = of_masters.collect::<Result<Vec<_>, _>>()?;
    for number in masters..masters + workers {
        let (labels, taints) = (BTreeMap::new(), Vec::new());
        let worker = Worker { machine: machine(number)?, labels, taints };
        configs.push(cluster_bootstrap::worker(&cluster, &worker)?);
    }
    let texts = configs.iter().map(|node| anyhow::Ok(cluster_bootstrap::inline(node)?));
    texts.map(|text| Ok(text?.text().as_bytes().to_vec())).collect()
}
