#!/usr/bin/env bash
# rack.sh - a rack of virtual machines with BMCs, on a separate network; without an uplink by default.
#
#   rack.sh deps               install Debian's packages and make the Python environment
#   rack.sh up FIRMWARE...     start one machine for each: bios, uefi, http (UEFI that boots by HTTP and never by PXE), or https (the same by
#                              HTTPS, with the rack's CA), or arm (64-bit ARM with UEFI, after arm.sh)
#   rack.sh down               stop and remove this rack
#   rack.sh down-all           stop and remove every rack
#   rack.sh json               print the machines, their BMCs and their hardware
#   rack.sh manifest           print the same for `bedplate rack enroll`: BIOS over IPMI, UEFI over Redfish
#   rack.sh exec COMMAND...    run a command inside the rack's network
#   rack.sh virsh ARGUMENT...  run virsh against the rack's own libvirtd
#   rack.sh uplink ADDRESS     connect the rack to ADDRESS of this host; one rack at a time
#   rack.sh replica NUMBER     add the interface pNUMBER with 10.78.0.(1+NUMBER) to the provisioning network, for a service of its own
#   rack.sh pull MACHINE DISK  remove a disk, vda or vdb, of a machine that is off
#   rack.sh plug MACHINE DISK  put the disk back
#
# A machine is a libvirt domain run by TCG (no hardware virtualisation), powered off at first, with one virtio NIC on br0, one or two
# empty virtio disks, a CD drive and an IPMI interface to its own host. Its BMC has a separate address and speaks Redfish
# (HTTPS, Basic; sushy-emulator) on 8443 and IPMI 2.0 (vbmcd) on 623. Inside the machine, the BMC is OpenIPMI's ipmi_sim, which reports
# that address. Provisioning is 10.78.0.0/24, BMCs are 10.78.1.0/24; both gateways are 10.78.x.1 inside the network. Racks with
# different names do not see each other.
#
#   RACK_NAME  name of the rack (default: rack)  RACK_MEMORY  MiB of each machine (512)
#   RACK_CPUS  processors of each machine (1)    RACK_DISK    disk size of each machine (4G)
#   RACK_DISKS disks of each machine: 1 or 2 (1)
#   RACK_NETWORK  version of IP on the provisioning network: v4, or v6 for fd78::/64 without IPv4 (v4)
#   BEDPLATE_RACKS  the folder of the cache that holds these racks, which down-all removes (racks)
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"
# shellcheck source-path=SCRIPTDIR source=processes.sh disable=SC1091
. "$HERE/processes.sh"
# shellcheck source-path=SCRIPTDIR source=suites.sh disable=SC1091
. "$HERE/suites.sh"

NAME=${RACK_NAME:-rack}
MEMORY=${RACK_MEMORY:-512} CPUS=${RACK_CPUS:-1} DISK=${RACK_DISK:-4G} DISKS=${RACK_DISKS:-1} IP_VERSION=${RACK_NETWORK:-v4}
RACKS=$BEDPLATE_CACHE/${BEDPLATE_RACKS:-racks}
RACK=$RACKS/$NAME                        # all state of this rack
NETWORK=bedplate-$NAME                   # its network namespace
PROVISIONING=10.78.0 BMCS=10.78.1 WAY=10.78.2
REDFISH_PORT=8443
HOST_PORT=29000                          # the first of the loopback ports to which the machines' own BMC interfaces connect
USERNAME=admin PASSWORD=password
OVMF=/usr/share/OVMF AAVMF=/usr/share/AAVMF
# OVMF has the elliptic curves of TLS since 2025.05, which is newer than this Debian's.
OVMF_HTTPS=$BEDPLATE_CACHE/ovmf-https OVMF_HTTPS_SUITE=sid
LIBVIRT="qemu+unix:///system?socket=$RACK/libvirt/run/libvirt-sock"
PACKAGES=(qemu-system-x86 qemu-utils ipxe-qemu ovmf seabios libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients
  libvirt-dev pkg-config gcc libc6-dev openipmi python3-venv python3-dev iproute2 openssl ipmitool curl)

