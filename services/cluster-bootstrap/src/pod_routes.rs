//! The pod network that needs no image: a bridge on each machine, and routes between them.

use serde_json::{Value, json};

use crate::{Cluster, Name};

/// Where the script is.
pub(crate) const SCRIPT: &str = "/etc/bedplate/pod-routes";

/// Watches nodes; makes this one's bridge and the routes to the others' pods. Whatever it did it may do again.
pub(crate) fn script(cluster: &Cluster) -> String {
    let pods = cluster.pods;
    format!(
        r#"#!/bin/bash
# pod-routes NODE - this node's bridge for pods, and a route to every other node's.
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

# pods keep their addresses within the cluster and take the node's outside of it
masquerade=(POSTROUTING -s "$network" ! -d "$network" -m comment --comment bedplate-pods -j MASQUERADE)
iptables -w -t nat -C "${{masquerade[@]}}" 2>/dev/null || iptables -w -t nat -A "${{masquerade[@]}}"

kubectl --kubeconfig=/etc/kubernetes/kubelet.conf get nodes --watch --output-watch-events \
  -o 'jsonpath={{.type}} {{.object.metadata.name}} {{.object.spec.podCIDR}} {{.object.status.addresses[?(@.type=="InternalIP")].address}}{{"\n"}}' |
  while read -r event name range address; do
    [ -n "$address" ] || continue # not both yet
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

/// The unit that runs it. It ends whenever its connection does, and is tried until there is a node to speak for: a condition would be
/// asked once, at boot.
pub(crate) fn unit(node: &Name) -> String {
    format!(
        "[Unit]
Description=Routes to other machines' pods
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

/// Lets kubelets see all nodes, which the script does with their credentials. From 1.32 they see but their own otherwise.
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
