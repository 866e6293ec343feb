"""A table becomes numbers: any frame, array or file in -> Design and Schema out, and back."""
