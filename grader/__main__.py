"""``python -m grader``: where the script is not on the path."""

from grader.cli import main

main()
