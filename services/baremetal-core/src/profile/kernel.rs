//! Kernel arguments, typed and restricted so that no boot loader interprets them in its own way.

use serde::{Deserialize, Serialize};

use super::{HypervisorSettings, Iommu, PageSize};

/// The maximum length of a key and of a value.
const LONGEST: usize = 256;

/// A kernel argument: `KEY` or `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelArgument {
    /// Letters, digits, `_`, `-` and `.`.
    pub key: String,
    /// The value; `None` writes the key alone.
    #[serde(default)]
    pub value: Option<String>,
}

impl KernelArgument {
    fn new(key: &str, value: impl Into<String>) -> Self {
        KernelArgument { key: key.to_owned(), value: Some(value.into()) }
    }

    /// Returns what is wrong with the argument, or `None` if it is valid.
    ///
    /// A value consists of characters that have no meaning in GRUB or in a shell, so that every program reads the same value.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:=/+@% ".contains(c);
        if self.key.is_empty() || self.key.len() > LONGEST || !self.key.chars().all(word) {
            return Some("key: must be 1 to 256 letters, digits, '_', '-' and '.'");
        }
        let value = self.value.as_deref().unwrap_or("x");
        let fits = !value.is_empty() && value.len() <= LONGEST && value.chars().all(plain);
        (!fits).then_some("value: must be 1 to 256 letters, digits, blanks and '_-.,:=/+@%'")
    }

    /// Returns the argument as the kernel reads it: a value with blanks is quoted.
    pub fn written(&self) -> String {
        match &self.value {
            None => self.key.clone(),
            Some(value) if value.contains(' ') => format!("{}=\"{value}\"", self.key),
            Some(value) => format!("{}={value}", self.key),
        }
    }
}

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
