//! A pod network without container images: a bridge on each member, and routes between the members.

use serde_json::{Value, json};

use crate::{ClusterSettings, Name};

/// The path of the script.
pub(crate) const SCRIPT: &str = "/etc/bedplate/pod-routes";

/// Returns the script that watches the Kubernetes nodes, sets up this member's bridge, and adds routes to the pods of all other members.
/// Every command may run again.
pub(crate) fn script(cluster: &ClusterSettings) -> String {
    let pods = cluster.pods;
    format!(
        r#"#!/bin/bash
# pod-routes NODE - sets up this node's bridge for pods, and a route to the pods of every other node.
set -euo pipefail
self=$1
network={pods}
conflist=/etc/cni/net.d/10-bedplate.conflist

configure() {{ # this node's range
  local new
  new='{{"cniVersion":"0.4.0","name":"pods","plugins":[
  {{"type":"bridge","bridge":"cni0","isGateway":true,"hairpinMode":true,
   "ipam":{{"type":"host-local","ranges":[[{{"subnet":"'$1'"}}]],"routes":[{{"dst":"0.0.0.0/0"}}]}}}},
  {{"type":"portmap","capabilities":{{"portMappings":true}}}}]}}'
  if [ ! -f "$conflist" ] || [ "$(cat "$conflist")" != "$new" ]; then
    mkdir -p "${{conflist%/*}}"
    printf '%s\n' "$new" >"$conflist.new"
    mv "$conflist.new" "$conflist"
    echo "pods of this node are in $1"
  fi
}}

# packets to pods keep the pod's address; packets that leave the pod range get the node's address
masquerade=(POSTROUTING -s "$network" ! -d "$network" -m comment --comment bedplate-pods -j MASQUERADE)
iptables -w -t nat -C "${{masquerade[@]}}" 2>/dev/null || iptables -w -t nat -A "${{masquerade[@]}}"

kubectl --kubeconfig=/etc/kubernetes/kubelet.conf get nodes --watch --output-watch-events \
  -o 'jsonpath={{.type}} {{.object.metadata.name}} {{.object.spec.podCIDR}} {{.object.status.addresses[?(@.type=="InternalIP")].address}}{{"\n"}}' |
  while read -r event name range address; do
    [ -n "$address" ] || continue # the node has no pod range or no address yet
    if [ "$name" = "$self" ]; then
      configure "$range"
    elif [ "$event" = DELETED ]; then
      ip route del "$range" via "$address" 2>/dev/null || true
    else
      ip route replace "$range" via "$address"
    fi
  done
"#
    )
}

/// Returns the unit that runs the script.
///
/// The script ends whenever its connection to the API server ends, and systemd restarts the script until the member has joined.
/// `ConditionPathExists` would not do: systemd evaluates a condition once, at boot.
pub(crate) fn unit(node: &Name) -> String {
    format!(
        "[Unit]
Description=Routes to the pods of other nodes
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Environment=PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStartPre=/usr/bin/test -f /etc/kubernetes/kubelet.conf
ExecStart=/bin/bash {SCRIPT} {node}
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"
    )
}

/// Permits kubelets to read all Kubernetes nodes, because the script uses the kubelet's credentials. From 1.32 a kubelet can read only its
/// own node without this permission.
pub(crate) fn access() -> Value {
    let meta = json!({"name": "bedplate:pod-routes"});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": meta,
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bedplate:pod-routes"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
        },
    ]})
}
