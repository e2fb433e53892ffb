//! GPUs: which GPUs a flavor has, and the labels and taints of nodes of that flavor.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::{NodeTaint, TaintEffect};

/// The maker of a GPU. The vendor decides the name of the resource in Kubernetes and the device plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuVendor {
    /// The resource `nvidia.com/gpu`.
    Nvidia,
    /// The resource `amd.com/gpu`.
    Amd,
}

/// The labels and taints that nodes of a flavor get for its GPUs. Empty for a flavor without GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuNode {
    /// The number of GPUs of each node, as far as the flavor tells the number: a device profile counts as one GPU.
    pub count: u64,
    pub vendors: BTreeSet<GpuVendor>,
    /// Labels that the device plugins select nodes by.
    pub labels: BTreeMap<String, String>,
    /// Taints that keep away pods that request no GPU. A pod that requests a GPU gets its toleration from the admission plugin
    /// `ExtendedResourceToleration`, which expects these keys, or has a toleration of its own.
    pub taints: Vec<NodeTaint>,
    /// Extra specs that ask for a GPU but do not tell the vendor. Nodes get no label and no device plugin for such GPUs.
    pub unknown: BTreeSet<String>,
}

impl GpuVendor {
    /// The label of nodes with GPUs of this vendor, the same label that NVIDIA's and AMD's operators set.
    pub fn label(self) -> (&'static str, &'static str) {
        match self {
            GpuVendor::Nvidia => ("nvidia.com/gpu.present", "true"),
            GpuVendor::Amd => ("feature.node.kubernetes.io/amd-gpu", "true"),
        }
    }

    /// The resource that pods request, which is also the key of the node taint.
    pub fn resource(self) -> &'static str {
        match self {
            GpuVendor::Nvidia => "nvidia.com/gpu",
            GpuVendor::Amd => "amd.com/gpu",
        }
    }

    /// Guesses the vendor from a name that an operator chose, such as `nvidia-a100`, `CUSTOM_NVIDIA_MIG` or `amd_gpu`.
    fn guess_from_name(name: &str) -> Option<GpuVendor> {
        let name = name.to_ascii_lowercase();
        let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let has = |word: &str| words.contains(&word);
        if has("nvidia") || has("cuda") {
            Some(GpuVendor::Nvidia)
        } else if ["amdgpu", "instinct", "radeon", "rocm"].into_iter().any(has)
            || (has("amd") && has("gpu"))
        {
            Some(GpuVendor::Amd)
        } else {
            None
        }
    }

    fn of_pci(id: &str) -> Option<GpuVendor> {
        match id {
            "10DE" => Some(GpuVendor::Nvidia),
            "1002" => Some(GpuVendor::Amd),
            _ => None,
        }
    }
}

impl GpuNode {
    fn has(&mut self, vendor: GpuVendor, more: u64) {
        self.vendors.insert(vendor);
        self.count = self.count.saturating_add(more);
    }
}

/// Parses a count of GPUs. A count that is not a number is read as 1, because the flavor asks for at least one GPU.
fn number(raw: &str) -> u64 {
    raw.trim().parse().unwrap_or(1)
}

