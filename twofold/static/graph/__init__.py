"""What a declared graph is: operations, shapes, scopes, devices, and what is known of them before a run."""
