# SPDX-License-Identifier: GPL-2.0
KVER ?= $(shell ls /lib/modules 2>/dev/null | tail -1)
KDIR ?= /lib/modules/$(KVER)/build
module:
	$(MAKE) -C $(KDIR) M=$(CURDIR) W=1
