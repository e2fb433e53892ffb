//! The upgrade of kubeadm's add-ons: kube-proxy and CoreDNS follow when the whole control plane has the new version.
//!
//! kube-proxy must not be newer than an API server (kubernetes.io/releases/version-skew-policy), so kubeadm upgrades the add-ons last (since
//! 1.28: kubernetes, pull request 117660). Every new control-plane member waits for the others and does the same, so the loss of one harms
//! nothing.

/// The path of the script.
pub(crate) const SCRIPT: &str = "/etc/bedplate/add-ons";

/// The script of the unit. It may be interrupted anywhere and run again.
pub(crate) const SCRIPT_TEXT: &str = r#"#!/bin/bash
# add-ons VERSION ADD-ON... - upgrades add-ons of kubeadm once every control-plane node has this version.
set -euo pipefail
version=$1
shift

versions() { # prints the version of each control-plane node
  kubectl get nodes --selector node-role.kubernetes.io/control-plane --request-timeout=10s \
    --output 'jsonpath={range .items[*]}{.status.nodeInfo.kubeletVersion}{"\n"}{end}'
}

is_upgraded() {
  local all
  all=$(versions) && [ -n "$all" ] && ! grep -qvxF "$version" <<<"$all"
}

until is_upgraded; do sleep 5; done
for add_on in "$@"; do
  # an add-on that the owner of the cluster removed stays away
  found=$(kubectl --namespace kube-system get configmap "$add_on" --ignore-not-found --output name --request-timeout=10s)
  [ -z "$found" ] || kubeadm init phase addon "$add_on" --config=/etc/bedplate/upload.yaml
done
"#;
