"""A fitted model in -> tables, text, HTML, files and pictures of it, computing nothing new."""
