# SPDX-License-Identifier: GPL-2.0
#
# Everything is done from here; `make help' says what.

# The headers of the running kernel if they are there, else the newest installed.
KDIR ?= $(lastword $(sort $(wildcard /lib/modules/*/build)) \
	  $(wildcard /lib/modules/$(shell uname -r)/build))
ifdef KERNELRELEASE
# Called as `make KERNELRELEASE=<version>', not by the kernel's own build.
KDIR := /lib/modules/$(KERNELRELEASE)/build
endif

# The headers of the kernel that the rigs boot, whatever kernel runs here.
RIG_KDIR = $(patsubst kernel-%,/usr/src/linux-headers-%,$(notdir $(shell tests/vm/kernel)))

all: module userspace

help:
	@echo 'make                 the module and the tools'
	@echo 'make module          dm-hedge.ko for KDIR=$(or $(KDIR),<kernel headers>)'
	@echo '                     (or for KERNELRELEASE=<version>)'
	@echo 'make userspace       hedgectl and hedgesim'
	@echo 'make install         both, to INSTALL_MOD_PATH and DESTDIR'
	@echo 'make install-boot    units, udev rules, hooks of the initramfs, to DESTDIR'
	@echo 'make dkms-install    the module through DKMS, for each kernel'
	@echo 'make packages        Debian packages, in build/packages'
	@echo
	@echo 'These install on Debian 12 what they need and is missing:'
	@echo 'make demo            what hedging does to the tail, measured by fio'
	@echo 'make bench           what it costs and gains; BENCH=cost: that section only;'
	@echo '                     QUICK=1: few figures, in minutes'
	@echo 'make check           all quick tests'
	@echo 'make docs            the documents as HTML, in build/docs'
	@echo 'make figures         the figures of Documentation/theory.rst, about 15 minutes'
	@echo 'make check-sim       the kernel against the simulator: every preset, hours'
	@echo 'make check-debug     the kernel tests on a kernel full of checks'
	@echo 'make check-crash     what crashes leave on the legs, at more than 500 points'
	@echo 'make check-stress    random actions under load, on the kernel of check-debug'
	@echo 'make check-matrix    the module built for, and tested on, several kernels'
	@echo 'make check-analyzers static tests with clang and coccinelle too'
	@echo 'make check-packages  the Debian packages, installed in a machine with systemd'
	@echo 'make shell           a shell in a virtual machine with the module'
	@echo 'make deps            only install'
	@echo 'make clean           remove what was built'

module:
	@test -n "$(KDIR)" || { echo "no kernel headers: make deps, or set KDIR" >&2; exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

userspace:
	$(MAKE) -C userspace

install: module userspace
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install
	$(MAKE) -C userspace install

# What a machine needs at boot beside the tools; see packaging/README.md.
PREFIX ?= /usr/local
LIB := $(DESTDIR)/usr/lib

install-boot: install-units install-hooks

install-units:
	install -d $(LIB)/systemd/system
	install -m 644 packaging/systemd/*.service $(LIB)/systemd/system
	sed -i 's|/usr/sbin/|$(PREFIX)/sbin/|' $(LIB)/systemd/system/hedgectl-*.service

install-hooks:
	install -D -m 755 packaging/hedgetab $(LIB)/dm-hedge/hedgetab
	sed -i 's|/usr/sbin|$(PREFIX)/sbin|' $(LIB)/dm-hedge/hedgetab
	install -D -m 755 packaging/systemd/hedge.shutdown $(LIB)/systemd/system-shutdown/hedge.shutdown
	sed -i 's|/usr/sbin/|$(PREFIX)/sbin/|' $(LIB)/systemd/system-shutdown/hedge.shutdown
	install -D -m 755 packaging/udev/hedge-leg $(LIB)/udev/hedge-leg
	sed -i 's|/usr/sbin/|$(PREFIX)/sbin/|' $(LIB)/udev/hedge-leg
	install -D -m 644 packaging/udev/61-dm-hedge.rules $(LIB)/udev/rules.d/61-dm-hedge.rules
	install -D -m 755 packaging/initramfs-tools/hooks/hedge \
		$(DESTDIR)/usr/share/initramfs-tools/hooks/hedge
	sed -i 's|/usr/sbin/hedgectl|$(PREFIX)/sbin/hedgectl|' \
		$(DESTDIR)/usr/share/initramfs-tools/hooks/hedge
	for when in local-top local-block local-premount; do \
		install -D -m 755 packaging/initramfs-tools/scripts/hedge \
			$(DESTDIR)/usr/share/initramfs-tools/scripts/$$when/hedge; \
	done
	install -d $(LIB)/dracut/modules.d/90hedge
	install -m 755 packaging/dracut/90hedge/*.sh $(LIB)/dracut/modules.d/90hedge
	sed -i 's|/usr/sbin/hedgectl|$(PREFIX)/sbin/hedgectl|' $(LIB)/dracut/modules.d/90hedge/module-setup.sh

VERSION := $(shell sed -n 's/^VERSION := //p' userspace/Makefile)
MODULE_SOURCE := $(DESTDIR)/usr/src/dm-hedge-$(VERSION)

# Only what the build of the module reads.
install-source:
	install -d $(MODULE_SOURCE)/module/core
	install -m 644 Kbuild $(MODULE_SOURCE)
	install -m 644 module/Kbuild module/*.[ch] $(MODULE_SOURCE)/module
	rm -f $(MODULE_SOURCE)/module/*.mod.c
	install -m 644 module/core/*.[ch] $(MODULE_SOURCE)/module/core

DKMS ?= dkms

dkms-install: install-source
	sed 's/#MODULE_VERSION#/$(VERSION)/' packaging/dkms/dkms.conf >$(MODULE_SOURCE)/dkms.conf
	$(DKMS) install dm-hedge/$(VERSION)

packages:
	packaging/build-deb

deps:
	tests/vm/deps

# Make variables that depend on what deps installs are read by a new make.
built: deps
	$(MAKE) module KDIR=$(RIG_KDIR)
	$(MAKE) userspace
	$(MAKE) -C tests/lag KDIR=$(RIG_KDIR)
	$(MAKE) -C tests/tools

demo: built
	tests/bench/demo

bench: built
	tests/bench/bench $(if $(QUICK),--quick)

check: deps
	$(MAKE) built
	tests/check

docs: deps userspace
	tests/docs build/docs

figures: deps
	$(MAKE) -C userspace figures

check-sim: built
	mkdir -p build
	tests/compare/compare --json build/compare.json

check-debug: built
	tests/vm/selftest debug
	tests/kselftest/run.sh --rig debug

check-crash: built
	tests/crash/run.sh --long

check-stress: built
	tests/stress/run.sh

check-matrix: built
	tests/matrix

check-analyzers:
	tests/vm/deps build rig analyzers
	tests/static --all

check-packages: deps
	tests/packages

shell: built
	tests/vm/shell

# Without headers no module was built.
clean:
	$(if $(KDIR),$(MAKE) -C $(KDIR) M=$(CURDIR) clean)
	$(MAKE) -C userspace clean
	$(if $(KDIR),$(MAKE) -C tests/lag clean KDIR=$(KDIR))
	$(MAKE) -C tests/tools clean
	$(MAKE) -C tests/unit clean

.PHONY: all help check-sim module userspace install install-boot install-units install-hooks \
	install-source dkms-install packages deps built demo bench check docs figures check-debug \
	check-crash check-stress check-matrix check-analyzers check-packages shell clean