/// Returns the labels and taints for nodes of a flavor with these extra specs.
///
/// The cloud's operator chooses the names of PCI aliases and device profiles. `aliases` maps the names of GPUs to their vendors; any other
/// name counts as a GPU if it contains the name of a vendor. Sources: Nova's documentation, "Extra Specs"; os-traits, `HW_GPU_*`; Nova's
/// "PCI in Placement" (`CUSTOM_PCI_VENDOR_PRODUCT`).
pub fn gpu_node(
    extra_specs: &BTreeMap<String, String>,
    aliases: &BTreeMap<String, GpuVendor>,
) -> GpuNode {
    let known =
        |name: &str| aliases.get(name).copied().or_else(|| GpuVendor::guess_from_name(name));
    let mut node = GpuNode::default();
    for (key, value) in extra_specs {
        let (kind, name) = key.split_once(':').unwrap_or((key, ""));
        if (kind, name) == ("pci_passthrough", "alias") {
            for one in value.split(',') {
                let (alias, count) = one.split_once(':').unwrap_or((one, "1"));
                if count.trim() != "0"
                    && let Some(vendor) = known(alias.trim())
                {
                    node.has(vendor, number(count));
                }
            }
        } else if (kind, name) == ("accel", "device_profile") {
            if let Some(vendor) = known(value) {
                node.has(vendor, 1);
            }
        } else if kind.starts_with("resources") && value != "0" {
            match name {
                // `VGPU` and `PGPU` do not name a vendor, so the required traits of the host have to.
                "VGPU" | "PGPU" => match required_vendor(extra_specs) {
                    Some(vendor) => node.has(vendor, number(value)),
                    None => {
                        node.unknown.insert(key.clone());
                        node.count = node.count.saturating_add(number(value));
                    }
                },
                _ => {
                    let device = name.strip_prefix("CUSTOM_PCI_").unwrap_or_default();
                    let vendor = device.split_once('_').map_or(device, |(vendor, _)| vendor);
                    if let Some(vendor) = GpuVendor::of_pci(vendor) {
                        node.has(vendor, number(value));
                    }
                }
            }
        }
    }
    for vendor in &node.vendors {
        let (key, value) = vendor.label();
        node.labels.insert(key.to_owned(), value.to_owned());
        node.taints.push(NodeTaint {
            key: vendor.resource().to_owned(),
            value: "present".to_owned(),
            effect: TaintEffect::NoSchedule,
        });
    }
    node
}