inside() { ip netns exec "$NETWORK" "$@"; }
virsh_() { virsh -q -c "$LIBVIRT" "$@"; }
machine() { printf 'node-%d' "$1"; }
bmc() { printf '%s.%d' "$BMCS" $((10 + $1)); }
mac() { printf '52:54:00:78:00:%02x' "$1"; }
serial() { printf 'RACK%04d' "$1"; }
disk_serial() { printf 'DISK%04d' "$1"; }
uuid() { # made from rack and index, so the same after down and up
  local hash
  hash=$(printf '%s/%s' "$NAME" "$1" | md5sum)
  printf '%s-%s-4%s-a%s-%s' "${hash:0:8}" "${hash:8:4}" "${hash:13:3}" "${hash:17:3}" "${hash:20:12}"
}

until_it_works() { # TRIES COMMAND...: retries five times a second
  local tries=$1
  shift
  for (( ; tries > 0; tries--)); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.2
  done
  return 1
}
start() { # PIDFILE LOG COMMAND...: starts it in the background, inside the network
  local pidfile=$1 log=$2
  shift 2
  # `ip netns exec` becomes the command, so $! is the pid of the command
  ip netns exec "$NETWORK" "$@" >>"$log" 2>&1 </dev/null &
  record_process $! "$pidfile"
  disown
}
stop() { # PIDFILE: ends the process, and kills it after five seconds
  signal_process TERM "$1"
  for _ in $(seq 25); do
    is_alive "$1" || break
    sleep 0.2
  done
  signal_process KILL "$1"
  rm -f "$1"
}

deps() {
  install_packages "${PACKAGES[@]}"
  account
  "$HERE/venv.sh" "$HERE/requirements.txt" >/dev/null
  [ -d "$OVMF_HTTPS" ] || fetch_ovmf
}
fetch_ovmf() {
  local work
  work=$(mktemp -d)
  read_suites "$work/apt" "$OVMF_HTTPS_SUITE"
  (cd "$work" && suite_get download ovmf-generic)
  dpkg-deb -x "$work"/ovmf-generic_*.deb "$work/tree"
  mv -T "$work/tree/usr/share/OVMF" "$OVMF_HTTPS"
  rm -rf "$work"
}
# libvirtd looks up this account when it starts, before it reads qemu.conf
account() { getent passwd libvirt-qemu >/dev/null || useradd -r -U -s /usr/sbin/nologin -d /nonexistent libvirt-qemu; }

network_up() {
  [ -e "/run/netns/$NETWORK" ] || ip netns add "$NETWORK"
  inside sysctl -qw net.ipv6.conf.all.forwarding=1
  inside ip link set lo up
  inside ip link show br0 >/dev/null 2>&1 || inside ip link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0
  [ "$IP_VERSION" = v6 ] || inside ip addr replace $PROVISIONING.1/24 dev br0
  inside ip -6 addr replace fd78::1/64 dev br0 nodad
  inside ip link set br0 up
  inside ip link show bmc0 >/dev/null 2>&1 || inside ip link add bmc0 type bridge
  inside ip addr replace $BMCS.1/24 dev bmc0
  inside ip link set bmc0 up
}

libvirt_up() {
  local home=$RACK/libvirt
  mkdir -p "$home"/{etc/qemu,run,lib/images,log,cache}
  cat >"$home/etc/libvirtd.conf" <<C
unix_sock_rw_perms = "0700"
auth_unix_rw = "none"
auth_unix_ro = "none"
log_outputs = "3:file:/var/log/libvirt/libvirtd.log"
C
  cat >"$home/etc/qemu.conf" <<C
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = [ ]
namespaces = [ ]
stdio_handler = "file"
C
  # `ip netns exec` also creates a mount namespace, so only this libvirtd sees these binds
  # shellcheck disable=SC2016 # for the inner shell
  start "$RACK/libvirtd.pid" "$RACK/libvirtd.out" bash -c '
    set -e; mount --make-rprivate /
    for bind in etc/libvirt=etc run/libvirt=run var/lib/libvirt=lib var/log/libvirt=log var/cache/libvirt=cache; do
      mkdir -p /${bind%=*}; mount --bind "$0/${bind#*=}" /${bind%=*}; done
    exec libvirtd -f /etc/libvirt/libvirtd.conf -p /run/libvirt/libvirtd.pid' "$home"
  until_it_works 150 virsh_ list || {
    cat "$RACK/libvirtd.out" "$home/log/libvirtd.log" >&2
    die "libvirtd did not come up"
  }
  # sushy-emulator puts inserted media into a pool of this name
  virsh_ pool-define-as default dir --target /var/lib/libvirt/images >/dev/null
  virsh_ pool-start default >/dev/null
}

