# make run     starts a rack and a cluster  make test    runs all tests and prints a table of them
# make check   the checks of each commit    make soak    the tests that take hours
# make build   programs and ramdisk         make lint  unit  test-fast  test-compat  test-browser  test-rack  test-clouds
#                                           make test-agents  test-ironic  test-kubernetes  test-ignition  test-packages
#                                           test-replicas  test-upgrade  rustdoc
# make packages           Debian packages of optimised programs, in target/packages; make packages-arm64 for 64-bit ARM
# make image-hypervisor   a disk that becomes a compute host of an OpenStack
# make bench   measures the documented figures   make clean   removes builds and racks
#
# Requires Debian 12, Rust from rustup, and make. As root each target installs the Debian packages it needs; without root it names the
# missing packages and the tests it skips. ~/.cache/bedplate (BEDPLATE_CACHE) keeps downloads, Python environments, cargo's tools and
# builds of other people's crates. tests/README.md describes each target and its duration.
#
# test-clouds, test-kubernetes and test-ignition need root, 6 GiB of memory and 10 GiB of disk. If the cache is empty, they build
# Kubernetes first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: build ramdisk make-ramdisk machines make-machines run check test soak lint unit build-tests rustdoc mutants test-fast test-compat test-browser test-ironic test-rack test-agents test-clouds \
  test-kubernetes test-ignition test-replicas test-upgrade test-packages packages packages-arm64 image-hypervisor bench bench-site clean build-packages

# One build lints and compiles: clippy is the compiler of this workspace's crates, and its warnings are errors.
export RUSTC_WORKSPACE_WRAPPER := clippy-driver
export CLIPPY_ARGS := -Dwarnings__CLIPPY_HACKERY__

RACK ?= emulated
RAMDISK := target/ramdisk
PACKAGES := tests/real/packages.sh
OPENSTACK := tests/real/openstack/openstack.sh
IRONIC := tests/real/ironic/ironic.sh
SCRIPTS := $(shell find . -path ./target -prune -o \( -name '*.sh' -o -path ./.ci/run \) -print)
# The subcommand of cargo that runs tests: nextest where it is installed.
TEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run || echo test)

# The stories of test-replicas and of test-upgrade.
NEVER_DOWN := (package(scenarios) and test(/^never_down::/))
UPGRADE := (package(scenarios) and test(/^never_down::upgrade::/))
# The tests of one crate. Each command builds the whole workspace, so all commands use the same features and cargo builds each dependency
# once.
NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes)
FAST = $(if $(NEXTEST),-E 'not (package(real) or package(real-clusters) or package(compat) or package(browser) or package(ironic) or $(NEVER_DOWN))',--exclude real --exclude real-clusters --exclude compat --exclude browser --exclude ironic)
only = $(if $(NEXTEST),--workspace -E 'package($(1))',-p $(1))
binary = $(if $(NEXTEST),--workspace -E 'package($(1)) and binary($(2))',-p $(1) --test $(2))
named = $(if $(NEXTEST),--workspace -E 'package($(1)) and binary($(2)) and test($(3))',-p $(1) --test $(2) $(3))
# The targets that search for secrets run side by side, so each keeps the output of its tests in its own folder.
profile = $(if $(NEXTEST),--profile $(1))

# As root the tests fail if a peer (a program of other people) is missing. Without root the end of the run lists the skipped tests.
export BEDPLATE_PEERS := $(if $(filter 0,$(shell id -u)),required,)
export BEDPLATE_SKIPPED ?= $(CURDIR)/target/skipped
# The files and logs that services left in tests, and the output of the tests. tests/left searches them for the secrets that the tests used.
# nextest also stores the output of passed tests; `cargo test` needs --show-output for that.
LEFT := $(CURDIR)/target/left
nothing_left = rm -rf $(LEFT)/$(1) $(LEFT)/$(1).secrets target/nextest/$(1) && mkdir -p $(LEFT)/$(1)
# nextest prints nothing of a passed test, so the end of a target lists the skipped tests.
forget_skips = @rm -f "$$BEDPLATE_SKIPPED"
tell_skips = @if [ -s "$$BEDPLATE_SKIPPED" ]; then sort -u "$$BEDPLATE_SKIPPED"; fi
SHOWN := $(if $(NEXTEST),,-- --show-output)
no_secret_left = target/debug/left $(LEFT)/$(1) target/nextest/$(1)

