//! Device plugins: report the GPUs of a node to its kubelet, so that pods can request them.
//!
//! NVIDIA/k8s-device-plugin and ROCm/k8s-device-plugin, README.md and their manifests. The image of the server has to contain the GPU
//! drivers and, for NVIDIA, the container toolkit as the default runtime. Neither plugin calls the cluster's API, and neither has a health
//! check.

use serde_json::{Value, json};

use crate::image::Image;
use crate::object::{AddOnObjects, container, host_path, mount, mount_to_read};
use crate::{AddOn, GpuVendor, Settings};

const PLUGINS: &str = "/var/lib/kubelet/device-plugins";
const NVIDIA: Image = Image::new("nvcr.io/nvidia", "k8s-device-plugin", "v0.17.4");
const AMD: Image = Image::new("docker.io/rocm", "k8s-device-plugin", "1.31.0.9")
    .known_as("rocm-k8s-device-plugin");

pub(crate) fn add_on(settings: &Settings, vendor: GpuVendor) -> AddOn {
    let (name, image) = match vendor {
        GpuVendor::Nvidia => ("nvidia-device-plugin", &NVIDIA),
        GpuVendor::Amd => ("amd-device-plugin", &AMD),
    };
    let kit = AddOnObjects { add_on: name, namespace: "kube-system" };
    let mut plugin = container(name, settings.images.reference(image), &[], (10, 32));
    let mut mounts = vec![mount("device-plugins", PLUGINS)];
    let mut volumes = vec![host_path("device-plugins", PLUGINS, "DirectoryOrCreate")];
    match vendor {
        // NVIDIA's container runtime copies the driver's libraries into the container when the container starts.
        GpuVendor::Nvidia => plugin["securityContext"]["readOnlyRootFilesystem"] = json!(false),
        GpuVendor::Amd => {
            mounts.push(mount_to_read("sys", "/sys"));
            volumes.push(host_path("sys", "/sys", "Directory"));
        }
    }
    plugin["volumeMounts"] = json!(mounts);
    let workload = kit.daemon_set(name, &[], pod(name, vendor, &plugin, &volumes));
    let documents = vec![kit.service_account(name), workload];
    AddOn::new(name, settings.images.tag(image), None, documents)
}

fn pod(account: &str, vendor: GpuVendor, plugin: &Value, volumes: &[Value]) -> Value {
    let (label, value) = vendor.label();
    json!({
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"kubernetes.io/os": "linux", label: value},
        "tolerations": [{"key": vendor.resource(), "operator": "Exists"}],
        "serviceAccountName": account,
        "automountServiceAccountToken": false,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [plugin],
        "volumes": volumes,
    })
}
