"""TODO unsandboxed."""
