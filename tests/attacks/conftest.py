"""Nothing below is a test: pytest must neither collect nor import what attacks bring along."""

collect_ignore_glob = ["*"]
