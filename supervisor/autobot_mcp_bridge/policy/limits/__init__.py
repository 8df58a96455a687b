"""How often and how much at once: sliding windows and calls in flight."""