build: build-packages ramdisk
	cargo build --workspace --bins

build-packages:
	@$(PACKAGES) gcc libc6-dev

# Makes something once for all targets of one `make test`, and each time outside of `make test`.
once = @if [ -z "$${BEDPLATE_RUN:-}" ] || [ "$$(cat target/log/$(1).run 2>/dev/null)" != "$${BEDPLATE_RUN:-}" ]; then \
  $(MAKE) --no-print-directory make-$(1) && mkdir -p target/log && echo "$${BEDPLATE_RUN:-}" >target/log/$(1).run; fi

# The kernel and the ramdisk that machines boot during inspection and deployment, and both on a CD.
ramdisk: build-packages
	$(call once,ramdisk)

make-ramdisk:
	@$(PACKAGES) cpio zstd kmod
	tests/deps-cache.sh restore
	images/ramdisk/build.sh $(RAMDISK)
	images/ramdisk/iso.sh $(RAMDISK)
	tests/deps-cache.sh save agent x86_64-unknown-linux-gnu/agent

# The Debian packages, of optimised programs.
packages: ramdisk
	@$(PACKAGES) debhelper
	rm -rf target/packages
	deploy/packages/build.sh "$$(deploy/packages/programs.sh)" $(RAMDISK) target/packages

# The same for 64-bit ARM, in target/packages-arm64, without the package of the ramdisk.
packages-arm64: packages
	@$(PACKAGES) gcc-aarch64-linux-gnu
	rm -rf target/packages-arm64
	programs="$$(ARCHITECTURE=arm64 deploy/packages/programs.sh)"; \
	  ARCHITECTURE=arm64 NATIVE=target/x86_64-unknown-linux-gnu/release/bedplate deploy/packages/build.sh "$$programs" $(RAMDISK) target/packages-arm64

# The parts of a rack of QEMU machines.
machines: ramdisk
	$(call once,machines)

make-machines:
	@$(PACKAGES) ipxe python3-venv
	@if [ "$$(id -u)" = 0 ]; then tests/real/rack.sh deps; tests/real/tiny-image.sh; fi

run: build-packages
ifeq ($(RACK),qemu)
	$(MAKE) build
	tests/real/show.sh
else
	cargo build --workspace --bins
	target/debug/bedplate dev
endif

# The checks of each commit.
check: lint rustdoc unit

# All tests. Targets that mostly wait for machines run beside targets that mostly compute.
test:
	@tests/run.sh "lint | machines" "test-fast test-browser test-ironic | test-clouds test-compat | test-ignition test-rack test-replicas test-upgrade test-kubernetes test-packages rustdoc"

# Takes hours: mutants of decision code, every kill point of the crash loops, the agents and conductors of others, a restoration of 1 GiB
# of etcd, the upgrade of a cluster in a real OpenStack, a site of ten thousand machines, 10,000 seeds of the simulation.
soak: mutants
	$(MAKE) --no-print-directory test-agents
	BEDPLATE_SOAK=1 $(MAKE) --no-print-directory test-fast
	tests/real/kubernetes/nodes.sh deps
	trap 'tests/real/kubernetes/nodes.sh down-all' EXIT; BEDPLATE_SOAK=1 BEDPLATE_REAL=1 cargo $(TEST) $(call binary,real-clusters,three_and_two)
	BEDPLATE_SOAK=1 $(MAKE) --no-print-directory test-clouds
	$(MAKE) --no-print-directory bench-site SITE=10000 BESIDE=1000
	target/debug/sim --seeds 10000