ovmf() { [ "$1" = https ] && printf '%s' "$OVMF_HTTPS" || printf '%s' "$OVMF"; } # FIRMWARE
firmware_xml() { # INDEX FIRMWARE
  local ovmf
  ovmf=$(ovmf "$2")
  case $2 in
    bios) printf '<bios useserial="yes"/>' ;;
    uefi | http | https)
      printf '<loader readonly="yes" type="pflash">%s</loader><nvram template="%s">%s</nvram>' \
        "$ovmf/OVMF_CODE_4M.fd" "$ovmf/OVMF_VARS_4M.fd" "$RACK/$(machine "$1")/nvram.fd"
      ;;
  esac
}
# With PXE disabled, HTTP is OVMF's only network boot. OVMF tries IPv4 first and takes a minute to give up. OVMF reads these names; libvirt's
# boot order has no setting for this.
fwcfg_xml() { # FIRMWARE
  local version versions=()
  case $1/$IP_VERSION in
    http/* | https/*) versions=(4 6) ;;
    uefi/v6) versions=(4) ;;
  esac
  [ ${#versions[@]} != 0 ] || return 0
  printf '<sysinfo type="fwcfg">'
  for version in "${versions[@]}"; do printf '<entry name="opt/org.tianocore/IPv%sPXESupport">no</entry>' "$version"; done
  printf '</sysinfo>'
}
# OVMF reads the CAs of HTTPS under this name, which libvirt refuses.
cas_xml() { [ "$1" != https ] || printf '<qemu:arg value="-fw_cfg"/><qemu:arg value="name=etc/edk2/https/cacerts,file=%s"/>' "$RACK/ca.esl"; }
# A BIOS machine boots by the iPXE in the NIC's ROM. UEFI machines bring their own PXE and HTTP.
rom_xml() { [ "$1" = bios ] || printf '<rom enabled="no"/>'; }

# A machine's first disk is vda, its second vdb.
disk_file() { case $2 in vda) printf '%s' "$RACK/$1/disk.qcow2" ;; vdb) printf '%s' "$RACK/$1/second.qcow2" ;; *) die "$2 is no disk: vda or vdb" ;; esac; }
disk_xml() { # MACHINE DISK
  local serial
  serial=$(disk_serial "${1#node-}")
  [ "$2" = vda ] || serial+=-2
  printf '<disk type="file" device="disk"><driver name="qemu" type="qcow2" cache="unsafe" discard="unmap"/>'
  printf '<source file="%s"/><target dev="%s" bus="virtio"/><serial>%s</serial></disk>' "$(disk_file "$1" "$2")" "$2" "$serial"
}
disks() { [ "$DISKS" = 1 ] && echo vda || echo vda vdb; }

# QEMU emulates vector instructions and cmpxchg16b slowly, and a program uses what its processor has. So the processor has neither.
domain_xml() { # INDEX FIRMWARE
  case $2 in arm) arm_xml "$1" ;; *) x86_xml "$1" "$2" ;; esac
}
# No IPMI interface to its own BMC: QEMU's board has no bus for it. sushy-emulator adds a CD drive on SCSI when it inserts a medium, and AAVMF
# has a driver for this controller only.
arm_xml() { # INDEX
  local name
  name=$(machine "$1")
  cat <<X
<domain type='qemu'>
  <name>$name</name><uuid>$(uuid "$1")</uuid>
  <memory unit='MiB'>$MEMORY</memory><vcpu>$CPUS</vcpu>
  <sysinfo type='smbios'>
    <system><entry name='manufacturer'>Bedplate</entry><entry name='product'>Virtual Server</entry>
      <entry name='serial'>$(serial "$1")</entry><entry name='uuid'>$(uuid "$1")</entry></system>
  </sysinfo>
  <os><type arch='aarch64' machine='virt'>hvm</type>
    <loader readonly="yes" type="pflash">$AAVMF/AAVMF_CODE.fd</loader><nvram template="$AAVMF/AAVMF_VARS.fd">$RACK/$name/nvram.fd</nvram>
    <smbios mode='sysinfo'/><boot dev='hd'/><boot dev='network'/></os>
  <features><acpi/><gic version='2'/></features>
  <cpu mode='custom' match='exact'><model>cortex-a57</model></cpu>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
  <devices>
    <emulator>/usr/bin/qemu-system-aarch64</emulator>
    $(for disk in $(disks); do disk_xml "$name" "$disk"; done)
    <interface type='bridge'><source bridge='br0'/><mac address='$(mac "$1")'/><model type='virtio'/><target dev='tap-$name'/><rom enabled="no"/></interface>
    <serial type='unix'><source mode='bind' path='$RACK/$name/console.sock'/><log file='$RACK/$name/console.log' append='on'/><target port='0'/></serial>
    <controller type='scsi' index='0' model='virtio-scsi'/>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
    <memballoon model='none'/>
  </devices>
</domain>
X
}
x86_xml() { # INDEX FIRMWARE
  local name
  name=$(machine "$1")
  cat <<X
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>$name</name><uuid>$(uuid "$1")</uuid>
  <memory unit='MiB'>$MEMORY</memory><vcpu>$CPUS</vcpu>
  <sysinfo type='smbios'>
    <system><entry name='manufacturer'>Bedplate</entry><entry name='product'>Virtual Server</entry>
      <entry name='serial'>$(serial "$1")</entry><entry name='uuid'>$(uuid "$1")</entry></system>
  </sysinfo>$(fwcfg_xml "$2")
  <os><type arch='x86_64' machine='q35'>hvm</type>$(firmware_xml "$1" "$2")<smbios mode='sysinfo'/><boot dev='hd'/><boot dev='network'/></os>
  <features><acpi/><apic/><smm state='on'/></features>
  <cpu mode='custom' match='exact'><model>qemu64</model><feature policy='disable' name='cx16'/></cpu>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    $(for disk in $(disks); do disk_xml "$name" "$disk"; done)
    <disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk>
    <interface type='bridge'><source bridge='br0'/><mac address='$(mac "$1")'/><model type='virtio'/><target dev='tap-$name'/>$(rom_xml "$2")</interface>
    <serial type='unix'><source mode='bind' path='$RACK/$name/console.sock'/><log file='$RACK/$name/console.log' append='on'/><target port='0'/></serial>
    <console type='pty'><target type='serial' port='0'/></console>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
    <memballoon model='none'/>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-chardev'/><qemu:arg value='socket,id=bmc-host,host=127.0.0.1,port=$((HOST_PORT + $1)),reconnect=5'/>
    <qemu:arg value='-device'/><qemu:arg value='ipmi-bmc-extern,id=bmc,chardev=bmc-host'/><qemu:arg value='-device'/><qemu:arg value='isa-ipmi-kcs,bmc=bmc'/>
    $(cas_xml "$2")
  </qemu:commandline>
</domain>
X
}

machine_up() { # INDEX FIRMWARE
  local home disk
  home=$RACK/$(machine "$1")
  mkdir -p "$home"
  printf '%s' "$2" >"$home/firmware"
  : >"$home/console.log"
  for disk in $(disks); do qemu-img create -q -f qcow2 "$(disk_file "$(machine "$1")" "$disk")" "$DISK"; done
  domain_xml "$1" "$2" >"$home/domain.xml"
  virsh_ define "$home/domain.xml" >/dev/null
  inside ip addr replace "$(bmc "$1")/24" dev bmc0
}

authority_up() { # makes the CA and the account of all BMCs
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=rack CA" \
    -addext basicConstraints=critical,CA:TRUE -keyout "$RACK/ca.key" -out "$RACK/ca.pem" 2>/dev/null
  # the same CA as UEFI reads it: an EFI_SIGNATURE_LIST (UEFI 2.10 section 32.4.1) with one certificate and no owner
  openssl x509 -in "$RACK/ca.pem" -outform DER | "$VENV/bin/python" -c 'import struct, sys, uuid
der = sys.stdin.buffer.read()
kind = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072").bytes_le
sys.stdout.buffer.write(kind + struct.pack("<III", 28 + 16 + len(der), 0, 16 + len(der)) + bytes(16) + der)' >"$RACK/ca.esl"
  certificate boot "IP:$PROVISIONING.1" "$RACK/boot"
  "$VENV/bin/python" -c 'import bcrypt, sys; print(sys.argv[1] + ":" + bcrypt.hashpw(sys.argv[2].encode(), bcrypt.gensalt(4)).decode())' \
    "$USERNAME" "$PASSWORD" >"$RACK/htpasswd"
}

certificate() { # NAME ALTERNATIVE FILE   makes FILE.pem and FILE.key, signed by the rack's CA
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$3.key" -out "$3.csr" 2>/dev/null
  openssl x509 -req -in "$3.csr" -CA "$RACK/ca.pem" -CAkey "$RACK/ca.key" -CAcreateserial -days 3650 -out "$3.pem" \
    -extfile <(printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\n' "$2") 2>/dev/null
}

redfish_up() { # INDEX FIRMWARE
  local home address ovmf
  home=$RACK/$(machine "$1") address=$(bmc "$1") ovmf=$(ovmf "$2")
  certificate "$(machine "$1")-bmc" "IP:$address" "$home/bmc"
  mkdir -p "$home/redfish"
  cat >"$home/redfish.conf" <<C
SUSHY_EMULATOR_LISTEN_IP = '$address'
SUSHY_EMULATOR_LISTEN_PORT = $REDFISH_PORT
SUSHY_EMULATOR_SSL_CERT = '$home/bmc.pem'
SUSHY_EMULATOR_SSL_KEY = '$home/bmc.key'
SUSHY_EMULATOR_AUTH_FILE = '$RACK/htpasswd'
SUSHY_EMULATOR_LIBVIRT_URI = '$LIBVIRT'
SUSHY_EMULATOR_STATE_DIR = '$home/redfish'
SUSHY_EMULATOR_ALLOWED_INSTANCES = ['$(uuid "$1")']
# libvirt lets only firmware with SMM write the variables of a machine with Secure Boot
SUSHY_EMULATOR_BOOT_LOADER_MAP = {'UEFI': {'x86_64': '$ovmf/OVMF_CODE_4M.secboot.fd', 'aarch64': '$AAVMF/AAVMF_CODE.fd'}, 'Legacy': {'x86_64': '/usr/share/seabios/bios-256k.bin'}}
SUSHY_EMULATOR_SECURE_BOOT_DISABLED_NVRAM = '$ovmf/OVMF_VARS_4M.fd'
SUSHY_EMULATOR_SECURE_BOOT_ENABLED_NVRAM = '$ovmf/OVMF_VARS_4M.ms.fd'
C
  start "$home/redfish.pid" "$home/redfish.log" "$VENV/bin/sushy-emulator" --config "$home/redfish.conf"
}
redfish_answers() { inside curl -s -o /dev/null --cacert "$RACK/ca.pem" "https://$(bmc "$1"):$REDFISH_PORT/redfish/v1/"; }

ipmi_up() { # COUNT
  local index home
  # One file per BMC, written directly: vbmcd starts BMCs marked active by itself, while each `vbmc add` would start Python twice
  for ((index = 0; index < $1; index++)); do
    home=$RACK/vbmc/$(machine "$index")
    mkdir -p "$home"
    cat >"$home/config" <<C
[VirtualBMC]
username = $USERNAME
password = $PASSWORD
address = $(bmc "$index")
port = 623
domain_name = $(machine "$index")
libvirt_uri = $LIBVIRT
active = True
C
  done
  printf '[default]\nconfig_dir=%s\npid_file=%s\nserver_port=50891\n[log]\nlogfile=%s\n' "$RACK/vbmc" "$RACK/vbmcd.own.pid" "$RACK/vbmcd.log" >"$RACK/vbmc.conf"
  start "$RACK/vbmcd.pid" "$RACK/vbmcd.out" env VIRTUALBMC_CONFIG="$RACK/vbmc.conf" "$VENV/bin/vbmcd" --foreground
}

# The BMC as its own machine sees it, through a KCS interface.
host_ipmi_up() { # INDEX
  local home port
  home=$RACK/$(machine "$1")/ipmi_sim port=$((HOST_PORT + $1))
  mkdir -p "$home/state"
  # The LAN channel exists only to report its settings. Nobody uses its port; vbmcd has the address.
  cat >"$home/lan.conf" <<C
name "$(machine "$1")"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 $port
    priv_limit admin
    allowed_auths_admin none
    lan_config_program "$HERE/lan.sh $(bmc "$1")"
  endlan
  serial kcs 127.0.0.1 $port codec VM
C
  printf '%s\n' 'mc_setbmc 0x20' 'mc_add 0x20 0 no-device-sdrs 0x01 2 0x42 0x9f 0x0002a2 0x0100' 'mc_enable 0x20' >"$home/machine.emu"
  # without -n, ipmi_sim needs a console on its standard input
  start "$home.pid" "$home.log" ipmi_sim -n -c "$home/lan.conf" -f "$home/machine.emu" -s "$home/state"
}
# A mistake in its files closes the port silently. ipmi_sim accepts one connection only, so the check must not connect.
host_ipmi_listens() { [ -n "$(inside ss -Hlnt "sport = :$((HOST_PORT + $1))")" ]; }
ipmi_answers() { inside ipmitool -I lanplus -C 3 -N 1 -R 1 -H "$(bmc "$1")" -U $USERNAME -P $PASSWORD chassis power status; }

up() {
  local firmware=("$@") index
  (($# >= 1 && $# <= 100)) || die "up takes 1 to 100 machines: bios, uefi, http, https or arm"
  for index in "$@"; do case $index in bios | uefi | http | https | arm) ;; *) die "$index is no firmware: bios, uefi, http, https or arm" ;; esac; done
  is_root || die "a rack needs root: a network namespace, tap devices, libvirtd"
  needs qemu-system-x86_64 qemu-img libvirtd virsh ip openssl curl ipmitool python3 ipmi_sim
  # the path of a socket must stay below 108 bytes
  [ ${#RACK} -le 80 ] || die "$RACK is too long a path for sockets: set BEDPLATE_CACHE"
  down
  account
  VENV=$("$HERE/venv.sh" "$HERE/requirements.txt")
  mkdir -p "$RACK"
  network_up
  libvirt_up
  authority_up
  for index in "${!firmware[@]}"; do machine_up "$index" "${firmware[index]}"; done
  for index in "${!firmware[@]}"; do
    redfish_up "$index" "${firmware[index]}"
    host_ipmi_up "$index"
  done
  ipmi_up $#
  for index in "${!firmware[@]}"; do
    until_it_works 300 redfish_answers "$index" || die "$(machine "$index"): Redfish did not answer, see $RACK/$(machine "$index")/redfish.log"
    until_it_works 60 ipmi_answers "$index" || die "$(machine "$index"): IPMI did not answer, see $RACK/vbmcd.out"
    until_it_works 60 host_ipmi_listens "$index" || die "$(machine "$index"): ipmi_sim does not listen, see $RACK/$(machine "$index")/ipmi_sim.log"
  done
  printf '%s\n' "$PASSWORD" >"$RACK/bmc.password"
  manifest >"$RACK/rack.yaml"
}

# Routes the rack's machines through its gateway, 10.78.0.1, to ADDRESS and back. No address is translated, and no other one is reachable.
uplink() { # ADDRESS
  local outside
  outside=up-$(printf '%s' "$NAME" | md5sum | cut -c1-8)
  ip link add "$outside" type veth peer name uplink netns "$NETWORK"
  ip addr add $WAY.1/30 dev "$outside"
  ip link set "$outside" up
  inside ip addr add $WAY.2/30 dev uplink
  inside ip link set uplink up
  inside sysctl -qw net.ipv4.ip_forward=1
  inside ip route add "$1/32" via $WAY.1
  ip route add $PROVISIONING.0/24 via $WAY.2
}

# All replicas are in the rack's network namespace, and each gets the broadcasts of the machines on its own interface. Packets leave by br0,
# which is on the same network, so the kernel must not compare the interfaces of both directions.
replica() { # NUMBER
  inside ip link add "p$1" type veth peer name "p$1-br0"
  inside ip link set "p$1-br0" master br0 up
  inside sysctl -qw net.ipv4.conf.all.rp_filter=0 "net.ipv4.conf.p$1.rp_filter=0"
  inside ip addr add "$PROVISIONING.$((1 + $1))/24" dev "p$1"
  inside ip link set "p$1" up
}

# A disk comes back with its place in the boot order, without which OVMF does not boot from it.
pull() { # MACHINE DISK
  virsh_ dumpxml --inactive --xpath "//disk[target/@dev='$2']" "$1" >"$RACK/$1/$2.xml"
  virsh_ detach-disk "$1" "$2" --config >/dev/null
}
plug() { virsh_ attach-device "$1" "$RACK/$1/$2.xml" --config >/dev/null; } # MACHINE DISK

machines() {
  local home
  for home in "$RACK"/node-*/; do [ -d "$home" ] && basename "$home" | sed 's/node-//'; done | sort -n
}
json() {
  local index separator='[' home
  for index in $(machines); do
    home=$RACK/$(machine "$index")
    printf '%s{"name":"%s","firmware":"%s","uuid":"%s","serial":"%s","mac":"%s","cpus":%d,"memory_mib":%d,"disk_serial":"%s","disk_bytes":%d,' \
      "$separator" "$(machine "$index")" "$(cat "$home/firmware")" "$(uuid "$index")" "$(serial "$index")" "$(mac "$index")" "$CPUS" "$MEMORY" \
      "$(disk_serial "$index")" "$(numfmt --from=iec "$DISK")"
    printf '"bmc":"%s","redfish":"https://%s:%s","ipmi_port":623,"username":"%s","password":"%s","ca":"%s","disk":"%s","console":"%s"}\n' \
      "$(bmc "$index")" "$(bmc "$index")" $REDFISH_PORT $USERNAME $PASSWORD "$RACK/ca.pem" "$home/disk.qcow2" "$home/console.log"
    separator=','
  done
  [ "$separator" = ',' ] || printf '['
  echo ']'
}

