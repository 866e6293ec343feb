"""Campaigns of hostile input: every case ends in a right answer or in an error of the family."""