lint: build-packages
	@$(PACKAGES) shellcheck python3-venv
	cargo fmt --all --check
	@if command -v shellcheck >/dev/null; then shellcheck -x $(SCRIPTS); else echo "SKIPPED: shellcheck, because it is not installed"; fi
	"$$(tests/real/venv.sh tests/compat/lint-requirements.txt)/bin/ruff" check --line-length 140 --select E,F,W,I,B deploy tests
	"$$(tests/tool.sh cargo-machete 0.9.2)" .
	"$$(tests/tool.sh cargo-deny 0.20.2)" --locked --log-level error check bans licenses sources
	tests/advisories.sh "$$(tests/tool.sh cargo-deny 0.20.2)"
	$(MAKE) --no-print-directory build-tests
	tests/deps-cache.sh save debug

# Compiles all crates and their tests once.
build-tests: build-packages
	tests/deps-cache.sh restore
	cargo build --workspace --all-targets

# Warnings of rustdoc are errors. Nobody waits for it, so in `make test` it runs beside tests that wait for machines. It has a build folder
# of its own, because cargo locks the folder until the documentation is complete.
rustdoc: build-packages
	tests/deps-cache.sh restore
	RUSTDOCFLAGS="-D warnings" cargo doc --target-dir target/rustdoc --workspace --no-deps --document-private-items --quiet
	tests/deps-cache.sh save rustdoc/debug

# Tests that need only their crate and a PostgreSQL.
unit: build-tests
	$(forget_skips)
	tests/real/postgres.sh cargo $(TEST) --workspace --lib --bins
	$(tell_skips)

mutants: build-packages
	tests/mutants.sh

# Unit tests, the stores on both databases, emulators, drivers, daemons, scenarios, the guides on a Debian machine.
test-fast: export BEDPLATE_LEFT = $(LEFT)/fast
test-fast: build-packages $(if $(filter 0,$(shell id -u)),ramdisk)
	@$(PACKAGES) atftp busybox-static curl debhelper dhcping dnsmasq-base docker-registry fish groff-base ignition iproute2 ipmitool ipxe ipxe-qemu isc-dhcp-client jq lldpd mmdebstrap ndisc6 openipmi ovmf procps \
	  python3-aiosmtpd python3-venv qemu-system-x86 qemu-utils seabios tftp-hpa tmux xfsprogs zsh
	@command -v kubectl >/dev/null || $(PACKAGES) kubernetes-client
	cargo build --workspace --all-targets
	@# The guides install these packages.
	if [ "$$(id -u)" = 0 ]; then COMPRESSION=0 deploy/packages/build.sh target/debug $(RAMDISK) target/packages-of-tests; fi
	$(forget_skips)
	@$(call nothing_left,fast)
	tests/real/postgres.sh tests/openstack-emulator/with-cloud.sh cargo $(TEST) $(call profile,fast) --workspace $(FAST) $(SHOWN) 2>&1 | tee $(LEFT)/fast/printed
	@# Searches the output and the files of the tests for the secrets that the tests used.
	$(call no_secret_left,fast)
	$(tell_skips)

# The public OpenStack clients.
test-compat: export BEDPLATE_LEFT = $(LEFT)/compat
test-compat: build-packages
	@$(PACKAGES) prometheus python3-venv
	cargo build --workspace --all-targets
	$(forget_skips)
	@$(call nothing_left,compat)
	cargo $(TEST) $(call profile,compat) $(call only,compat) $(SHOWN) 2>&1 | tee $(LEFT)/compat/printed
	$(call no_secret_left,compat)
	$(tell_skips)

# The console in Debian's Chromium, with the services that `bedplate dev` starts on the ports of deploy/dev.
test-browser: build-packages
	@$(PACKAGES) chromium novnc python3-venv qemu-system-x86
	@command -v kubectl >/dev/null || $(PACKAGES) kubernetes-client
	cargo build --workspace --all-targets
	$(forget_skips)
	cargo $(TEST) $(call only,browser)
	$(tell_skips)

