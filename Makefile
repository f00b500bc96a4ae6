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
	@echo
	@echo 'These install on Debian 12 what they need and is missing:'
	@echo 'make demo            what hedging does to the tail, measured by fio'
	@echo 'make bench           what it costs and gains; BENCH=cost: that section only'
	@echo 'make check           all quick tests'
	@echo 'make check-debug     the kernel tests on a kernel full of checks'
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
	tests/bench/bench

check: deps
	$(MAKE) built
	tests/check

check-debug: built
	tests/kselftest/run.sh --rig debug

shell: built
	tests/vm/shell

# Without headers no module was built.
clean:
	$(if $(KDIR),$(MAKE) -C $(KDIR) M=$(CURDIR) clean)
	$(MAKE) -C userspace clean
	$(if $(KDIR),$(MAKE) -C tests/lag clean KDIR=$(KDIR))
	$(MAKE) -C tests/tools clean
	$(MAKE) -C tests/unit clean

.PHONY: all help module userspace install deps built demo bench check check-debug \
	shell clean
