"""Why a server does not start, what a code means, what to send along with a report."""