# The walk of Ironic's whole API: baremetald answers as recorded, except for the listed differences, and takes the standard traits that
# Ironic takes. With BEDPLATE_REAL=1, a real Ironic from PyPI walks too, and answers as recorded.
test-ironic: build-packages
	@$(PACKAGES) curl python3-venv
	cargo build --workspace --all-targets
	$(forget_skips)
	cargo $(TEST) $(call only,ironic)
	@[ -z "$${BEDPLATE_REAL:-}" ] || $(MAKE) --no-print-directory run-real-ironic
	$(tell_skips)

.PHONY: run-real-ironic
run-real-ironic:
	@$(PACKAGES) curl python3-venv
	trap '$(IRONIC) down' EXIT; url=$$($(IRONIC) up); target/debug/ironic verify "$$url"

# QEMU machines. A rack needs root, for network namespaces and libvirtd.
test-rack:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-rack, because it needs root"; else $(MAKE) --no-print-directory run-test-rack; fi

RACKS := $(if $(NEXTEST),--workspace -E 'package(real) and not (binary(rack_to_cloud) or binary(nova_on_machine) or binary(rack_of_replicas) or binary(/agent/))',-p real)

.PHONY: run-test-rack
run-test-rack: machines
	cargo build --workspace --all-targets
	trap 'tests/real/rack.sh down-all' EXIT; BEDPLATE_REAL=1 cargo $(TEST) $(RACKS); \
	  export RACK_NAME=contract; tests/real/rack.sh up uefi; \
	  tests/real/rack.sh exec env BEDPLATE_TEST_REDFISH='https://10.78.1.10:8443 admin password mac=52:54:00:78:00:00 firmware=http://10.78.1.1/bios.bin' \
	  cargo $(TEST) $(call binary,redfish,contract)

# Three of each service on PostgreSQL behind haproxy, with emulated machines and an emulated cloud. As root also three baremetald with a QEMU
# machine, each in a network namespace of its own.
REPLICAS = $(if $(NEXTEST),--workspace -E '($(NEVER_DOWN) and not $(UPGRADE))$(if $(filter 0,$(shell id -u)), or (package(real) and binary(rack_of_replicas)))',-p scenarios --test stories never_down)

test-replicas: export BEDPLATE_LEFT = $(LEFT)/replicas
test-replicas: export BEDPLATE_RACKS := racks-of-replicas
test-replicas: build-packages $(if $(filter 0,$(shell id -u)),machines)
	@$(PACKAGES) haproxy libfaketime python3
	cargo build --workspace --all-targets
	$(forget_skips)
	@$(call nothing_left,replicas)
	trap '[ "$$(id -u)" != 0 ] || tests/real/rack.sh down-all' EXIT; BEDPLATE_REAL=$(if $(filter 0,$(shell id -u)),1,) \
	  tests/real/postgres.sh cargo $(TEST) $(call profile,replicas) $(REPLICAS) $(SHOWN) 2>&1 | tee $(LEFT)/replicas/printed
	$(call no_secret_left,replicas)
	$(tell_skips)

# The last release and this tree, side by side: three of each service are upgraded one after the other, and go back. The last release is
# built once, and kept in the cache.
test-upgrade: export BEDPLATE_LEFT = $(LEFT)/upgrade
test-upgrade: build-packages
	@$(PACKAGES) haproxy python3
	tests/real/last-release.sh programs
	cargo build --workspace --all-targets
	$(forget_skips)
	@$(call nothing_left,upgrade)
	tests/real/postgres.sh cargo $(TEST) $(call profile,upgrade) $(if $(NEXTEST),--workspace -E '$(UPGRADE)',-p scenarios --test stories never_down::upgrade) $(SHOWN) 2>&1 | tee $(LEFT)/upgrade/printed
	$(call no_secret_left,upgrade)
	$(tell_skips)

