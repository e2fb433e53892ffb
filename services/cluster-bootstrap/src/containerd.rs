//! The configuration file of containerd.

use crate::ClusterSettings;
use crate::settings::CgroupDriver;

/// The image of the container that holds the namespaces of a pod.
pub(crate) fn pause_image(cluster: &ClusterSettings) -> String {
    format!("{}/pause:{}", cluster.source.images.repository, cluster.version.minor_version().pause)
}

/// Returns `/etc/containerd/config.toml`, in the version that containerd 1.7 and 2 read.
/// Repeats the parts of `containerd config default` that name a registry or the cgroup driver, and leaves out the rest.
pub(crate) fn config(cluster: &ClusterSettings) -> String {
    let systemd = match cluster.cgroups {
        CgroupDriver::Systemd => true,
        CgroupDriver::Cgroupfs => false,
    };
    let pause = pause_image(cluster);
    format!(
        r#"version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # No lower than containerd's own: the same where that is -999, and the way to run where it may not be lowered.
  restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = {systemd}
"#
    )
}
