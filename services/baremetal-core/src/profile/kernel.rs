//! Arguments of a kernel: typed, and written so that no loader reads more in them than they say.

use serde::{Deserialize, Serialize};

use super::{HypervisorSettings, Iommu, PageSize};

/// The longest key and value.
const LONGEST: usize = 256;

/// An argument of a kernel: `KEY` or `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelArgument {
    /// Letters, digits, `_`, `-` and `.`.
    pub key: String,
    /// What it is set to, if to anything.
    #[serde(default)]
    pub value: Option<String>,
}

impl KernelArgument {
    fn new(key: &str, value: impl Into<String>) -> Self {
        KernelArgument { key: key.to_owned(), value: Some(value.into()) }
    }

    /// What is wrong with it.
    ///
    /// A value has only what neither GRUB nor a shell gives a meaning to, so that it means the same wherever it is read.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:=/+@% ".contains(c);
        if self.key.is_empty() || self.key.len() > LONGEST || !self.key.chars().all(word) {
            return Some("key: it has 1 to 256 letters, digits, '_', '-' and '.'");
        }
        let value = self.value.as_deref().unwrap_or("x");
        let fits = !value.is_empty() && value.len() <= LONGEST && value.chars().all(plain);
        (!fits).then_some("value: it has 1 to 256 letters, digits, blanks and '_-.,:=/+@%'")
    }

    /// As the kernel reads it: a value with blanks is quoted.
    pub fn written(&self) -> String {
        match &self.value {
            None => self.key.clone(),
            Some(value) if value.contains(' ') => format!("{}=\"{value}\"", self.key),
            Some(value) => format!("{}={value}", self.key),
        }
    }
}

/// Every argument that the settings come to.
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

/// The file that GRUB's configuration reads: `set arguments="…"`.
///
/// Within double quotes GRUB gives a meaning to `$`, `\` and `"` (its manual, "Quoting"); no argument has the first two.
pub(super) fn grub_file(arguments: &[String]) -> String {
    format!("set arguments=\"{}\"\n", arguments.join(" ").replace('"', "\\\""))
}
