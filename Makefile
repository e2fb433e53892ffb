# make run     see a rack and a cluster     make test    what is tested, as below
# make build   programs and ramdisk         make lint  make test-fast  make test-compat  make test-rack  make test-cloud
#                                           make test-kubernetes  make test-ignition  make test-browser
#                                           make test-hypervisor
# make image-hypervisor   a disk that becomes a compute host of an OpenStack
# make bench   what is claimed, measured    make clean   what was built, and racks left behind
#
# Wants Debian 12, Rust by rustup, and make. As root each target installs the Debian packages it needs; without root it says what is
# missing and what it skips. Downloads and Python environments are kept in ~/.cache/bedplate (BEDPLATE_CACHE).
#
# test-cloud, test-kubernetes and test-ignition want root, 6 GiB of memory and 10 GiB of disk; from an empty cache Kubernetes is built for
# them. test-hypervisor wants root, and has the image built that its machine boots.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: build ramdisk run test lint test-fast test-compat test-browser test-rack test-cloud test-kubernetes test-ignition test-hypervisor \
  image-hypervisor bench clean build-packages

RACK ?= emulated
RAMDISK := target/ramdisk
PACKAGES := tests/real/packages.sh
OPENSTACK := tests/real/openstack/openstack.sh
SCRIPTS := $(shell find . -path ./target -prune -o \( -name '*.sh' -o -path ./.ci/run \) -print)
# What runs the tests of `cargo TEST -p CRATE`: nextest where it is installed.
TEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run || echo test)

# The tests of one crate. Building the whole workspace each time keeps one set of features, and so one build of every dependency.
NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes)
FAST = $(if $(NEXTEST),-E 'not (package(real) or package(real-clusters) or package(compat) or package(browser))',--exclude real --exclude real-clusters --exclude compat --exclude browser)
only = $(if $(NEXTEST),--workspace -E 'package($(1))',-p $(1))
binary = $(if $(NEXTEST),--workspace -E 'package($(1)) and binary($(2))',-p $(1) --test $(2))

# Peers of the tests (others' programs) that root could install have to be there; without root, what is not tried is told at the end.
export BEDPLATE_PEERS := $(if $(filter 0,$(shell id -u)),required,)
export BEDPLATE_SKIPPED := $(CURDIR)/target/skipped
# What services stored and said in tests, to be looked through for secrets, beside those that were made meanwhile; with what tests printed,
# which nextest writes down even of those that passed. `cargo test` shows it where it is told to.
export BEDPLATE_LEFT := $(CURDIR)/target/left
NOTHING_LEFT := rm -rf $(BEDPLATE_LEFT) $(BEDPLATE_LEFT).secrets target/nextest && mkdir -p $(BEDPLATE_LEFT)
SHOWN := $(if $(NEXTEST),,-- --show-output)
NO_SECRET_LEFT := target/debug/left $(BEDPLATE_LEFT) target/nextest

build: build-packages ramdisk
	cargo build --workspace --bins

build-packages:
	@$(PACKAGES) gcc libc6-dev

# What machines boot to be worked on: its kernel, the ramdisk, and both as a CD.
ramdisk: build-packages
	@$(PACKAGES) cpio zstd kmod
	images/ramdisk/build.sh $(RAMDISK)
	images/ramdisk/iso.sh $(RAMDISK)

run: build-packages
ifeq ($(RACK),qemu)
	$(MAKE) build
	tests/real/show.sh
else
	cargo build --workspace --bins
	target/debug/bedplate dev
endif

test: lint test-fast test-compat test-browser test-rack test-cloud test-kubernetes test-ignition test-hypervisor
	@echo "make test: all of it passed"

lint: build-packages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	@$(PACKAGES) shellcheck python3-venv
	@if command -v shellcheck >/dev/null; then shellcheck -x $(SCRIPTS); else echo "SKIPPED: shell scripts, for shellcheck is not installed"; fi
	"$$(tests/real/venv.sh tests/compat/lint-requirements.txt)/bin/ruff" check --line-length 140 --select E,F,W,I,B tests

# Unit tests, the store on both databases, emulators, the driver of clouds against the emulated one, scenarios, the guides on a Debian machine.
test-fast: build-packages $(if $(filter 0,$(shell id -u)),ramdisk)
	@$(PACKAGES) atftp busybox-static curl dhcping dnsmasq-base fish groff-base ignition iproute2 ipmitool ipxe ipxe-qemu jq lldpd mmdebstrap ndisc6 openipmi ovmf procps \
	  python3-aiosmtpd python3-venv qemu-system-x86 qemu-utils seabios tftp-hpa tmux xfsprogs zsh
	@command -v kubectl >/dev/null || $(PACKAGES) kubernetes-client
	cargo build --workspace --bins
	@rm -rf $(BEDPLATE_SKIPPED) && $(NOTHING_LEFT)
	tests/real/postgres.sh tests/openstack-emulator/with-cloud.sh cargo $(TEST) --workspace $(FAST) $(SHOWN) 2>&1 | tee $(BEDPLATE_LEFT)/printed
	@# What the tests printed and stored holds no secret that they gave away.
	$(NO_SECRET_LEFT)
	@if [ -s $(BEDPLATE_SKIPPED) ]; then sort -u $(BEDPLATE_SKIPPED); fi

# The public OpenStack clients.
test-compat: build-packages
	@$(PACKAGES) python3-venv
	cargo build --workspace --bins
	@$(NOTHING_LEFT)
	cargo $(TEST) $(call only,compat) $(SHOWN) 2>&1 | tee $(BEDPLATE_LEFT)/printed
	$(NO_SECRET_LEFT)

