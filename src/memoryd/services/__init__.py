"""What the daemon does, in terms of the domain and the stores."""