/// The vendor that the required traits of the host name. Traits of processors contain vendor names too, so only the traits of GPUs and the
/// operator's custom traits count.
fn required_vendor(extra_specs: &BTreeMap<String, String>) -> Option<GpuVendor> {
    let required = extra_specs.iter().filter(|(_, value)| *value == "required");
    let traits = required.filter_map(|(key, _)| {
        let (kind, name) = key.split_once(':')?;
        let counts = name.starts_with("HW_GPU_") || name.starts_with("CUSTOM_");
        (kind.starts_with("trait") && counts).then_some(name)
    });
    traits.filter_map(GpuVendor::guess_from_name).next()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(specs: &[(&str, &str)], want: Expect) {
        let specs = specs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let aliases = BTreeMap::from([("big".to_owned(), GpuVendor::Amd)]);
        let node = gpu_node(&specs.collect(), &aliases);
        let taint = |it: &NodeTaint| format!("{}={}:{:?}", it.key, it.value, it.effect);
        let taints: Vec<String> = node.taints.iter().map(taint).collect();
        want.assert_eq(&format!("{:?} {taints:?} {:?}", node.labels, node.unknown));
    }

    #[test]
    fn gpus_are_counted_however_they_are_asked_for() {
        let count = |specs: &[(&str, &str)]| {
            let specs = specs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            gpu_node(&specs.collect(), &BTreeMap::new()).count
        };
        assert_eq!(count(&[("pci_passthrough:alias", "nvidia-a100:2, nic:4,amd-gpu")]), 3);
        assert_eq!(count(&[("pci_passthrough:alias", "nvidia-a100:0")]), 0);
        assert_eq!(count(&[("resources:VGPU", "2"), ("resources1:CUSTOM_PCI_10DE_20B5", "1")]), 3);
        assert_eq!(count(&[("accel:device_profile", "nvidia"), ("resources:VCPU", "8")]), 1);
    }

    #[test]
    fn a_flavor_without_gpus_makes_ordinary_nodes() {
        check(
            &[
                ("hw:cpu_policy", "dedicated"),
                ("pci_passthrough:alias", "smartnic:1,nvidia-a100:0"),
                ("resources:VCPU", "4"),
                ("resources:VGPU", "0"),
                ("resources:CUSTOM_PCI_15B3_101D", "1"),
                ("trait:HW_CPU_AMD_SEV", "required"),
            ],
            expect!["{} [] {}"],
        );
    }

    #[test]
    fn the_vendor_comes_from_the_configured_aliases_or_from_the_name() {
        let nvidia = expect![[
            r#"{"nvidia.com/gpu.present": "true"} ["nvidia.com/gpu=present:NoSchedule"] {}"#
        ]];
        check(&[("pci_passthrough:alias", "nvidia-a100:2")], nvidia);
        let amd = expect![[
            r#"{"feature.node.kubernetes.io/amd-gpu": "true"} ["amd.com/gpu=present:NoSchedule"] {}"#
        ]];
        check(&[("pci_passthrough:alias", "nic:1, big:1")], amd);
        let both = expect![[
            r#"{"feature.node.kubernetes.io/amd-gpu": "true", "nvidia.com/gpu.present": "true"} ["nvidia.com/gpu=present:NoSchedule", "amd.com/gpu=present:NoSchedule"] {}"#
        ]];
        check(
            &[("accel:device_profile", "amd-gpu"), ("resources1:CUSTOM_PCI_10DE_20B5", "1")],
            both,
        );
    }

    #[test]
    fn required_traits_tell_the_vendor_of_a_placement_resource() {
        let nvidia = expect![[
            r#"{"nvidia.com/gpu.present": "true"} ["nvidia.com/gpu=present:NoSchedule"] {}"#
        ]];
        check(
            &[
                ("resources:VGPU", "1"),
                ("trait:HW_CPU_AMD_SEV", "required"),
                ("trait:CUSTOM_NVIDIA_A16", "required"),
            ],
            nvidia,
        );
        check(
            &[("resources_gpu:PGPU", "1"), ("trait_gpu:CUSTOM_NVIDIA_A16", "forbidden")],
            expect![[r#"{} [] {"resources_gpu:PGPU"}"#]],
        );
    }

    #[test]
    fn a_vendor_is_a_word_of_the_name() {
        use GpuVendor::{Amd, Nvidia};
        for (name, want) in [
            ("NVIDIA_A100", Some(Nvidia)),
            ("cuda", Some(Nvidia)),
            ("my-amdgpu", Some(Amd)),
            ("instinct.mi300", Some(Amd)),
            ("Radeon", Some(Amd)),
            ("rocm", Some(Amd)),
            ("amd-gpu", Some(Amd)),
            ("gpu_of_amd", Some(Amd)),
            ("amd", None),
            ("gpu", None),
            ("nvidiax", None),
            ("", None),
        ] {
            assert_eq!(GpuVendor::guess_from_name(name), want, "{name}");
        }
    }

    #[test]
    fn a_count_that_is_no_number_is_one() {
        for (raw, want) in [("3", 3), (" 2 ", 2), ("x", 1), ("", 1), ("0", 0)] {
            assert_eq!(number(raw), want, "{raw:?}");
        }
    }

    #[test]
    fn a_gpu_of_an_unknown_vendor_counts() {
        let specs = |specs: &[(&str, &str)]| {
            let specs = specs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            gpu_node(&specs.collect(), &BTreeMap::new())
        };
        let node = specs(&[("resources:VGPU", "2"), ("resources:PGPU", "3")]);
        assert_eq!((node.count, node.unknown.len()), (5, 2));
        let node = specs(&[("resources:CUSTOM_PCI_1002", "4"), ("resources2:VGPU", "0")]);
        assert_eq!((node.count, node.vendors), (4, BTreeSet::from([GpuVendor::Amd])));
        assert_eq!(specs(&[("pci_passthrough:other", "nvidia")]), GpuNode::default());
        assert_eq!(specs(&[("accel:other", "nvidia")]), GpuNode::default());
        assert_eq!(specs(&[("quota:CUSTOM_PCI_10DE_20B5", "1")]), GpuNode::default());
    }

    #[test]
    fn only_traits_of_gpus_and_custom_traits_name_a_vendor() {
        let vendor = |key: &str, value: &str| {
            required_vendor(&BTreeMap::from([(key.to_owned(), value.to_owned())]))
        };
        assert_eq!(vendor("trait:HW_GPU_CUDA_SDK_9_0", "required"), Some(GpuVendor::Nvidia));
        assert_eq!(vendor("trait1:CUSTOM_AMD_GPU", "required"), Some(GpuVendor::Amd));
        assert_eq!(vendor("trait:COMPUTE_NVIDIA", "required"), None);
        assert_eq!(vendor("resources:CUSTOM_NVIDIA", "required"), None);
        assert_eq!(vendor("trait:CUSTOM_NVIDIA", "forbidden"), None);
    }
}
