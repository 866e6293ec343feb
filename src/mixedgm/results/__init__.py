"""A fitted model in -> tables, text, HTML and files of it, computing nothing new."""
