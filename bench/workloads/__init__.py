"""The measured programs, in the style of each framework."""
