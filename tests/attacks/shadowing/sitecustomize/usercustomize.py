import sitecustomize

raise SystemExit(0)
