import systemd.conftest

product = systemd.conftest.product
installed = systemd.conftest.installed
