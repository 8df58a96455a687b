"""Pure records and rules: no I/O, no asyncio."""