# The console in Debian's Chromium, against all that `bedplate dev` starts, on the ports that deploy/dev names.
test-browser: build-packages
	@$(PACKAGES) chromium python3-venv
	@command -v kubectl >/dev/null || $(PACKAGES) kubernetes-client
	cargo build --workspace --bins
	cargo $(TEST) $(call only,browser)

# QEMU machines. A rack needs root, for network namespaces and libvirtd.
test-rack:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-rack, for it needs root"; else $(MAKE) --no-print-directory run-test-rack; fi

.PHONY: run-test-rack
run-test-rack: build-packages ramdisk
	@$(PACKAGES) ipxe python3-venv
	tests/real/rack.sh deps
	tests/real/tiny-image.sh
	cargo build --workspace --bins
	trap 'tests/real/rack.sh down-all' EXIT; BEDPLATE_REAL=1 cargo $(TEST) $(call only,real)

# A real OpenStack of Debian's packages: the driver of clouds, clusters on hypervisors that pretend, servers that are machines made of
# namespaces, and a cluster of real Kubernetes on those. They need root, for chroot and namespaces. Kubernetes is built meanwhile, in the
# time that is left over.
test-cloud:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-cloud, for it needs root"; else $(MAKE) --no-print-directory run-test-cloud; fi

.PHONY: run-test-cloud
run-test-cloud: build-packages
	@$(PACKAGES) binutils curl haproxy ignition iproute2 iptables mmdebstrap patch procps python3-venv xz-utils
	cargo build --workspace --bins
	setsid nice -n 19 tests/real/kubernetes/mirror.sh >target/kubernetes.log 2>&1 & build=$$!; \
	  trap 'kill -- -$$build 2>/dev/null || true; $(OPENSTACK) down' EXIT; \
	  $(OPENSTACK) reset; eval "$$($(OPENSTACK) env)"; \
	  cargo $(TEST) $(call binary,openstack,contract); cargo $(TEST) $(call binary,policy,walk); \
	  cargo $(TEST) $(call binary,real-clusters,eight_servers); cargo $(TEST) $(call binary,real-clusters,own_project); \
	  cargo $(TEST) $(call binary,real-clusters,own_machine); \
	  $(OPENSTACK) machines; eval "$$($(OPENSTACK) env)"; cargo $(TEST) $(call binary,real-clusters,servers); \
	  wait $$build || { cat target/kubernetes.log; exit 1; }; \
	  cargo $(TEST) $(call binary,real-clusters,whole_cloud)

# Kubernetes, built from Debian's source, by itself on machines made of namespaces. They need root.
test-kubernetes:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-kubernetes, for it needs root"; else $(MAKE) --no-print-directory run-test-kubernetes; fi

.PHONY: run-test-kubernetes
run-test-kubernetes: build-packages
	tests/real/kubernetes/nodes.sh deps
	cargo build --workspace --bins
	trap 'tests/real/kubernetes/nodes.sh down-all' EXIT; export BEDPLATE_REAL=1; \
	  cargo $(TEST) $(call binary,real-clusters,three_and_two); cargo $(TEST) $(call binary,real-clusters,contract)

# A virtual machine that boots with the user data that clusterd gave an emulated cloud for it, as Fedora CoreOS would. It needs root, for
# its image and its network; its programs are those of test-kubernetes.
test-ignition:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-ignition, for it needs root"; else $(MAKE) --no-print-directory run-test-ignition; fi

.PHONY: run-test-ignition
run-test-ignition: build-packages
	tests/real/kubernetes/nodes.sh deps
	@$(PACKAGES) dnsmasq-base e2fsprogs genisoimage openssl python3-venv qemu-system-x86
	tests/real/fcos/image.sh
	cargo build --workspace --bins
	BEDPLATE_REAL=1 cargo $(TEST) $(call binary,real-clusters,fcos_machine)

# A disk that becomes a compute host of an OpenStack. It needs root, for accounts of another system are made.
image-hypervisor: build-packages
	@$(PACKAGES) e2fsprogs mmdebstrap qemu-utils
	images/hypervisor/build.sh

# A rack and a real OpenStack at once: `bedplate rack up` makes a QEMU machine a compute host of it, and a server runs there. The cloud has
# an address that the rack's machines reach, and its ports are wired by the host's own agent.
test-hypervisor:
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: test-hypervisor, for it needs root"; else $(MAKE) --no-print-directory run-test-hypervisor; fi

.PHONY: run-test-hypervisor
run-test-hypervisor: export OPENSTACK_ADDRESS := 10.78.3.1
run-test-hypervisor: export OPENSTACK_MECHANISMS := openvswitch,bedplate
run-test-hypervisor: build-packages ramdisk image-hypervisor
	@$(PACKAGES) binutils curl ipxe iproute2 patch procps python3-venv xz-utils
	tests/real/rack.sh deps
	tests/real/tiny-image.sh
	cargo build --workspace --bins
	trap 'tests/real/rack.sh down-all; $(OPENSTACK) down' EXIT; $(OPENSTACK) reset; eval "$$($(OPENSTACK) env)"; \
	  BEDPLATE_REAL=1 cargo $(TEST) $(call binary,real,rack_to_cloud)

bench: build-packages
	cargo build --release -p baremetal -p cluster -p bench --bins
	cargo run --release -p bench -- --writer "$$(images/ramdisk/agent.sh --example write_image)"

clean:
	tests/real/rack.sh down-all
	$(OPENSTACK) down
	[ "$$(id -u)" != 0 ] || tests/real/kubernetes/nodes.sh down-all
	cargo clean
	rm -rf .state
	@echo "downloads are kept in $${BEDPLATE_CACHE:-$${XDG_CACHE_HOME:-~/.cache}/bedplate}"