manifest() {
  local index
  printf 'rack: %s\ndefaults:\n  bmc: {user: %s, password_file: bmc.password}\nmachines:\n' "$NAME" "$USERNAME"
  for index in $(machines); do
    printf -- '- name: %s\n  mac: "%s"\n' "$(machine "$index")" "$(mac "$index")"
    case $(cat "$RACK/$(machine "$index")/firmware") in
      bios) printf '  bmc: {type: ipmi, address: "%s:623", cipher_suite: 3}\n' "$(bmc "$index")" ;;
      uefi | arm) redfish_yaml "$index" ;;
      http | https) redfish_yaml "$index" && printf '  boot: http-ipxe\n' ;;
    esac
  done
}
redfish_yaml() { # INDEX
  printf '  bmc: {type: redfish, address: "https://%s:%s", system: /redfish/v1/Systems/%s}\n' "$(bmc "$1")" $REDFISH_PORT "$(uuid "$1")"
}

down() {
  local index pid
  stop "$RACK/vbmcd.pid"
  for index in $(machines); do
    stop "$RACK/$(machine "$index")/redfish.pid"
    stop "$RACK/$(machine "$index")/ipmi_sim.pid"
    ! is_alive "$RACK/libvirtd.pid" || virsh_ destroy "$(machine "$index")" >/dev/null 2>&1 || true
  done
  stop "$RACK/libvirtd.pid"
  if [ -e "/run/netns/$NETWORK" ]; then
    # processes that are still inside were started there by this script or its user
    for pid in $(ip netns pids "$NETWORK"); do kill -9 "$pid" 2>/dev/null || true; done
    ip netns del "$NETWORK"
  fi
  rm -rf "${RACK:?}"
}
down_all() {
  local rack
  for rack in "$RACKS"/*/; do [ ! -d "$rack" ] || RACK_NAME=$(basename "$rack") "$0" down; done
}

case ${1:-} in
  deps | json | manifest | down) "$1" ;;
  down-all) down_all ;;
  up) up "${@:2}" ;;
  exec) exec ip netns exec "$NETWORK" "${@:2}" ;;
  virsh) virsh_ "${@:2}" ;;
  uplink) uplink "${2:?an address}" ;;
  replica) replica "${2:?a number}" ;;
  pull | plug) "$1" "${2:?a machine}" "${3:?a disk}" ;;
  *)
    sed -n '2,29p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
    ;;
esac
