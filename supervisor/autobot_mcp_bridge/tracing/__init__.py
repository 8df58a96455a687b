"""Calls as OpenTelemetry spans, for a collector; imported only where there is one."""