# Agents and conductors of others on QEMU machines: the released ironic-python-agent under baremetald, and our agent under a real Ironic.
test-agents:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-agents, because it needs root"; else $(MAKE) --no-print-directory run-test-agents; fi

AGENTS := $(if $(NEXTEST),--workspace -E 'package(real) and binary(/agent/)',-p real --test agent_on_arm64 --test agent_under_ironic --test ironic_python_agent --test mirror_by_agent)

.PHONY: run-test-agents
run-test-agents: export BEDPLATE_RACKS := racks-of-agents
run-test-agents: machines
	@$(PACKAGES) dnsmasq-base mmdebstrap
	for release in debian pypi; do tests/real/ipa.sh $$release; done
	tests/real/arm.sh
	cargo build --workspace --all-targets
	trap 'tests/real/rack.sh down-all' EXIT; BEDPLATE_REAL=1 cargo $(TEST) $(AGENTS)

# A real OpenStack from Debian's packages. It first runs the contract tests of the driver and clusters on Nova's fake hypervisors; then
# its servers are machines made of namespaces, and a cluster of real Kubernetes runs on them; then `bedplate rack up` makes a QEMU machine
# a compute host, and a server boots there. The rack's machines reach the cloud's address, and the host's own Neutron agent connects its
# ports. The target needs root for chroot and namespaces. Low-priority jobs build Kubernetes and the host's image at the same time.
test-clouds:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-clouds, because it needs root"; else $(MAKE) --no-print-directory run-test-clouds; fi

.PHONY: run-test-clouds
run-test-clouds: export OPENSTACK_ADDRESS := 10.78.3.1
run-test-clouds: export OPENSTACK_MECHANISMS := openvswitch,bedplate
run-test-clouds: export BEDPLATE_RACKS := racks-of-clouds
run-test-clouds: machines
	@$(PACKAGES) binutils curl e2fsprogs haproxy ignition iproute2 iptables mmdebstrap patch procps python3-venv qemu-utils xz-utils
	cargo build --workspace --all-targets
	@mkdir -p target/log
	. tests/real/processes.sh; \
	  tests/real/background.sh tests/real/kubernetes/mirror.sh >target/log/kubernetes 2>&1 & kubernetes=$$!; \
	  record_process $$kubernetes target/log/kubernetes.pid; \
	  tests/real/background.sh images/hypervisor/build.sh >target/log/hypervisor 2>&1 & hypervisor=$$!; \
	  record_process $$hypervisor target/log/hypervisor.pid; \
	  trap 'signal_group TERM target/log/kubernetes.pid; signal_group TERM target/log/hypervisor.pid; tests/real/rack.sh down-all; $(OPENSTACK) down' EXIT; \
	  $(OPENSTACK) reset; eval "$$($(OPENSTACK) env)"; \
	  cargo $(TEST) $(call binary,openstack,contract); cargo $(TEST) $(call named,policy,walk,given_keystone); \
	  cargo $(TEST) $(call binary,real-clusters,eight_servers); cargo $(TEST) $(call binary,real-clusters,own_project); \
	  cargo $(TEST) $(call binary,real-clusters,own_machine); BEDPLATE_REAL=1 cargo $(TEST) $(call binary,real,nova_on_machine); \
	  $(OPENSTACK) machines; eval "$$($(OPENSTACK) env)"; cargo $(TEST) $(call binary,real-clusters,servers); \
	  wait $$kubernetes || { cat target/log/kubernetes; exit 1; }; \
	  cargo $(TEST) $(call binary,real-clusters,whole_cloud); \
	  wait $$hypervisor || { cat target/log/hypervisor; exit 1; }; \
	  $(OPENSTACK) reset; eval "$$($(OPENSTACK) env)"; \
	  BEDPLATE_REAL=1 cargo $(TEST) $(call binary,real,rack_to_cloud)

# Kubernetes, built from Debian's source, on machines made of namespaces. It needs root.
test-kubernetes:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-kubernetes, for it needs root"; else $(MAKE) --no-print-directory run-test-kubernetes; fi

