//! Renewal of the certificates that a member holds: how the member reports them, and what it does once clusterd permits a renewal.
//!
//! These functions belong to the script of CA rotation (`src/ca_rotation.rs`), because both restart the same processes and must never do so
//! at the same time. The member reports only certificates, with the times when their files were written; clusterd reads them and decides.
//! A file tells how far a renewal is, so that the member continues after an interruption.

/// The curl configuration for reporting certificates, read by `curl --config`.
pub(crate) const CURL: &str = "/etc/bedplate/certificates.curl";

/// The functions of the script. They use `state`, `kubernetes`, `pki` and `kubelet`, and functions that restart processes.
pub(crate) const FUNCTIONS: &str = r##"
report_after=0 # the second of the script at which the next report is due

leaf() { # NAME FILE: prints the certificates in the file, and never a key
  [ -s "$2" ] || return 0
  echo "certificate $1 $(stat -L -c %Y "$2")"
  sed -n '/^-----BEGIN CERTIFICATE-----$/,/^-----END CERTIFICATE-----$/p' "$2"
}

leaf_of_kubeconfig() { # NAME: the same for the client certificate in a kubeconfig
  local config=$kubernetes/$1.conf data
  [ -s "$config" ] || return 0
  data=$(sed -n 's/^ *client-certificate-data: *//p' "$config")
  [ -n "$data" ] || return 0
  echo "certificate $1.conf $(stat -c %Y "$config")"
  base64 -d <<<"$data" | sed -n '/^-----BEGIN CERTIFICATE-----$/,/^-----END CERTIFICATE-----$/p'
}

certificates() { # prints how far a renewal is, and all certificates that this member holds
  local name
  echo "stage $(cat "$state/renewing" 2>/dev/null || echo idle)"
  for name in apiserver apiserver-etcd-client apiserver-kubelet-client front-proxy-client etcd/server etcd/peer etcd/healthcheck-client; do
    leaf "$name" "$pki/$name.crt"
  done
  for name in admin super-admin controller-manager scheduler; do leaf_of_kubeconfig "$name"; done
  leaf kubelet-client "$kubelet"
  leaf kubelet-server "${kubelet%/*}/kubelet.crt"
  leaf kubelet-server "${kubelet%/*}/kubelet-server-current.pem"
}

at_stage() { # STAGE: records how far the renewal is
  echo "$1" >"$state/renewing.new"
  mv -f "$state/renewing.new" "$state/renewing"
}

renew() { # renews all certificates of this member
  if [ "$(cat "$state/renewing" 2>/dev/null || true)" != kubelet ]; then
    at_stage control-plane
    if [ -f "$pki/ca.key" ]; then
      kubeadm certs renew all
      restart_control_plane
    fi
    at_stage kubelet
  fi
  # the kubelet makes a new certificate of its server, or requests one, when it finds none at its start
  rm -f "${kubelet%/*}"/kubelet.{crt,key} "${kubelet%/*}/kubelet-server-current.pem"
  renew_kubelet
  kubelet_answers
  rm -f "$state/renewing"
  echo "renewed the certificates"
}

report_certificates() { # asks clusterd when a report is due, and renews the certificates if clusterd permits it
  local status seconds
  [ "$SECONDS" -ge "$report_after" ] || return 0
  certificates >"$state/certificates"
  status=$(curl --config /etc/bedplate/certificates.curl --data-binary "@$state/certificates" --output "$state/answer" --write-out '%{http_code}' || true)
  report_after=$((SECONDS + 60))
  case $status in
  200)
    renew
    report_after=0
    ;;
  202)
    seconds=$(tr -cd 0-9 <"$state/answer")
    report_after=$((SECONDS + ${seconds:-60}))
    ;;
  esac
}

rest() { # until the next report is due, and 30 s at most
  local seconds=$((report_after - SECONDS))
  [ "$seconds" -ge 1 ] || seconds=1
  [ "$seconds" -le 30 ] || seconds=30
  sleep "$seconds"
}
"##;
