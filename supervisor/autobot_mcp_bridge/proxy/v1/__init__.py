"""What the holders of API keys ask of their tenant's servers: `/v1/…`."""
