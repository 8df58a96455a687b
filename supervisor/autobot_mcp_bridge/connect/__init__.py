"""How clients are connected: what they have configured comes in, what they need goes out."""
