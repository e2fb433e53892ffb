//! The label `kubeproxy_options`: flags of kube-proxy, translated to fields of `KubeProxyConfiguration`.
//!
//! kubeadm starts kube-proxy with a configuration file, and kube-proxy ignores flags when it has a file. Each flag is therefore translated.
//! The table lists only fields that exist in every supported version of Kubernetes.

use std::net::{IpAddr, SocketAddr};

use crate::{Cidr, options::options};

/// A field of `KubeProxyConfiguration` and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyField {
    /// The path of the field, such as `["iptables", "syncPeriod"]`.
    pub path: &'static [&'static str],
    pub value: ProxyValue,
}

/// The value of a field of `KubeProxyConfiguration`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyValue {
    /// A string, an address or a duration such as `1m30s`.
    Text(String),
    Flag(bool),
    Number(i64),
    List(Vec<String>),
    /// Feature gates: name and whether the gate is on.
    Gates(Vec<(String, bool)>),
}

/// The form that the value of a flag must have.
#[derive(Clone, Copy)]
enum Form {
    Address,
    Endpoint,
    Duration,
    Flag,
    Number(i64, i64),
    Ranges,
    Gates,
    Mode,
    OneOf(&'static [&'static str]),
}

use Form::{Address, Duration, Endpoint, Flag, Gates, Mode, Number, OneOf, Ranges};

const BIG: i64 = i32::MAX as i64;

/// Every flag that has a field in the configuration (kubernetes, cmd/kube-proxy/app/options.go), in alphabetical order.
#[rustfmt::skip]
const FLAGS: &[(&str, &[&str], Form)] = &[
    ("bind-address", &["bindAddress"], Address),
    ("bind-address-hard-fail", &["bindAddressHardFail"], Flag),
    ("config-sync-period", &["configSyncPeriod"], Duration),
    ("conntrack-max-per-core", &["conntrack", "maxPerCore"], Number(0, BIG)),
    ("conntrack-min", &["conntrack", "min"], Number(0, BIG)),
    ("conntrack-tcp-timeout-close-wait", &["conntrack", "tcpCloseWaitTimeout"], Duration),
    ("conntrack-tcp-timeout-established", &["conntrack", "tcpEstablishedTimeout"], Duration),
    ("detect-local-mode", &["detectLocalMode"], OneOf(&["ClusterCIDR", "NodeCIDR"])),
    ("feature-gates", &["featureGates"], Gates),
    ("healthz-bind-address", &["healthzBindAddress"], Endpoint),
    ("iptables-masquerade-bit", &["iptables", "masqueradeBit"], Number(0, 31)),
    ("iptables-min-sync-period", &["iptables", "minSyncPeriod"], Duration),
    ("iptables-sync-period", &["iptables", "syncPeriod"], Duration),
    ("ipvs-exclude-cidrs", &["ipvs", "excludeCIDRs"], Ranges),
    ("ipvs-min-sync-period", &["ipvs", "minSyncPeriod"], Duration),
    ("ipvs-scheduler", &["ipvs", "scheduler"], OneOf(&["rr", "lc", "dh", "sh", "sed", "nq", "wrr", "wlc", "lblc", "lblcr", "mh"])),
    ("ipvs-strict-arp", &["ipvs", "strictARP"], Flag),
    ("ipvs-sync-period", &["ipvs", "syncPeriod"], Duration),
    ("ipvs-tcp-timeout", &["ipvs", "tcpTimeout"], Duration),
    ("ipvs-tcpfin-timeout", &["ipvs", "tcpFinTimeout"], Duration),
    ("ipvs-udp-timeout", &["ipvs", "udpTimeout"], Duration),
    ("kube-api-burst", &["clientConnection", "burst"], Number(1, BIG)),
    ("kube-api-qps", &["clientConnection", "qps"], Number(1, BIG)),
    ("masquerade-all", &["iptables", "masqueradeAll"], Flag),
    ("metrics-bind-address", &["metricsBindAddress"], Endpoint),
    ("nodeport-addresses", &["nodePortAddresses"], Ranges),
    ("oom-score-adj", &["oomScoreAdj"], Number(-1000, 1000)),
    ("profiling", &["enableProfiling"], Flag),
    ("proxy-mode", &["mode"], Mode),
];

/// Translates `raw`, the flags of kube-proxy, to fields of its configuration. The error is a sentence for the user.
pub(crate) fn fields(raw: &str) -> Result<Vec<ProxyField>, String> {
    let one = |(name, value): (String, String)| {
        let row = FLAGS.iter().find(|(flag, _, _)| *flag == name);
        let shown: String = name.chars().take(64).collect();
        let (_, path, form) = row.ok_or_else(|| {
            format!(
                "--{shown} is not supported: the configuration of kube-proxy has no field for it"
            )
        })?;
        let value = form.read(&value).map_err(|why| format!("--{shown}: {why}"))?;
        Ok(ProxyField { path, value })
    };
    options(raw)?.into_iter().map(one).collect()
}