.PHONY: run-test-kubernetes
run-test-kubernetes: build-packages
	tests/real/kubernetes/nodes.sh deps
	tests/real/kubernetes/accepts.sh deploy/kubernetes
	cargo build --workspace --all-targets
	trap 'tests/real/kubernetes/nodes.sh down-all' EXIT; export BEDPLATE_REAL=1; \
	  cargo $(TEST) $(call binary,real-clusters,three_and_two); cargo $(TEST) $(call binary,real-clusters,upgrade); \
	  cargo $(TEST) $(call binary,real-clusters,contract)

# A virtual machine boots, as Fedora CoreOS does, with the user data that clusterd sent to an emulated cloud. It needs root for its image
# and its network, and uses the programs of test-kubernetes.
test-ignition:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-ignition, for it needs root"; else $(MAKE) --no-print-directory run-test-ignition; fi

.PHONY: run-test-ignition
run-test-ignition: build-packages
	tests/real/kubernetes/nodes.sh deps
	@$(PACKAGES) dnsmasq-base e2fsprogs genisoimage openssl python3-venv qemu-system-x86
	tests/real/fcos/image.sh
	cargo build --workspace --all-targets
	BEDPLATE_REAL=1 cargo $(TEST) $(call binary,real-clusters,fcos_machine)

# A release of the programs that the tests use: two builds are equal, lintian accepts the packages, Debian 12 and 13 install, upgrade and purge
# them, and podman runs an image. It needs root for machines made of namespaces.
test-packages:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-packages, because it needs root"; else $(MAKE) --no-print-directory run-test-packages; fi

.PHONY: run-test-packages
run-test-packages: ramdisk
	@$(PACKAGES) apache2-utils apt-utils buildah curl debhelper gnupg lintian mmdebstrap openssl podman xz-utils
	cargo build --workspace --all-targets
	tests/real/packaged.sh target/debug $(RAMDISK) bookworm trixie

# A disk that becomes a compute host of an OpenStack. The build needs root because it makes accounts of another system.
image-hypervisor: build-packages
	@$(PACKAGES) e2fsprogs mmdebstrap qemu-utils
	images/hypervisor/build.sh

# Measured programs are compiled by rustc alone. GNU make 4.3 cannot unexport a variable for one target.
MEASURED := env -u RUSTC_WORKSPACE_WRAPPER cargo

bench: build-packages
	@$(PACKAGES) curl python3-venv
	$(MEASURED) build --release -p baremetal -p cluster -p bench --bins
	$(MEASURED) run --release -p bench -- --writer "$$(images/ramdisk/agent.sh --example write_image)"
	$(MAKE) --no-print-directory bench-site

# SITE machines at the pace of real ones, on SQLite and on PostgreSQL; before them BESIDE machines, if there are any, for comparison.
SITE := 1000
BESIDE :=
SITE_DATABASES := $(if $(BESIDE),few) many
SITE_PORT := 54329

bench-site: build-packages
	$(MEASURED) build --release -p baremetal -p bench --bins
	folder=$$(mktemp -d); trap 'tests/real/postgres.sh --down "$$folder"; rm -rf "$$folder"' EXIT; \
	  tests/real/postgres.sh --up "$$folder" $(SITE_PORT) $(SITE_DATABASES); \
	  $(MEASURED) run --release -p bench -- machines --pace real --machines $(SITE) $(if $(BESIDE),--beside $(BESIDE)) \
	  $(foreach database,$(SITE_DATABASES),--postgres postgres://postgres@127.0.0.1:$(SITE_PORT)/$(database))

clean:
	tests/real/rack.sh down-all
	$(OPENSTACK) down
	$(IRONIC) down
	[ "$$(id -u)" != 0 ] || tests/real/kubernetes/nodes.sh down-all
	cargo clean
	rm -rf .state
	@echo "kept downloads in $${BEDPLATE_CACHE:-$${XDG_CACHE_HOME:-~/.cache}/bedplate}"
