import systemd.conftest

product = systemd.conftest.product
