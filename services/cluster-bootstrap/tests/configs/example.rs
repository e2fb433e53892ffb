//! The settings of an example cluster.

use std::collections::BTreeMap;

use cluster_bootstrap::{
    Approval, Archives, Artifact, BootstrapToken, CertificateAuthority, CgroupDriver, ClusterDns,
    ClusterSettings, Endpoint, Images, KeyPair, KubernetesVersion, Member, Name, Overrides, Pki,
    PodNetwork, Programs, Reports, Sha256, Source, Taint, TaintEffect, Worker,
};

pub(crate) const SECRET: &str = "c2VjcmV0";

pub(crate) fn artifact(name: &str) -> Artifact {
    let url = format!("https://mirror.example/{name}").parse().expect("the example is valid");
    Artifact {
        url,
        sha256: Sha256::try_from("0a".repeat(32).as_str()).expect("the example is valid"),
    }
}

pub(crate) fn authority(name: &str) -> CertificateAuthority {
    CertificateAuthority {
        certificate: format!("CERTIFICATE {name}\n"),
        key: format!("KEY {name} {SECRET}\n").into(),
        public_key_sha256: "0b".repeat(32),
    }
}

pub(crate) fn machine(name: &str, address: &str) -> Member {
    Member {
        name: name.try_into().expect("the example is valid"),
        address: address.parse().expect("the example is valid"),
    }
}

pub(crate) fn cluster(version: &str) -> ClusterSettings {
    ClusterSettings {
        name: Name::try_from("blue").expect("the example is valid"),
        version: KubernetesVersion::try_from(version).expect("the example is valid"),
        pods: "10.244.0.0/16".parse().expect("the example is valid"),
        services: "10.96.0.0/16".parse().expect("the example is valid"),
        domain: "cluster.local".to_owned(),
        endpoint: Endpoint { host: "api.blue.example".to_owned(), port: 6443 },
        also_known_as: vec!["10.0.0.5".to_owned()],
        control_plane: vec![
            machine("cp-1", "10.0.0.11"),
            machine("cp-2", "10.0.0.12"),
            machine("cp-3", "10.0.0.13"),
        ],
        pod_network: PodNetwork::HostRoutes,
        dns: ClusterDns::CoreDns,
        source: Source {
            programs: Programs {
                kubeadm: artifact("kubeadm"),
                kubelet: artifact("kubelet"),
                kubectl: artifact("kubectl"),
                cni_plugins: Some(artifact("cni.tgz")),
            },
            images: Images {
                repository: "registry.k8s.io".to_owned(),
                etcd_tag: None,
                archives: Archives {
                    every_machine: vec![artifact("pause.tar")],
                    control_plane: Vec::new(),
                },
            },
        },
        token: BootstrapToken::try_from("abcdef.0123456789abcdef").expect("the example is valid"),
        token_hours: 24,
        pki: Pki {
            cluster: authority("cluster"),
            etcd: authority("etcd"),
            front_proxy: authority("front-proxy"),
            service_account: KeyPair {
                public: "PUBLIC\n".to_owned(),
                private: format!("KEY sa {SECRET}\n").into(),
            },
        },
        cgroups: CgroupDriver::Systemd,
        approval: Approval::External,
        external_cloud_provider: true,
        overrides: Overrides::default(),
        extra: None,
    }
}

pub(crate) fn some_worker() -> Worker {
    Worker {
        machine: machine("worker-1", "10.0.0.21"),
        labels: BTreeMap::from([("example.org/gpu".to_owned(), "yes".to_owned())]),
        taints: vec![Taint {
            key: "gpu".to_owned(),
            value: String::new(),
            effect: TaintEffect::NoSchedule,
        }],
    }
}

pub(crate) fn reports() -> Reports {
    Reports {
        url: "https://clusterd.example:9512/v1/reports".parse().expect("the example is valid"),
        authorities: "https://clusterd.example:9512/v1/authorities/claim-1"
            .parse()
            .expect("the example is valid"),
        certificates: "https://clusterd.example:9512/v1/certificates/claim-1"
            .parse()
            .expect("the example is valid"),
        backups: "https://clusterd.example:9512/v1/backups/claim-1"
            .parse()
            .expect("the example is valid"),
        restores: 2,
        holds: 4,
        token: SECRET.to_owned().into(),
        claim: "claim-1".to_owned(),
        reboots: None,
        authority: "CERTIFICATE\n".to_owned(),
    }
}
