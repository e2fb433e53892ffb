//! The clusters that are measured, and their budget.

/// The budget, as a factor of the critical path.
pub(super) const WITHIN: f64 = 1.2;
pub(super) const EIGHT: ClusterSize = ClusterSize { masters: 3, workers: 5 };
pub(super) const SMALLEST: ClusterSize = ClusterSize { masters: 1, workers: 1 };

#[derive(Clone, Copy)]
pub(super) struct ClusterSize {
    pub(super) masters: usize,
    pub(super) workers: usize,
}

impl ClusterSize {
    pub(super) fn machines(self) -> usize {
        self.masters + self.workers
    }
}

/// Configuration for programs, which no server of the emulated cloud fetches.
pub(super) fn programs() -> String {
    let sum = "0".repeat(64);
    let program = |name| {
        format!("{name} = {{ url = \"https://mirror.example/{name}\", sha256 = \"{sum}\" }}\n")
    };
    ["kubeadm", "kubelet", "kubectl"].map(program).concat()
}
