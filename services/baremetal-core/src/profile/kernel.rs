//! The kernel arguments of a profile's settings, and the file from which GRUB reads them.

use super::{HypervisorSettings, Iommu, KernelArgument, PageSize};

/// Returns all kernel arguments of the settings.
pub(super) fn arguments(settings: &HypervisorSettings) -> Vec<String> {
    let mut all = Vec::new();
    match settings.iommu {
        Some(Iommu::Intel) => all.push(KernelArgument::new("intel_iommu", "on")),
        Some(Iommu::Amd) => all.push(KernelArgument::new("amd_iommu", "on")),
        None => {}
    }
    if settings.iommu.is_some() {
        all.push(KernelArgument::new("iommu", "pt"));
    }
    if !settings.passthrough.is_empty() {
        let ids = settings.passthrough.iter();
        let ids: Vec<String> =
            ids.map(|it| format!("{}:{}", it.vendor_id, it.product_id)).collect();
        all.push(KernelArgument::new("vfio-pci.ids", ids.join(",")));
    }
    for pages in &settings.hugepages {
        let size = match pages.size {
            PageSize::TwoMebibytes => "2M",
            PageSize::OneGibibyte => "1G",
        };
        all.push(KernelArgument::new("hugepagesz", size));
        all.push(KernelArgument::new("hugepages", pages.count.to_string()));
    }
    all.iter().chain(&settings.kernel_arguments).map(KernelArgument::written).collect()
}

/// Returns the file that GRUB's configuration includes: `set arguments="…"`.
///
/// Within double quotes GRUB interprets `$`, `\` and `"` (its manual, "Quoting"). No argument contains the first two.
pub(super) fn grub_file(arguments: &[String]) -> String {
    format!("set arguments=\"{}\"\n", arguments.join(" ").replace('"', "\\\""))
}
