"""The product's own files on a host, or below a root directory; standard library only."""
