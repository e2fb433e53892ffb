//! A request for a cluster: the cluster and the node groups that it means.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lease::Terms;

use crate::{
    Cluster, ClusterUuid, Health, KubernetesVersion, Labels, LabelsCompared, LabelsError, Name,
    NodeGroup, NodeGroupUuid, Owner, Refusal, Template, check_cluster, check_group, default_name,
    grant_lease,
};

/// Magnum's default timeout of a creation, in minutes.
const CREATE_TIMEOUT: u32 = 60;

/// A request for a cluster. It begins with the values of the template, which the values of the caller replace.
#[derive(Clone, Debug)]
pub struct ClusterRequest {
    pub cluster: Cluster,
    /// The requested number of control-plane members.
    pub masters: u32,
    /// The requested number of workers.
    pub workers: u32,
    pub labels: LabelsRequest,
}

/// The labels of a request for a resource that is based on another one.
#[derive(Clone, Debug, Default)]
pub struct LabelsRequest {
    /// The labels of the caller; `None`: the labels of the base.
    pub own: Option<BTreeMap<String, String>>,
    /// Whether `own` is merged into the labels of the base or replaces them.
    pub merge: bool,
}

impl LabelsRequest {
    /// Returns the labels of the new resource.
    pub fn on(&self, base: &Labels) -> Result<Labels, LabelsError> {
        match (&self.own, self.merge) {
            (None, _) => Ok(base.clone()),
            (Some(own), true) => base.merged(&Labels::try_from(own.clone())?),
            (Some(own), false) => Labels::try_from(own.clone()),
        }
    }
}

impl ClusterRequest {
    /// Makes a request for a cluster of one control-plane member and one worker, as the template describes it.
    pub fn new(id: ClusterUuid, owner: Owner, template: &Template, now: Timestamp) -> Self {
        let name = default_name("cluster", &id.to_string());
        let of = (template.id, template.blueprint.clone());
        let cluster = Cluster::new(id, owner, name, of, now);
        ClusterRequest {
            cluster: Cluster { create_timeout: Some(CREATE_TIMEOUT), ..cluster },
            masters: 1,
            workers: 1,
            labels: LabelsRequest::default(),
        }
    }

    /// Sets the name; `None` keeps the name that is made from the id.
    pub fn set_name(&mut self, name: Option<String>) -> Result<(), Refusal> {
        if let Some(name) = name {
            self.cluster.name = Name::try_from(name)?;
        }
        Ok(())
    }

    /// Sets the values that depend on several fields, and refuses a cluster that cannot be made.
    pub fn checked(self) -> Result<ClusterRequest, Refusal> {
        let ClusterRequest { mut cluster, masters, workers, labels } = self;
        let blueprint = &mut cluster.blueprint;
        let requested = labels.on(&blueprint.labels)?;
        cluster.labels_compared = LabelsCompared::new(&blueprint.labels, &requested);
        let kubernetes = requested.settings().kubernetes;
        cluster.kubernetes = kubernetes.unwrap_or(KubernetesVersion::DEFAULT);
        blueprint.labels = requested;
        blueprint.master_flavor = blueprint.master_flavor.take().or(blueprint.flavor.clone());
        check_cluster(blueprint, masters)?;
        Ok(ClusterRequest { cluster, masters, workers, labels })
    }

    /// Returns the cluster with its lease, and its node groups with these ids: control plane and workers.
    pub fn granted(
        self,
        terms: Terms,
        ids: [NodeGroupUuid; 2],
    ) -> Result<(Cluster, Vec<NodeGroup>), Refusal> {
        let settings = self.cluster.blueprint.labels.settings();
        let lending = grant_lease(settings, terms, self.cluster.created_at)?;
        let cluster = Cluster { lending, ..self.cluster };
        let groups = vec![
            NodeGroup::default_masters(ids[0], &cluster, self.masters),
            NodeGroup::default_workers(ids[1], &cluster, self.workers),
        ];
        groups.iter().try_for_each(check_group)?;
        Ok((cluster, groups))
    }
}

/// The most reasons in a report, and the most characters of each.
const MOST_REASONS: usize = 1000;
const LONGEST_REASON: usize = 1024;

/// Returns the health with this name of Magnum; `None` takes a report back.
pub fn health_status(raw: Option<&str>) -> Result<Option<Health>, Refusal> {
    let unknown = || Refusal::Field {
        field: "health_status",
        why: "must be HEALTHY, UNHEALTHY or UNKNOWN".to_owned(),
    };
    raw.map(|raw| Health::find(raw).ok_or_else(unknown)).transpose()
}

