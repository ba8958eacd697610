"""What leaves the house: the folder that students get, and its copy inside the wheel."""
