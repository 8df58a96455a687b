"""What goes along with a report of a fault: one archive, without secrets."""