/// Checks the reasons of a report.
pub fn health_reason(raw: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Refusal> {
    let fits = |text: &String| text.chars().count() <= LONGEST_REASON;
    if raw.len() <= MOST_REASONS && raw.iter().all(|(key, value)| fits(key) && fits(value)) {
        return Ok(raw);
    }
    let why = format!("must have at most {MOST_REASONS} reasons of {LONGEST_REASON} characters");
    Err(Refusal::Field { field: "health_status_reason", why })
}

#[cfg(test)]
mod tests {
    use lease::Lease;
    use newtype_uuid::GenericUuid;
    use uuid::Uuid;

    use super::*;
    use crate::sample::{Sample, at, labels};
    use crate::{ClusterLease, ClusterParameters, TemplateUuid};

    fn id<T: GenericUuid>(number: u128) -> T {
        T::from_untyped_uuid(Uuid::from_u128(number << 96))
    }

    fn request() -> ClusterRequest {
        let blueprint = ClusterParameters {
            labels: labels(&[("kube_tag", "v1.32.1"), ("boot_volume_size", "20")]),
            master_flavor: None,
            ..Sample::smallest().cluster.blueprint
        };
        let (owner, name) = (Owner::new("p", "u"), "t".parse().unwrap());
        let template = Template::new(id::<TemplateUuid>(1), owner.clone(), name, blueprint, at(0));
        ClusterRequest::new(id(2), owner, &template, at(1))
    }

    fn own(pairs: &[(&str, &str)], merge: bool) -> LabelsRequest {
        LabelsRequest { own: Some(labels(pairs).raw().clone()), merge }
    }

    #[test]
    fn a_report_has_a_word_of_magnum_and_a_bounded_size() {
        assert_eq!(health_status(Some("UNHEALTHY")), Ok(Some(Health::Unhealthy)));
        assert_eq!(health_status(None), Ok(None));
        let why = "health_status: must be HEALTHY, UNHEALTHY or UNKNOWN";
        assert_eq!(health_status(Some("healthy")).unwrap_err().to_string(), why);
        let reason = |length| BTreeMap::from([("api".to_owned(), "x".repeat(length))]);
        assert!(health_reason(reason(1024)).is_ok() && health_reason(reason(1025)).is_err());
    }

    #[test]
    fn values_that_the_caller_leaves_out_come_from_the_template() {
        let (cluster, groups) =
            request().checked().unwrap().granted(Terms::default(), [id(3), id(4)]).unwrap();
        assert_eq!(cluster.name.as_str(), "cluster-00000002");
        assert_eq!((cluster.create_timeout, cluster.lending), (Some(60), None));
        assert_eq!(cluster.kubernetes.to_string(), "v1.32.1");
        assert_eq!(cluster.labels_compared, LabelsCompared::default());
        assert_eq!(cluster.blueprint.master_flavor.as_deref(), Some("m1.large"));
        let counts = groups.iter().map(|group| (group.name.as_str(), group.node_count()));
        assert_eq!(Vec::from_iter(counts), [("default-master", 1), ("default-worker", 1)]);
    }

    #[test]
    fn a_cluster_gets_the_lease_that_its_labels_ask_for() {
        let labels = own(&[("lease", "10d")], false);
        let request = ClusterRequest { labels, ..request() }.checked().unwrap();
        let (cluster, _) = request.granted(Terms::default(), [id(3), id(4)]).unwrap();
        let lease = Lease::new(at(1), "10d".parse().unwrap());
        assert_eq!(cluster.lending, Some(ClusterLease { lease, notify: None }));
    }

    #[test]
    fn labels_replace_or_are_merged_into_those_of_the_template() {
        let check = |labels: LabelsRequest, want: &[(&str, &str)], version: &str| {
            let request = ClusterRequest { labels, ..request() }.checked().unwrap();
            let raw = request.cluster.blueprint.labels.raw();
            let raw = raw.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            assert_eq!(Vec::from_iter(raw), want);
            assert_eq!(request.cluster.kubernetes.to_string(), version);
        };
        let base = [("boot_volume_size", "20"), ("kube_tag", "v1.32.1")];
        check(LabelsRequest { own: None, merge: true }, &base, "v1.32.1");
        check(own(&[("kube_tag", "v1.33.0")], false), &[("kube_tag", "v1.33.0")], "v1.33.0");
        let merged = [("boot_volume_size", "20"), ("kube_tag", "v1.33.0")];
        check(own(&[("kube_tag", "v1.33.0")], true), &merged, "v1.33.0");
        check(own(&[], false), &[], &KubernetesVersion::DEFAULT.to_string());
    }

    #[test]
    fn the_difference_to_the_template_is_recorded() {
        let labels = own(&[("kube_tag", "v1.33.0"), ("dns_zone", "k8s.example")], false);
        let compared =
            ClusterRequest { labels, ..request() }.checked().unwrap().cluster.labels_compared;
        assert_eq!(Vec::from_iter(compared.overridden.keys()), ["kube_tag"]);
        assert_eq!(Vec::from_iter(compared.added.keys()), ["dns_zone"]);
        assert_eq!(Vec::from_iter(compared.skipped.keys()), ["boot_volume_size"]);
    }

    #[test]
    fn an_impossible_request_is_refused_by_field() {
        let check = |request: ClusterRequest, want: &str| {
            let granted = request
                .checked()
                .and_then(|request| request.granted(Terms::default(), [id(3), id(4)]));
            assert_eq!(granted.unwrap_err().to_string(), want);
        };
        let masters = ClusterRequest { masters: 2, ..request() };
        check(masters, "master_count: must be 1, 3 or 5, because etcd needs a majority");
        let workers = ClusterRequest { workers: 1001, ..request() };
        check(workers, "node_count: must be at most 1000");
        let mut flavorless = request();
        flavorless.cluster.blueprint.flavor = None;
        check(flavorless, "flavor_id: is required, because the template has none either");
        let refused = BTreeMap::from([("coredns_tag".to_owned(), "1.9.4".to_owned())]);
        let labels = LabelsRequest { own: Some(refused), merge: true };
        let why = "labels/coredns_tag: its version is set by kube_tag; remove it";
        check(ClusterRequest { labels, ..request() }, why);
        let mut named = request();
        let refused = named.set_name(Some("1st".to_owned())).unwrap_err().to_string();
        assert!(refused.starts_with("name: \"1st\" is not a valid name"), "{refused}");
    }
}
