import systemd.conftest
from sandbox import probing
from support import vms

product = systemd.conftest.product
installed = systemd.conftest.installed
vm = vms.vm
product_in_vm = vms.product_in_vm
without = probing.without
swap = vms.swap
