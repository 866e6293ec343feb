"""A list of parts, wherever they are: functions of every part, and sums in a fixed order."""