impl Form {
    fn read(self, raw: &str) -> Result<ProxyValue, String> {
        let text = |legal: bool, why: &str| match legal {
            true => Ok(ProxyValue::Text(raw.to_owned())),
            false => Err(why.to_owned()),
        };
        match self {
            Form::Address => text(raw.parse::<IpAddr>().is_ok(), "must be an address"),
            Form::Endpoint => text(
                raw.parse::<SocketAddr>().is_ok(),
                "must be an address and a port, such as 0.0.0.0:10249",
            ),
            Form::Duration => text(is_duration(raw), "must be a duration such as 1m30s"),
            Form::Flag => match raw {
                "true" => Ok(ProxyValue::Flag(true)),
                "false" => Ok(ProxyValue::Flag(false)),
                _ => Err("must be true or false".to_owned()),
            },
            Form::Number(least, most) => {
                let number = raw.parse().ok().filter(|number| (least..=most).contains(number));
                let why = || format!("must be a whole number from {least} to {most}");
                Ok(ProxyValue::Number(number.ok_or_else(why)?))
            }
            Form::Ranges => {
                let ranges = raw.split(',').map(|it| it.parse::<Cidr>().map(String::from));
                Ok(ProxyValue::List(
                    ranges.collect::<Result<_, _>>().map_err(|why| why.to_string())?,
                ))
            }
            Form::Gates => {
                let gate = |word: &str| {
                    let (name, on) = word.split_once('=')?;
                    let legal = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
                    Some((name.to_owned(), on.parse().ok().filter(|_| legal)?))
                };
                let gates = raw.split(',').map(gate).collect::<Option<Vec<_>>>();
                Ok(ProxyValue::Gates(gates.ok_or("must be names such as A=true,B=false")?))
            }
            Form::Mode => text(
                ["iptables", "ipvs", "nftables"].contains(&raw),
                "must be iptables, ipvs or nftables",
            ),
            Form::OneOf(words) => {
                text(words.contains(&raw), &format!("must be one of {}", words.join(", ")))
            }
        }
    }
}

/// Whether Go's `time.ParseDuration` reads the text as a duration that is not negative: numbers with units.
fn is_duration(raw: &str) -> bool {
    let mut rest = raw;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = ["ms", "h", "m", "s"].into_iter().find(|unit| rest[digits..].starts_with(unit));
        let Some(unit) = unit.filter(|_| (1..=6).contains(&digits)) else { return false };
        rest = &rest[digits + unit.len()..];
    }
    !raw.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_kube_proxy_become_fields_of_its_configuration() {
        let read = fields(
            "--proxy-mode=ipvs --iptables-sync-period=1m30s --conntrack-min=65536 --ipvs-strict-arp=true \
             --feature-gates=A=true,B=false --nodeport-addresses=10.0.0.0/24 --profiling=false",
        );
        let read = read.unwrap();
        assert_eq!(read[0].path, ["mode"]);
        assert_eq!(read[1].path, ["iptables", "syncPeriod"]);
        assert_eq!(read[1].value, ProxyValue::Text("1m30s".to_owned()));
        assert_eq!(read[2].value, ProxyValue::Number(65536));
        assert_eq!(read[3].value, ProxyValue::Flag(true));
        let gates = [("A".to_owned(), true), ("B".to_owned(), false)];
        assert_eq!(read[4].value, ProxyValue::Gates(gates.to_vec()));
        assert_eq!(read[5].value, ProxyValue::List(vec!["10.0.0.0/24".to_owned()]));
        assert_eq!(read[6].value, ProxyValue::Flag(false));
        assert!(FLAGS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_flag_without_a_field_is_refused_by_name() {
        for (bad, why) in [
            ("--v=2", "--v is not supported: the configuration of kube-proxy has no field for it"),
            (
                "--kubeconfig=/etc/shadow",
                "--kubeconfig is not supported: the configuration of kube-proxy has no field for it",
            ),
            ("--proxy-mode=userspace", "--proxy-mode: must be iptables, ipvs or nftables"),
            ("--oom-score-adj=1001", "--oom-score-adj: must be a whole number from -1000 to 1000"),
            (
                "--iptables-sync-period=30",
                "--iptables-sync-period: must be a duration such as 1m30s",
            ),
            (
                "--iptables-sync-period=s",
                "--iptables-sync-period: must be a duration such as 1m30s",
            ),
            ("--ipvs-strict-arp=yes", "--ipvs-strict-arp: must be true or false"),
            ("--feature-gates=A", "--feature-gates: must be names such as A=true,B=false"),
            ("--feature-gates=A-B=true", "--feature-gates: must be names such as A=true,B=false"),
            (
                "--feature-gates=A=true,=true",
                "--feature-gates: must be names such as A=true,B=false",
            ),
        ] {
            assert_eq!(fields(bad).unwrap_err(), why);
        }
    }
}
